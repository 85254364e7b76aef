"""Errata as text: where papers and their code differ, and how to choose the other reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks import tables
from benchmarks.errors import UserError
from fl_core.text import unknown

if TYPE_CHECKING:
    from benchmarks.discrepancies import Discrepancy


def errata(number: str | None) -> str:
    """Return the text of all errata, or of one by its ID; UserError if there is none of that ID."""
    from benchmarks.discrepancies import discrepancies

    known = {entry.id: entry for entry in discrepancies()}
    if number is not None and number not in known:
        raise UserError(unknown("erratum", number, known))
    chosen = known.values() if number is None else [known[number]]
    return "\n\n".join(map(_entry, chosen))


def _entry(entry: Discrepancy) -> str:
    said = {
        "text": entry.text,
        "code": entry.code,
        "ours": entry.reading,
        "default": _settings(entry.ours),
        "other": _settings(entry.other),
        "module": entry.module,
    }
    lines = [tables.entry(word, what) for word, what in said.items() if what]
    return "\n".join([f"{entry.id}  {entry.paper}", *lines])


def _settings(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={_value(value)}" for key, value in settings.items())


def _value(value: Any) -> str:
    """A value as YAML takes it on the command line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(inner)}" for key, inner in value.items()) + "}"
    return "null" if value is None else str(value)
