"""Storage of studies: a journal file, SQLite or PostgreSQL, checked before any write.

`--storage` of `asyncfl tune` names it; without the option it is a journal in the store. It belongs to Optuna:
here it is only opened, with locks beside it, and its errors become messages for the user.

Fixed: nothing is written to a file or database of another kind.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.errors import GO_ON, UserError, no_room
from benchmarks.mlflow_store.database import must_be_an_address
from benchmarks.redaction import redacted, remember
from tuning.locks import FileLocks, Locks, PostgresLocks

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

ALLOWED = "a journal file's path, sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE"
LOCK_GRACE_SECONDS = 5  # after which Optuna removes the journal's lock of a killed process
MAX_LINE_BYTES = 1_000_000  # read of a file's first line, to recognise a journal
OPTUNA_TABLES = {"studies", "trials", "version_info"}  # tables by which a database of Optuna is recognised


@dataclass(frozen=True)
class Storage:
    """An open storage of studies, with locks for processes."""

    name: str  # for display, without a password
    optuna: BaseStorage
    locks: Locks


def open_storage(address: str) -> Storage:
    """Return the storage at a path or address; UserError if unusable or of another kind."""
    import optuna

    remember(address)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    scheme, colon, rest = address.partition("://")
    if not colon:
        return _journal(Path(address))
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return _sqlite(address, Path(rest[1:].partition("?")[0]))
    if scheme in ("postgresql", "postgresql+psycopg"):
        return _postgres(f"postgresql+psycopg://{rest}")
    raise UserError(f"--storage {redacted(address)}: must be {ALLOWED}")


@contextmanager
def storage_errors_explained(storage: str) -> Iterator[None]:
    """Raise the error of a failing storage as a single line for the user."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        cause = error.__cause__ if isinstance(error, StorageInternalError) and error.__cause__ else error
        advice = f": {GO_ON}" if "disk is full" in str(cause) else ""
        raise UserError(f"--storage {storage}: {_first_line(cause)}{advice}") from None
    except OSError as error:
        advice = f": {GO_ON}" if no_room(error) else ""
        raise UserError(f"--storage {storage}: {error.strerror or error}{advice}") from None
    except json.JSONDecodeError as error:
        raise UserError(
            f"--storage {storage}: is damaged: {error}. Restore a copy of it, or name another storage"
        ) from None


def _journal(path: Path) -> Storage:
    """Open a journal file, created if missing."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

    _must_be_a_journal(path)
    with storage_errors_explained(str(path)):
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        locks = FileLocks(path.with_name(f"{path.name}.locks"))
        lock = JournalFileSymlinkLock(str(path), LOCK_GRACE_SECONDS)
        lock.acquire()
        try:
            _cut_to_whole_lines(path)
        finally:
            lock.release()
        try:
            journal = JournalStorage(JournalFileBackend(str(path), lock))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UserError(
                f"--storage {path}: is damaged: {_first_line(error)}. Restore a copy of it, or name "
                "another storage"
            ) from None
        return Storage(str(path), journal, locks)


def _cut_to_whole_lines(path: Path) -> None:
    """Remove an incomplete last line, left by a killed process or a full disk, before Optuna appends."""
    with path.open("rb+") as file:
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)


def _must_be_a_journal(path: Path) -> None:
    """Raise UserError for a file with anything but a journal of Optuna."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise UserError(f"--storage {path}: is {kind}; must be {ALLOWED}")
    if not path.exists() or not path.stat().st_size:
        return
    try:
        with path.open("rb") as lines:
            first = json.loads(lines.readline(MAX_LINE_BYTES))
        is_journal = isinstance(first, dict) and "op_code" in first
    except OSError as error:
        raise UserError(f"--storage {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        is_journal = False
    if not is_journal:
        raise UserError(f"--storage {path}: is not an Optuna journal. Name another file")


def _sqlite(url: str, path: Path) -> Storage:
    """Open an SQLite file, created if missing."""
    from optuna.storages import RDBStorage

    with storage_errors_explained(url):
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        locks = FileLocks(path.with_name(f"{path.name}.locks"))
        with locks.held("schema"):  # one process creates the tables
            _must_be_optunas(url, url)
            # SQLite waits up to 60 s while another process writes.
            storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 60}})
        return Storage(url, storage, locks)


def _postgres(url: str) -> Storage:
    """Open a database on a PostgreSQL server."""
    from optuna.storages import RDBStorage
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    address = redacted(url)
    must_be_an_address("--storage", url)
    try:
        with storage_errors_explained(address):
            locks = PostgresLocks(create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT"))
            with locks.held("schema"):  # one process creates the tables
                _must_be_optunas(url, address)
                storage = RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
            return Storage(address, storage, locks)
    except ModuleNotFoundError:
        raise UserError(
            f"--storage {address}: needs the package psycopg: pip install 'psycopg[binary]'"
        ) from None


def _must_be_optunas(url: str, address: str) -> None:
    """Raise UserError for a database with tables of another program."""
    from sqlalchemy import create_engine, inspect
    from sqlalchemy.pool import NullPool

    engine = create_engine(url, poolclass=NullPool)
    tables = set(inspect(engine).get_table_names())
    engine.dispose()
    if tables and not tables >= OPTUNA_TABLES:
        raise UserError(
            f"--storage {address}: holds other tables, such as '{min(tables)}'. Name another database"
        )


def _first_line(error: BaseException) -> str:
    """Return the first line of a driver's own message, without the SQL that SQLAlchemy adds."""
    origin = getattr(error, "orig", None) or error
    return str(origin).strip().partition("\n")[0] or type(origin).__name__
