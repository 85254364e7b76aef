"""Store: the folder of all results, by default `asyncfl-results`, and the lock of the folder.

Every command with `--store` makes a `Store`. Paths of its contents are defined here alone.

Fixed: these paths, which users' stores have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from benchmarks.errors import UserError
from benchmarks.mlflow_store import database
from benchmarks.redaction import remember

WAIT_SECONDS = 20.0  # for the lock, while another process on the store writes
ADDRESS_MARKS = re.compile(r"[?#]|%[0-9A-Fa-f]{2}")  # which MLflow would not read as parts of a path


@dataclass(frozen=True, slots=True)
class Store:
    """Database, artifacts, outbox, reports; `tracking` is the address of another MLflow store, if given."""

    folder: Path = Path("asyncfl-results")
    tracking: str | None = None

    def __post_init__(self) -> None:
        if self.tracking is not None:
            remember(self.tracking)
        elif mark := ADDRESS_MARKS.search(str(self.folder.absolute())):
            raise UserError(
                f"--store {self.folder.absolute()}: the path of a store must not contain "
                f"'{mark[0]}', which has a meaning in addresses of databases: choose another folder"
            )

    @property
    def database(self) -> Path:
        """Path of MLflow's SQLite file."""
        return self.folder.absolute() / "mlflow.db"

    @property
    def tracking_uri(self) -> str:
        """Address of the MLflow store: the given address, or the database in the folder."""
        return self.tracking or f"sqlite:///{self.database}"

    @property
    def is_server(self) -> bool:
        """Whether the MLflow store is a server, with server-side storage of files."""
        return self.tracking_uri.startswith(("http://", "https://"))

    @property
    def artifacts(self) -> Path:
        """Folder of MLflow's files, unless a server keeps the files."""
        return self.folder.absolute() / "artifacts"

    @property
    def outbox(self) -> Path:
        """Folder of checkpoints and of records not yet sent."""
        return self.folder.absolute() / "outbox"

    @property
    def log(self) -> Path:
        """Path of the log with the output of libraries in worker processes."""
        return self.folder.absolute() / "workers.log"

    @property
    def session_log(self) -> Path:
        """Path of the log of sessions: see `benchmarks/log_file.py`."""
        return self.folder.absolute() / "asyncfl.log"

    @property
    def reports(self) -> Path:
        """Folder of the report pages of suites."""
        return self.folder.absolute() / "reports"

    @property
    def options(self) -> list[str]:
        """Command-line options naming the store; empty for the default store."""
        named = [] if self.folder == Store().folder else ["--store", str(self.folder)]
        return [*named, *(["--tracking-uri", self.tracking] if self.tracking else [])]

    @property
    def lost_its_database(self) -> bool:
        """Whether artifacts exist without a database."""
        return self.tracking is None and self.artifacts.is_dir() and database.is_new(self.tracking_uri)

    def make(self) -> None:
        """Make the folder and the outbox, accessible only to the owner; modes of existing folders stay.

        They hold unpublished results, tracebacks and the user's own data.
        """
        for folder in (self.folder, self.outbox):
            folder.mkdir(0o700, parents=True, exist_ok=True)

    def must_exist(self) -> None:
        """Raise UserError if nothing was ever recorded here, or the address is no MLflow store."""
        if self.tracking is None and database.is_new(self.tracking_uri):
            if self.lost_its_database:
                raise UserError(
                    f"{self.folder} has artifacts but no mlflow.db: restore a copy of it, or run the suite "
                    "again"
                )
            raise UserError(
                f"no runs in {self.folder}: it has no mlflow.db. Name another folder with --store"
            )
        database.must_exist(self.tracking_uri)


class StoreInUseError(UserError):
    """Another process works on the store."""


class Turn:
    """Lock of a store, released when the process ends or is killed."""

    def __init__(self, store: Store) -> None:
        self._store, self._name = store, uuid4().hex
        self._lock = FileLock(store.folder / ".lock")
        self._latest = store.folder / ".writer"  # name of the process that wrote last

    @contextmanager
    def taken(self, wait: float = 0.0) -> Iterator[bool]:
        """Hold the lock; yield whether no other process has held the lock since the last time.

        Args:
            wait: Seconds to wait for it.

        Raises:
            UserError: Another process has it, or the folder cannot be written.
        """
        folder = self._store.folder
        try:
            self._store.make()
            self._lock.acquire(timeout=wait)
        except Timeout:
            raise StoreInUseError(
                f"another asyncfl run is using {folder}. Wait for it to end, or choose another --store"
            ) from None
        except OSError as error:
            raise UserError(f"--store {folder}: cannot be written: {error.strerror}") from None
        try:
            unchanged = self._latest.is_file() and self._latest.read_text(encoding="utf-8") == self._name
            if not unchanged:
                self._latest.write_text(self._name, encoding="utf-8")
            yield unchanged
        finally:
            self._lock.release()
