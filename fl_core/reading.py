"""Files of the user's, read within bounds: no pipe that nobody writes to, no device that never ends."""

from __future__ import annotations

import errno
import stat
from io import BytesIO, TextIOWrapper
from pathlib import Path

MOST_BYTES = 32_000_000  # of a table of numbers, which takes some fifty times as much memory


def content(path: Path, limit: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; OSError for anything else.

    The size is that of what is read: a file's status may say less, or change meanwhile.
    """
    kind = path.stat().st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # to open a pipe would wait for its writer
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    with path.open("rb") as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise OSError(errno.EINVAL, f"is larger than {limit // 1_000_000} MB", str(path))
    return found


def text(path: Path, encoding: str = "utf-8") -> str:
    """Return the text in such a file, its lines ended by `\\n`; UnicodeDecodeError if it is no such text."""
    return TextIOWrapper(BytesIO(content(path)), encoding).read()
