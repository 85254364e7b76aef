"""Tables and texts for the terminal; plain aligned lines if the output is a file or a pipe.

All commands print through it. Pages have tables of their own (`reports/tables.py`).

Free: the look of tables.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text under a header; columns without any text are left out."""
    full = [column for column in range(len(header)) if any(row[column] for row in rows)]
    rows = [[row[column] for column in full] for row in rows]
    header = [header[column] for column in full]
    if not rows or not header:
        sys.stdout.write("(none)\n")
    elif sys.stdout.isatty():
        _print_pretty(header, rows)
    else:
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            sys.stdout.write("  ".join(cells).rstrip() + "\n")


def print_headed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with the header also in a file or a pipe."""
    print_table(header, rows if sys.stdout.isatty() else [header, *rows])


def print_rich(renderable: RenderableType) -> None:
    """Print a rich renderable, 160 columns wide if the output is a file or a pipe."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 160).print(renderable)


def print_text(text: str, indent: str = "") -> None:
    """Print a sentence or more, broken between words where a terminal is narrower."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        text = fill(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
        sys.stdout.write(f"{text}\n")
    else:
        sys.stdout.write(f"{indent}{text}\n")


def entry(word: str, text: str, width: int = 110) -> str:
    """Return a list entry: a word, with a text next to the word, broken between words."""
    head = f"  {word:<9}"
    hang = " " * len(head)
    return fill(
        text,
        width,
        initial_indent=head,
        subsequent_indent=hang,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _print_pretty(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table as wide as the terminal at most; words are broken only in a tiny terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, header_style="dim")
    for number, title in enumerate(header):
        table.add_column(Text(title), style="bold cyan" if number == 0 else "", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    print_rich(table)
