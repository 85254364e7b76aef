"""Lock of a store, for exclusive writing by a single process at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from filelock import FileLock, Timeout

from benchmarks.errors import UserError
from benchmarks.tracking.store import Store

WAIT_SECONDS = 20.0  # for another process that shares the store


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
            unchanged = self._latest.is_file() and self._latest.read_text() == self._name
            if not unchanged:
                self._latest.write_text(self._name)
            yield unchanged
        finally:
            self._lock.release()
