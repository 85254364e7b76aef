"""The journal file of a campaign, written so that no fault in the middle of a line damages the next one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from filelock import FileLock
from optuna.storages.journal import JournalFileBackend
from optuna.storages.journal._file import BaseJournalFileLock


class JournalLock(BaseJournalFileLock):
    """A lock that is free once its process is killed; Optuna's own would be held for half a minute."""

    def __init__(self, path: Path) -> None:
        self.file = FileLock(path)

    def acquire(self) -> bool:
        """Wait for it."""
        self.file.acquire()
        return True

    def release(self) -> None:
        """Let others have it."""
        self.file.release()


class JournalFile(JournalFileBackend):
    """Optuna's journal, which is written under a lock; raises OSError where the disk is full."""

    def __init__(self, path: Path, lock: Path) -> None:
        self.path, self.lock = path, JournalLock(lock)
        super().__init__(str(path), self.lock)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append lines, after cutting off what a full disk or a power failure has left of one.

        Optuna passes over a partial last line when it reads, but would append to it.
        """
        with self.lock.file:  # the same that it takes
            _cut_to_whole_lines(self.path)
            super().append_logs(logs)


def _cut_to_whole_lines(path: Path) -> None:
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        if not end:
            return
        file.seek(end - 1)
        if file.read() != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
