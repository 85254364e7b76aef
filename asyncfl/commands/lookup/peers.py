"""Peers as text: where other frameworks' servers differ from the papers, and our options that agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchmarks import tables
from benchmarks.errors import UserError
from fl_core.text import unknown

if TYPE_CHECKING:
    from benchmarks.peers import Peer


def show(name: str | None) -> None:
    """Print a table of all frameworks, or all about one by its short NAME; UserError if there is none."""
    from benchmarks.peers import peers

    entries: dict[str, list[Peer]] = {}
    for entry in peers():
        entries.setdefault(entry.short, []).append(entry)
    if name is None:
        header = ("name", "version", "algorithm", "setting", "paper's rule", "ours")
        rows = [
            (short, entry.version, entry.algorithm, entry.setting, entry.verdict, entry.options or "none")
            for short, each in entries.items()
            for entry in each
        ]
        tables.print_headed(header, rows)
    elif name not in entries:
        raise UserError(unknown("framework", name, entries))
    else:
        click.echo("\n\n".join(map(_entry, entries[name])))


def _entry(entry: Peer) -> str:
    said = {
        "class": entry.where,
        "setting": entry.setting,
        "computes": entry.computes,
        "paper": entry.verdict,
        "ours": entry.options or "no options of ours give the same",
        "error": entry.error,
        "note": entry.note,
        "stubs": entry.stubs,
    }
    lines = [tables.entry(word, text) for word, text in said.items() if text]
    return "\n".join([f"{entry.framework} {entry.version}  {entry.algorithm}", *lines])
