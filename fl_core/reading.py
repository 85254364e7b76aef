"""Files of the user's, read within bounds: no pipe that nobody writes to, no device that never ends."""

import errno
import stat
from io import BytesIO, TextIOWrapper
from pathlib import Path

MOST_BYTES = 32_000_000  # of a table of numbers, which takes some fifty times as much memory


def content(path: Path, limit: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file.

    Args:
        path: The file.
        limit: The most bytes read; counted as they come, since a file's status may say less, or change.

    Raises:
        OSError: `path` is no regular file, or is larger than `limit`.
    """
    kind = path.stat().st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # to open a pipe would wait for its writer
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EINVAL, f"is larger than {limit // 1_000_000} MB", str(path))
    return data


def text(path: Path, encoding: str = "utf-8") -> str:
    r"""Return the text in a regular file, lines ended by `\n`; raise UnicodeDecodeError for other content."""
    return TextIOWrapper(BytesIO(content(path)), encoding).read()
