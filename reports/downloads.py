"""Tables inside the page: links that hold a CSV file, compressed where it is long."""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import dataclass

import pandas as pd

PLAIN = 24_000  # letters up to which a table is not compressed
MOST = 300_000  # bytes, compressed; a page does not hold more of one table


@dataclass(frozen=True, slots=True)
class Download:
    """A table as a file to take away; without an address where it is too long for a page."""

    file: str
    address: str


def download(suite: str, what: str, table: pd.DataFrame) -> Download:
    """The table as a link: CSV, or CSV compressed by gzip, which pandas and R read by its name."""
    name, text = file_name(suite, what), csv(table).encode()
    if len(text) <= PLAIN:
        return Download(name, _address("text/csv;charset=utf-8", text))
    packed = gzip.compress(text, mtime=0)  # the same table gives the same bytes
    if len(packed) > MOST:
        return Download(name, "")
    return Download(f"{name}.gz", _address("application/gzip", packed))


def _address(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


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
