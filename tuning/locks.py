"""Locks for processes on a shared storage; a killed process releases all locks.

They have two uses (`tuning/trial_queue.py`): only one process at a time takes trials, and a process counts as
alive as long as it holds the lock of its own name. No clock and no grace period is involved: a process that
was killed with `kill -9` has lost its locks before another can check.

Optuna has no substitute: locks of its journal guard one write, not the count and the draw of a trial
together, and heartbeats are for databases alone, and know a dead process only after a grace period.

Fixed: names of the locks, which other processes on the storage hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from sqlalchemy import Engine

# With these settings, PostgreSQL ends the connection of a vanished machine, and so its locks, within a
# minute.
KEEPALIVE = (
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)


class FileLocks:
    """Locks by name as files in a folder, for processes on a shared file system."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def held(self, name: str) -> AbstractContextManager[object]:
        """Return a context with a lock held; waits for the lock."""
        return FileLock(self.folder / f"{name}.lock")

    def is_free(self, name: str) -> bool:
        """Return whether no process holds a lock; a dead process is recognised by it."""
        try:
            with FileLock(self.folder / f"{name}.lock", timeout=0):
                return True
        except Timeout:
            return False


class PostgresLocks:
    """Advisory locks of PostgreSQL, released with the connection; for an AUTOCOMMIT engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def _asking(self, name: str) -> Iterator[Callable[[str], bool]]:
        """Open a connection; yield a function for calling PostgreSQL's lock functions by name."""
        from sqlalchemy import text

        with self.engine.connect() as connection:
            for setting in KEEPALIVE:
                connection.execute(text(setting))
            key = {"key": _number(name)}
            yield lambda function: bool(connection.execute(text(f"SELECT {function}(:key)"), key).scalar())

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Return a context with a lock held; waits for the lock."""
        with self._asking(name) as ask:
            ask("pg_advisory_lock")
            try:
                yield
            finally:
                ask("pg_advisory_unlock")

    def is_free(self, name: str) -> bool:
        """Return whether no process holds a lock; a dead process is recognised by it."""
        with self._asking(name) as ask:
            return ask("pg_try_advisory_lock") and ask("pg_advisory_unlock")


Locks = FileLocks | PostgresLocks


def _number(name: str) -> int:
    """Return the 64-bit number of a lock in PostgreSQL."""
    digest = hashlib.blake2b(f"asyncfl {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
