"""Errors fixable by the user: each shown as a clear line, never as a traceback.

All packages raise `UserError` and call `warn`; `commands/group.py` prints the error and exits with code 2.

Free: wording. Code recognises classes, never texts; tests/commands/messages.txt holds frequent messages.
"""

import errno
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.redaction import one_line
from fl_core.import_guard import in_a_line

MAX_MESSAGE_CHARACTERS = 290  # so that a line with `Error: ` or `Warning: ` has at most 300
FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
GO_ON = "free disk space and rerun the same command; finished runs are kept"
RUN_AGAIN = "delete them in MLflow and run the suite again"
IN_UTF8 = "use names in UTF-8, and a locale such as LC_ALL=C.UTF-8"

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # without a log, Python would print each warning a second time


class UserError(Exception):
    """Error for the user to fix: a mistake, or a missing file, package or server; a line per argument."""

    def __init__(self, *lines: str) -> None:
        self.lines = tuple(map(short_line, lines))
        super().__init__("\n".join(self.lines))


def short_line(text: str) -> str:
    """Return a text as a redacted line; a long text loses words in the middle."""
    line = one_line(text)
    if len(line) <= MAX_MESSAGE_CHARACTERS:
        return line
    beginning = re.sub(r" \S{,40}$", "", line[: MAX_MESSAGE_CHARACTERS - 100])
    end = re.sub(r"^\S{,40} ", "", line[-97:])
    return f"{beginning} … {end}"


def users_mistake(error: BaseException) -> tuple[str, ...] | None:
    """Return the message lines of an error fixable by the user; None for a bug of the package."""
    if isinstance(error, UserError):
        return error.lines
    if no_room(error):
        return (f"{no_room(error)}: {GO_ON}",)
    if isinstance(error, OSError) and error.filename is not None:  # a name that is too long, a missing right
        return (short_line(f"{error.filename}: {error.strerror}"),)
    if isinstance(error, UnicodeEncodeError):
        return (short_line(f"'{error.object}' cannot be encoded as {error.encoding}: {IN_UTF8}"),)
    if "fl_core.problems.problem" in sys.modules:  # otherwise these errors cannot have been raised
        from fl_core.problems.data.files import DataDamagedError, DataMissingError
        from fl_core.problems.problem import InvalidProblemError

        if isinstance(error, DataDamagedError | DataMissingError | InvalidProblemError):
            return (short_line(str(error)),)
    return None


@contextmanager
def writing(target: object, instead: str = "") -> Iterator[None]:
    """Raise UserError if a file cannot be written while the context is active.

    Args:
        target: Name of the file in the message.
        instead: End of the message: advice.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}{instead}") from None


def must_be_ours(path: Path, mark: str) -> None:
    """Raise UserError for another program's file: the first 200 characters lack `mark`."""
    with writing(path), suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
        beginning = file.read(200)
        if beginning and mark not in beginning:
            raise UserError(f"{path}: another file of this name exists. Delete it, or choose another name")


def no_room(error: BaseException | None) -> str:
    """Return the place of a full disk or quota, with the reason; empty for any other error."""
    if not isinstance(error, OSError) or error.errno not in FULL_DISK_ERRORS:
        return ""
    prefix = f"{error.filename}: " if error.filename is not None else ""
    return short_line(f"{prefix}{os.strerror(error.errno)}")


def warn(sentence: str) -> None:
    """Print and log a warning; the command goes on."""
    log.warning("%s", sentence)
    sys.stderr.write(f"Warning: {short_line(sentence)}\n")


def summarised(error: BaseException) -> str:
    """Return an error as a line: kind, first line of the text, and the user's line of code at fault."""
    return short_line(in_a_line(error))
