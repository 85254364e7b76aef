"""The journal file of a campaign: Optuna's format, and in each line a digest that is checked when it is read.

Optuna's own tools read it too, as they ignore the digest. Lines without one, of such tools, are read
as they are.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock
from optuna.storages.journal import BaseJournalBackend

from benchmarks.errors import UserError

DIGEST = "sha256"


class JournalFile(BaseJournalBackend):
    """A journal that is written under a lock, which is free once its process is killed.

    Raises UserError for a line that is not what was written, and OSError where the disk is full.
    """

    def __init__(self, path: Path, lock: Path) -> None:
        self.path, self.lock = path, FileLock(lock)
        self._ends = [0]  # where each line that was read ends, in bytes

    def read_logs(self, log_number_from: int) -> list[dict[str, Any]]:
        """Return the logs from this number on; a last line that is not complete is left out."""
        del self._ends[log_number_from + 1 :]
        logs = []
        with self.path.open("rb") as file:
            file.seek(self._ends[-1])
            for line in file:
                if not line.endswith(b"\n"):  # it is being written, or its process was killed
                    break
                logs.append(self._checked(line))
                self._ends.append(self._ends[-1] + len(line))
        return logs

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append lines, after cutting off what a full disk or a power failure has left of one."""
        lines = "".join(_json({**log, DIGEST: _digest(log)}) + "\n" for log in logs)
        with self.lock:
            _cut_to_whole_lines(self.path)
            with self.path.open("ab") as file:
                file.write(lines.encode())
                file.flush()
                os.fsync(file.fileno())

    def _checked(self, line: bytes) -> dict[str, Any]:
        """Return the log of a line, without its digest."""
        try:
            log: dict[str, Any] = json.loads(line)
            if log.pop(DIGEST, None) in (None, _digest(log)):
                return log
        except (ValueError, AttributeError, TypeError, RecursionError):
            pass
        where = f"--storage {self.path}: line {len(self._ends)}"
        raise UserError(f"{where} is damaged: restore a copy, or name another file")


def _json(log: dict[str, Any]) -> str:
    return json.dumps(log, separators=(",", ":"))


def _digest(log: dict[str, Any]) -> str:
    return hashlib.sha256(_json(log).encode()).hexdigest()


def _cut_to_whole_lines(path: Path) -> None:
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        if not end:
            return
        file.seek(end - 1)
        if file.read() != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
