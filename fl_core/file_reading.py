"""Bounded reading of the user's files: every trace, table and YAML file is read through here.

A path may name a pipe without a writer or an endless device; neither makes a command hang or fill memory.

Fixed: that such files, and larger ones, are refused. Limits may be raised.
"""

import csv
import errno
import stat
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

MOST_BYTES = 32_000_000  # of a file; a table of numbers takes some fifty times as much memory


def content(path: Path, limit: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file.

    Args:
        path: The file.
        limit: The most bytes read; counted while reading, since the size in a file's status may be wrong.

    Raises:
        OSError: `path` is no regular file, or is larger than `limit`.
    """
    kind = path.stat().st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # opening a pipe waits for a writer
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EINVAL, f"is larger than {limit // 1_000_000} MB", str(path))
    return data


def text(path: Path, encoding: str = "utf-8") -> str:
    r"""Return the text in a regular file, lines ended by `\n`; raise UnicodeDecodeError for other content."""
    return TextIOWrapper(BytesIO(content(path)), encoding).read()


def rows(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each non-empty row of a CSV file; a byte order mark is skipped.

    Raises:
        ValueError: A row cannot be read, such as for a cell above 131,072 characters.
    """
    table = csv.reader(data.decode("utf-8-sig", "replace").splitlines())
    try:
        for line, row in enumerate(table, 1):
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield line, cells
    except csv.Error as error:
        raise ValueError(f"line {table.line_num}: {error}") from None
