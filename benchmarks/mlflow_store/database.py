"""MLflow's SQLite file: checked before any access, and created whole or not at all.

Also MLflow's client without its output, and the kinds of its errors. `delivery.py` and `reader.py` use it,
and all commands with a store check the address here first.

Fixed: foreign and damaged files are never written to. Tables and columns are MLflow's.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sqlite3
import warnings
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

from filelock import FileLock

from benchmarks.errors import UserError

if TYPE_CHECKING:
    from mlflow import MlflowClient

PREFIX = "sqlite:///"  # of the address of a file
ENCODED = "a password with characters such as / @ [ has to be percent-encoded"
UI_HOST, UI_PORT = "127.0.0.1", 5000  # defaults of asyncfl ui
# Variables of MLflow: no output, no telemetry, and no minutes of retries at an unreachable server.
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # addresses of runs may hold a password
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}

# Tables by which a database of MLflow is recognised: those that this package reads or writes.
TABLES = {
    "alembic_version",
    "datasets",
    "experiment_tags",
    "experiments",
    "input_tags",
    "inputs",
    "latest_metrics",
    "metrics",
    "params",
    "runs",
    "tags",
}

# SQLite's error codes for a missing table or column, a damaged page, and a file that is no database.
DAMAGED = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

# Messages of MLflow's client about a server that is unreachable, or reachable without its database.
NO_ANSWER = re.compile("API request to .* failed with (exception|timeout|error code 5)|Max retries exceeded")

RESTORE = "restore a copy of it, or move it away and run the suite again"
SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql")


def check(uri: str) -> None:
    """Raise UserError unless `uri` is an MLflow store; foreign and damaged files are never written to."""
    scheme, colon, _ = uri.partition("://")
    if not colon or scheme.partition("+")[0] not in SCHEMES:
        forms = "sqlite:///FILE, http(s)://…, postgresql://…, mysql://… or mssql://…"
        raise UserError(f"--tracking-uri {uri}: must be {forms}")
    must_be_an_address("--tracking-uri", uri)
    path = file(uri)
    if path is None and not scheme.startswith("http"):
        _must_have_a_driver(uri)
    if path is None or is_new(uri):
        return
    tables = _tables(path)
    missing = TABLES - tables
    if not tables:
        raise UserError(f"{path} has no tables: it is damaged or not an MLflow database; {RESTORE}")
    if len(missing) > len(TABLES) / 2:
        raise UserError(
            f"{path} is not an MLflow database: it has other tables, such as '{min(tables)}'. Name another "
            "file"
        )
    if missing:
        raise UserError(f"{path} is damaged: MLflow's table '{min(missing)}' is missing; {RESTORE}")


def _must_have_a_driver(uri: str) -> None:
    """Raise UserError if the Python package with SQLAlchemy's driver for a database is missing."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        make_url(uri).get_dialect().import_dbapi()
    except (ArgumentError, ImportError) as error:
        raise UserError(
            f"--tracking-uri {uri}: the Python driver of this database is not installed: {error}"
        ) from None


def must_exist(uri: str) -> None:
    """Raise UserError if `uri` is no MLflow store, or a missing file."""
    check(uri)
    if is_new(uri):
        raise UserError(f"{uri}: no such file. Name the MLflow database of recorded runs")


def must_be_an_address(option: str, uri: str) -> None:
    """Raise UserError if the `uri` of an option cannot be parsed, or names no file or host."""
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:  # its message is not shown: it may quote a password that has a slash or brackets
        wrong = "its port is not a number up to 65535, or brackets around its host are not closed"
        raise UserError(f"{option} {uri}: is not an address: {wrong}; {ENCODED}") from None
    if parts.scheme == "sqlite" and not (uri.startswith("sqlite:///") and parts.path.strip("/")):
        raise UserError(f"{option} {uri}: has no file. Write sqlite:///FILE")
    if parts.scheme in {"http", "https"} and not host:
        raise UserError(f"{option} {uri}: has no host. Write http://HOST:PORT")


def file(uri: str) -> Path | None:
    """Return the path of the SQLite file named by `uri`; None for other stores."""
    return Path(uri.removeprefix(PREFIX).partition("?")[0]) if uri.startswith(PREFIX) else None


def is_new(uri: str) -> bool:
    """Return whether `uri` names a nonexistent SQLite file, with nothing recorded as yet."""
    path = file(uri)
    # Not `exists`: a broken link may lead to an unmounted disk.
    return path is not None and not os.path.lexists(path)


def create(uri: str) -> None:
    """Make MLflow's tables if `uri` names a missing SQLite file; completely, or not at all.

    If several processes call it, one creates the file, and the others wait.
    """
    path = file(uri)
    if path is None or not is_new(uri):
        return
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with FileLock(path.with_name(f".{path.name}.lock")):
        shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
        if not is_new(uri):
            return
        partial.mkdir(0o700)
        try:
            make_empty_database(partial / path.name)
            (partial / path.name).chmod(0o600)
            with (partial / path.name).open("rb") as database:
                os.fsync(database)
            (partial / path.name).replace(path)
        finally:
            shutil.rmtree(partial)


