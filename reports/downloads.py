"""Tables inside the page: links that hold a CSV file."""

from __future__ import annotations

import base64
import re

import pandas as pd


def link(table: pd.DataFrame) -> str:
    """The table as the address of a download."""
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(csv(table).encode()).decode()


def csv(table: pd.DataFrame) -> str:
    """The table as text, numbers with six digits."""
    text: str = table.map(harmless).rename(columns=harmless).to_csv(index=False, float_format="%.6g")
    return text


def harmless(cell: object) -> object:
    """A text that spreadsheets do not treat as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip().startswith(("=", "+", "-", "@")) else cell


def file_name(suite: str, what: str) -> str:
    """A name for the downloaded file."""
    return f"{slug(suite) or 'suite'}-{what}.csv"


def slug(text: str) -> str:
    """A text as a part of a file's name: letters of the alphabet, digits and dashes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
