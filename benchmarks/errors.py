"""Errors that a user can fix: shown as one clear line each, never as a traceback."""

import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.redaction import one_line
from fl_core.import_guard import in_a_line

LONGEST = 290  # characters of a message; a line with the word before it has 300
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
GO_ON = "free disk space and rerun the same command; finished runs are kept"
RUN_AGAIN = "asyncfl run makes again what is deleted"
IN_UTF8 = "use names in UTF-8, and a locale such as LC_ALL=C.UTF-8"

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # else logging prints, where nothing keeps a log, what `warn` prints


class UserError(Exception):
    """A mistake of the user's, or something missing; the command line prints it and exits with 2."""

    def __init__(self, *lines: str) -> None:
        self.lines = tuple(map(shown, lines))
        super().__init__("\n".join(self.lines))


def shown(text: str) -> str:
    """Return a text as one line, redacted, its middle left out where it is too long for one."""
    line = one_line(text)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 100]} … {line[-97:]}"


def users_mistake(error: BaseException) -> tuple[str, ...] | None:
    """The message for an error that the user can fix; None for a bug of ours."""
    if isinstance(error, UserError):
        return error.lines
    if no_room(error):
        return (f"{no_room(error)}: {GO_ON}",)
    if isinstance(error, OSError) and error.filename is not None:  # a name that is too long, a missing right
        return (shown(f"{error.filename}: {error.strerror}"),)
    if isinstance(error, UnicodeEncodeError):
        return (shown(f"'{error.object}' cannot be encoded as {error.encoding}: {IN_UTF8}"),)
    if "fl_core.problems.problem" in sys.modules:  # else nothing can have raised these
        from fl_core.problems.data.files import DataDamagedError, DataMissingError
        from fl_core.problems.problem import InvalidProblemError

        if isinstance(error, DataDamagedError | DataMissingError | InvalidProblemError):
            return (shown(str(error)),)
    return None


@contextmanager
def writing(what: object, instead: str = "") -> Iterator[None]:
    """Raise UserError if a file cannot be written meanwhile: `what` names it, `instead` what else to do."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what} cannot be written: {error.strerror}{instead}") from None


def must_be_ours(path: Path, mark: str) -> None:
    """Raise UserError if the file at `path` is another's: near the beginning of ours stands `mark`."""
    with writing(path), suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
        beginning = file.read(200)
        if beginning and mark not in beginning:
            raise UserError(f"{path}: another file of this name exists; delete it, or name another")


def no_room(error: BaseException | None) -> str:
    """Where a disk or a quota is full, if that is the error; else empty."""
    if not isinstance(error, OSError) or error.errno not in FULL:
        return ""
    where = f"{error.filename}: " if error.filename is not None else ""
    return shown(f"{where}{os.strerror(error.errno)}")


def warn(sentence: str) -> None:
    """Print a warning, and log it; the command goes on."""
    log.warning("%s", sentence)
    sys.stderr.write(f"Warning: {shown(sentence)}\n")


def summarised(error: BaseException) -> str:
    """An error as one line: its kind, the first line of its text, and the line of the user's it came from."""
    return shown(in_a_line(error))
