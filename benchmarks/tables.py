"""Tables for the terminal; plain aligned lines, one a row, where the output is a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text under a header; columns that are empty everywhere are left out."""
    full = [column for column in range(len(header)) if any(row[column] for row in rows)]
    rows = [[row[column] for column in full] for row in rows]
    header = [header[column] for column in full]
    if not rows or not header:
        sys.stdout.write("(none)\n")
    elif sys.stdout.isatty():
        _pretty(header, rows)
    else:
        _plain(rows)


def print_rich(renderable: RenderableType) -> None:
    """Print what rich can render; as wide as it needs to be where the output is a file or a pipe."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 160).print(renderable)


def _pretty(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, box=box.SIMPLE_HEAD, header_style="dim", show_edge=False, pad_edge=False)
    table.columns[0].style, table.columns[0].no_wrap = "bold cyan", True
    for row in rows:
        table.add_row(*(_literal(cell) for cell in row))
    Console().print(table)


def _literal(text: str) -> str:
    """Text in which rich sees no mark-up."""
    from rich.markup import escape

    return escape(text)


def _plain(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
