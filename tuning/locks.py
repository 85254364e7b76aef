"""Locks that processes on one storage share; a killed process no longer holds its own.

Two things rest on them: only one process at a time takes trials, and a process is alive as long as it
holds the lock of its own name. No clock and no grace period is involved: a process that was killed with
`kill -9` has lost its locks before another can check.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

# When a machine vanishes, PostgreSQL ends its connection, and so its locks, within a minute.
KEEPALIVE = (
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)


class Locks(ABC):
    """Locks by name."""

    @abstractmethod
    def held(self, name: str) -> AbstractContextManager[None]:
        """A context that holds a lock; waits for it."""

    @abstractmethod
    def is_free(self, name: str) -> bool:
        """Whether a lock is free."""


class FileLocks(Locks):
    """Files in a folder, for processes that see the same file system."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.lock"

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        from filelock import FileLock

        with FileLock(self._path(name)):
            yield

    def is_free(self, name: str) -> bool:
        from filelock import FileLock, Timeout

        if not self._path(name).exists():
            return True
        try:
            with FileLock(self._path(name), timeout=0):
                return True
        except Timeout:
            return False


class PostgresLocks(Locks):
    """PostgreSQL's advisory locks, which end with the connection that holds them; of an AUTOCOMMIT engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        from sqlalchemy import text

        with self.engine.connect() as connection:
            for setting in KEEPALIVE:
                connection.execute(text(setting))
            yield connection

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        from sqlalchemy import text

        with self._connection() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _number(name)})
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _number(name)})

    def is_free(self, name: str) -> bool:
        from sqlalchemy import text

        with self._connection() as connection:
            key = {"key": _number(name)}
            free = bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar())
            if free:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)
            return free


def _number(name: str) -> int:
    """The 64 bits by which PostgreSQL knows a lock."""
    digest = hashlib.blake2b(f"asyncfl {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