def make_empty_database(path: Path) -> None:
    """Make a database without runs: a copy from the cache, since MLflow takes seconds to make its tables."""
    from fl_core.problems.data.files import cache_dir

    cached = cache_dir() / f"mlflow-{version('mlflow')}.db"
    if _is_whole(cached):
        shutil.copyfile(cached, path)
        return
    make_tables(path)
    with suppress(OSError):  # without a cache, it is made anew for each store
        cached.parent.mkdir(parents=True, exist_ok=True)
        partial = cached.with_name(f".{cached.name}.{uuid4().hex}")
        try:
            shutil.copyfile(path, partial)
            partial.replace(cached)
        finally:
            partial.unlink(missing_ok=True)


def _is_whole(path: Path) -> bool:
    """Return whether a file is an undamaged database with MLflow's tables."""
    if not path.is_file():
        return False
    try:
        with closing(open_file(path)) as database:
            faults = database.execute("PRAGMA quick_check").fetchall()
            return faults == [("ok",)] and _names(database) >= TABLES
    except sqlite3.Error:
        return False


def make_tables(path: Path) -> None:
    """Make MLflow's tables in memory and copy the tables to a new file: 71 commits without a disk."""
    memory = f"file:{uuid4().hex}?mode=memory&cache=shared"
    with closing(sqlite3.connect(memory, uri=True)) as tables, closing(sqlite3.connect(path)) as file:
        client(f"{PREFIX}{memory}&uri=true")
        tables.backup(file)


def client(uri: str) -> MlflowClient:
    """Return MLflow's client, silenced.

    Raises:
        MlflowException: The database belongs to another version of MLflow; the message names the remedy.
    """
    os.environ.update({name: value for name, value in QUIET.items() if name not in os.environ})
    # This logger prints the traceback of every database error, although the error is raised, too.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    for message in ("The ``noload`` loader strategy", "Selection of the SingletonThreadPool pool class"):
        warnings.filterwarnings("ignore", message=message)  # SQLAlchemy's, of MLflow
    from mlflow import MlflowClient, __version__
    from mlflow.exceptions import MlflowException

    try:
        return MlflowClient(uri)
    except MlflowException as error:
        if "database schema" not in str(error):  # MLflow's words for tables of an older or a newer version
            raise
        raise MlflowException(
            f"its tables are of another MLflow than {__version__}, which is installed: install that one, "
            "or keep a copy and run mlflow db upgrade with this address"
        ) from None


def failures() -> tuple[type[Exception], ...]:
    """Return the error classes of MLflow, databases and servers; a function, since MLflow's import is slow.

    A reader reports such an error as a failure of the store, and `Delivery` leaves its records in the outbox.
    Another error counts against a single record.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return MlflowException, SQLAlchemyError, sqlite3.Error, OSError  # errors of HTTP are OSErrors


def does_not_answer(error: BaseException | None) -> bool:
    """Return whether a server or database is absent, locked or full: another try may succeed."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import InterfaceError, OperationalError

    while error is not None:
        if isinstance(error, OperationalError | InterfaceError):
            return not is_damage(error)
        if isinstance(error, MlflowException):
            absent = error.error_code == "TEMPORARILY_UNAVAILABLE" or NO_ANSWER.search(str(error))
            if absent and not is_damage(error):
                return True
        error = error.__cause__
    return False


def is_damage(error: Exception) -> bool:
    """Return whether the error, or a cause, is an SQLite error beyond retrying: a damaged or foreign file."""
    return getattr(sqlite_error(error), "sqlite_errorcode", 0) & 0xFF in DAMAGED


def sqlite_error(error: BaseException | None) -> sqlite3.Error | None:
    """Return SQLite's own error: the given error or a cause of the error; None without any."""
    while error is not None:
        cause = getattr(error, "orig", None) or error  # SQLAlchemy's, of the driver's
        if isinstance(cause, sqlite3.Error):
            return cause
        error = error.__cause__
    return None


def open_file(path: Path) -> sqlite3.Connection:
    """Open an existing SQLite file.

    Not with `mode=ro`: reading may need to roll back the unfinished write of a killed process.
    """
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=20)


def _tables(path: Path) -> set[str]:
    """Return the names of a file's tables; UserError for an unreadable file."""
    try:
        with closing(open_file(path)) as database:
            return _names(database)
    except sqlite3.Error as error:
        way_out = f"; {RESTORE}" if is_damage(error) else ""
        raise UserError(f"{path} cannot be read as an SQLite database: {error}{way_out}") from None


def _names(database: sqlite3.Connection) -> set[str]:
    """Return the names of a database's tables."""
    return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
