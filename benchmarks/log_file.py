"""The log of a store, `asyncfl.log`, and the display with `--verbose`; both by Python's `logging`.

Sessions and campaigns write it (`to_file`), to find the cause of a fault later.

Free: lines of both logs; no code reads them.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from benchmarks import errors
from benchmarks.mlflow_store.provenance import machine, version, versions
from benchmarks.redaction import command_line, one_line, redacted
from fl_core.import_guard import PACKAGES

log = logging.getLogger(__name__)


class _Lines(logging.Formatter):
    """A line for each record, without passwords; tracebacks have more."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = one_line(record.message.strip())
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))  # of tracebacks, too


class _File(logging.FileHandler):
    """A log file; write errors, for example on a full disk, stop nothing."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        pass


class _Screen(logging.Handler):
    """A handler for the present `sys.stderr`, even if replaced by bars; omits printed warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != errors.__name__:
            sys.stderr.write(f"{self.format(record)}\n")


@contextmanager
def to_file(path: Path) -> Iterator[None]:
    """Append to a file, while active, log records of the package and warnings of other libraries."""
    try:
        file = _File(path, encoding="utf-8")
    except OSError:  # a session must not end because its log cannot be written
        yield
        return
    with _handled_by(file):
        numbers = ", ".join(f"{name} {number}" for name, number in versions().items())
        log.info("asyncfl-bench %s; %s; %s", version("asyncfl-bench"), numbers, machine())
        log.info("%s", command_line([Path(sys.argv[0]).name, *sys.argv[1:]]))
        try:
            yield
        except KeyboardInterrupt:
            log.info("interrupted")
            raise
        except Exception:
            log.exception("ended by an error")
            raise


@contextmanager
def to_screen() -> Iterator[None]:
    """Print log records while the context is active."""
    with _handled_by(_Screen()):
        yield


@contextmanager
def _handled_by(handler: logging.Handler) -> Iterator[None]:
    """Pass records of the package's loggers and of warnings to a handler while the context is active."""
    handler.setFormatter(_Lines())
    ours = [logging.getLogger(name) for name in PACKAGES]
    levels = [logger.level for logger in ours]
    for logger in ours:
        logger.setLevel(logging.INFO)
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        logging.getLogger().removeHandler(handler)
        with suppress(OSError):  # a full disk
            handler.close()
        for logger, level in zip(ours, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def phase(title: str) -> Iterator[None]:
    """Log the duration of a phase of a session, in seconds."""
    began = monotonic()
    try:
        yield
    finally:
        log.info("%s: %.1f s", title, monotonic() - began)
