"""Columns of text that fit a terminal; lines are broken between words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

GAP = "  "  # between columns
INDENT = "  "  # of what stands below a name

Row = Sequence[str]


def laid_out(header: Row, rows: Sequence[Row], width: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Lines of the header, and those of the rows in two parts: the first column, and the rest.

    Where the words do not fit side by side, first cells stand on lines of their own, above their rows.
    """
    widths = _widths([header, *rows], width)
    if widths is not None:
        lines = [line for row in rows for line in _lines(row, widths)]
        head = [*_lines(header, widths), _rule(widths)]
        return head, [(line[: widths[0]], line[widths[0] :]) for line in lines]
    room = width - len(INDENT)
    below = [row[1:] for row in [header, *rows]]
    widths = _widths(below, room) or _shares(len(header) - 1, room)
    head = [header[0], *(INDENT + line for line in [*_lines(below[0], widths), _rule(widths)])]
    found: list[tuple[str, str]] = []
    for row, rest in zip(rows, below[1:], strict=True):
        found += [(line, "") for line in wrap(row[0], width)]
        found += [("", INDENT + line) for line in _lines(rest, widths)]
    return head, found


def _widths(rows: Sequence[Row], width: int) -> list[int] | None:
    """The width of each column: its longest cell, or less if need be; None if words do not fit."""
    columns = list(zip(*rows, strict=True))
    least = [max(len(word) for cell in column for word in cell.split() or ["-"]) for column in columns]
    widths = [max(1, *map(len, column)) for column in columns]
    room = width - len(GAP) * (len(columns) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widest = max((at for at in range(len(widths)) if widths[at] > least[at]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _shares(columns: int, width: int) -> list[int]:
    """Equal widths, in which long words have to be broken."""
    return [max(1, (width - len(GAP) * (columns - 1)) // columns)] * columns


def _lines(row: Row, widths: Sequence[int]) -> Iterator[str]:
    cells = [wrap(cell, width, break_on_hyphens=False) for cell, width in zip(row, widths, strict=True)]
    for parts in zip_longest(*cells, fillvalue=""):
        yield GAP.join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()


def _rule(widths: Sequence[int]) -> str:
    return "─" * (sum(widths) + len(GAP) * (len(widths) - 1))
