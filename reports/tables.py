"""Tables in all their forms: printed entries for pages and papers, numbers as CSV for programs.

Sections make a `PageTable`; the page prints it, and `reports/page.py` writes it as CSV and LaTeX.

Fixed: `harmless`, so that no cell runs as a formula in a spreadsheet; stored tables are written with it.
Free: the look.
"""

import base64
import csv as csv_module
import gzip
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pandas import isna
from pandas.api.types import is_float_dtype, is_numeric_dtype

from reports.numbers import MISSING

MAX_PLAIN_LETTERS = 24_000  # of a table in a page; a longer table is compressed
MAX_BYTES = 300_000  # of a compressed table in a page; a longer table is left out

FORMULA = ("=", "+", "-", "@")  # first characters of a formula in spreadsheets
LEADING_BLANKS = ("\t", "\n")  # skipped by spreadsheets before a formula

# Characters that LaTeX reads as commands, and letters missing in its usual fonts.
SPECIAL: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\N{NO-BREAK SPACE}": "~",
    "∞": r"$\infty$",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≈": r"$\approx$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "²": r"\textsuperscript{2}",
    "‖": r"$\Vert$",
    "∇": r"$\nabla$",
    "Σ": r"$\Sigma$",
    "ᵢ": "$_i$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "η": r"$\eta$",
    "τ": r"$\tau$",
}


@dataclass(frozen=True, slots=True)
class TableEntry:
    """Printed content of a cell of a table."""

    text: str
    detail: str = ""  # text in muted type beside the entry: a spread, or a number of seeds
    value: float = inf  # sort key
    best: bool = False  # whether it is printed in bold
    place: float | None = None  # from 0, worst, to 1, best of the scenario: length of the bar below the entry
    apart: str = ""  # "separated" or "not separated" from the best; empty if unknown


UNKNOWN = TableEntry(MISSING, value=nan)


@dataclass(frozen=True, slots=True, eq=False)
class PageTable:
    """A table of the page: numbers for programs, and lines of text where printed."""

    name: str
    numbers: pd.DataFrame
    headings: Sequence[str] = ()
    lines: Sequence[Sequence[TableEntry]] = ()

    def latex(self) -> str:
        """Return a tabular with the rules of booktabs, all columns but the first to the right."""
        # pandas writes such tables, but not with two columns of one name, nor with braces in a name.
        rows = [map(escaped, self.headings), *(map(_latex_cell, line) for line in self.lines)]
        head, *body = [" & ".join(row) + r" \\" for row in rows]
        columns = "l" + "r" * (len(self.headings) - 1)
        parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
        return "\n".join([*parts, r"\end{tabular}", ""])


def escaped(text: str) -> str:
    """Return a text escaped for LaTeX."""
    return text.translate(str.maketrans(SPECIAL))


def _latex_cell(entry: TableEntry) -> str:
    """Return an entry in LaTeX, the best in bold, with the detail behind."""
    main = rf"\textbf{{{escaped(entry.text)}}}" if entry.best else escaped(entry.text)
    return f"{main} {escaped(entry.detail)}" if entry.detail else main


def markdown(headings: Sequence[str], rows: Iterable[Iterable[str]], text_columns: int = 1) -> str:
    """Return a table in Markdown; columns after the first `text_columns` columns are aligned to the right."""
    rule = ["---" if at < text_columns else "---:" for at in range(len(headings))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *rows))


def markdown_templates(folder: Path) -> Environment:
    """Return the templates of pages in Markdown in a folder."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "cell": lambda text: text.replace("|", "\\|"),
        "paragraph": lambda text: re.sub(r"\s*\n\s*", " ", text.strip()) + "\n",  # in a single line
        "sentence": lambda text: text[:1].upper() + text[1:],
    }
    return environment


def csv(table: pd.DataFrame) -> str:
    """Return a table as CSV, numbers with six digits."""
    text = io.StringIO()
    writer = csv_module.writer(text, lineterminator="\n")
    writer.writerow(map(harmless, table.columns))
    writer.writerows(zip(*(_written(table.iloc[:, at]) for at in range(table.shape[1])), strict=True))
    return text.getvalue()


def _written(column: pd.Series) -> list[object]:
    """Return the cells of a column for a CSV file; pandas takes several times as long to format numbers."""
    if not is_numeric_dtype(column.dtype):
        cells = column.to_numpy(object)
        texts = {cell: harmless(cell) for cell in {*cells} if isinstance(cell, str)}
        column = pd.Series([texts.get(cell, cell) for cell in cells])
    if is_float_dtype(column.dtype):
        return ["" if isnan(value) else f"{value:.6g}" for value in column.to_numpy(float).tolist()]
    cells = column.to_numpy(object)
    return ["" if missing else cell for cell, missing in zip(cells, isna(cells), strict=True)]


def harmless(cell: object) -> object:
    """Return a cell with text not read as a formula by spreadsheets."""
    if isinstance(cell, str):
        cell = cell.replace("\r", "\n")  # pandas does not quote a carriage return, which begins a new row
        text = cell.lstrip("'")  # a quoted text gets one more quote, so that `as_written` is exact
        if text.startswith(LEADING_BLANKS) or text.lstrip().startswith(FORMULA):
            return f"'{cell}"
    return cell


def as_written(cell: str) -> str:
    """Return the original text of a cell changed by `harmless`."""
    return cell[1:] if cell.startswith("'") and harmless(cell[1:]) != cell[1:] else cell


@dataclass(frozen=True, slots=True)
class Download:
    """A link for downloading a table from the page; without an address if the table is too long."""

    what: str  # the text of the link
    file: str
    address: str


def download(title: str, suite: str, name: str, table: pd.DataFrame) -> Download:
    """Return a link with a table: CSV, compressed by gzip where long.

    Args:
        title: The text of the link.
        suite: The suite's name; with `name` it makes the name of the file.
        name: What the file holds, in a word.
        table: The numbers.
    """
    file, text = f"{slug(suite) or 'suite'}-{name}.csv", csv(table).encode()
    kind = "text/csv;charset=utf-8"
    if len(text) > MAX_PLAIN_LETTERS:  # pandas and R read compressed files by their names
        text, kind = gzip.compress(text, mtime=0), "application/gzip"  # the same table gives the same bytes
        if len(text) > MAX_BYTES:
            return Download(title, file, "")
        file += ".gz"
    return Download(title, file, f"data:{kind};base64,{base64.b64encode(text).decode()}")


def slug(text: str) -> str:
    """Return a text as a part of a file's name: letters of the alphabet, digits and dashes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
