"""Shell completion of suites, and of parts by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click


def suites(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return completions with the shipped suites, and files."""
    from benchmarks.suite.shipped import shipped

    return [*_beginning(begun, list(shipped())), CompletionItem(begun, type="file")]


def strategies(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return completions with the names of strategies in suite files."""
    from benchmarks.catalogue import entries

    return _beginning(begun, {entry.name: entry.what for entry in entries("strategies")})


def kinds(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return completions with the kinds of parts and, after a first letter, the parts of all kinds."""
    from benchmarks.catalogue import FAMILIES, entries

    of_kinds = _beginning(begun, [*FAMILIES, "suites", "errata", "peers", "theory"])
    parts = {entry.name: entry.what for kind in FAMILIES for entry in entries(kind)} if begun else {}
    return [*of_kinds, *_beginning(begun, parts)]


def parts(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return completions with the parts of the kind already typed, the errata, or the frameworks."""
    from benchmarks.catalogue import FAMILIES, entries

    kind = ctx.params.get("kind")
    if kind == "errata":
        from benchmarks.discrepancies import discrepancies

        return _beginning(begun, {entry.id: entry.paper for entry in discrepancies()})
    if kind == "peers":
        from benchmarks.peers import peers

        return _beginning(begun, {entry.short: entry.framework for entry in peers()})
    return _beginning(begun, {entry.name: entry.what for entry in entries(kind)}) if kind in FAMILIES else []


def _beginning(begun: str, names: Mapping[str, str] | Iterable[str]) -> list[CompletionItem]:
    """Return completions from the names with a beginning, with descriptions if known."""
    helps = names if isinstance(names, Mapping) else {}
    return [CompletionItem(name, help=helps.get(name)) for name in names if name.startswith(begun)]
