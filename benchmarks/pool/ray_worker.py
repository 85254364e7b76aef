"""A worker on a node of a Ray cluster: an actor with a separate thread for jobs.

`RayPool` starts one for each core or GPU. It shares no disk with the driver: a job arrives with its files,
its checkpoint goes back every `HEARTBEAT_SECONDS`, and its record goes back with its last message.

Fixed: files of unfinished jobs are sent before their folders are deleted, so that another worker continues.
"""

from __future__ import annotations

import os
import queue
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from benchmarks.pool.job import Cancel, Final, Message, PoolJob, Worker
from fl_core.import_guard import UserPackages

HEARTBEAT_SECONDS = 30.0  # at least, between two copies of a job's checkpoint
MAX_BYTES_PER_SECOND = 1e6  # of checkpoints that a worker sends, on average; large ones are sent less often


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """Report of a worker to the driver: a message about a job, files of the job, or both."""

    key: str  # of the job
    message: Message | None
    files: Mapping[str, bytes]  # as from `PoolJob.files`; empty between two heartbeats


@dataclass
class JobInProgress:
    """A job in progress, and the job's folder on the node."""

    job: PoolJob
    folder: Path
    next_copy: float  # by `monotonic()`: when its checkpoint is sent next


class RayWorker(Worker):
    """Ray actor of a worker; methods are called while jobs are computed."""

    def __init__(
        self, environment: Mapping[str, str], heartbeat: float, packages: UserPackages | None, folder: Path
    ) -> None:
        super().__init__()
        with suppress(OSError):  # a node may lack the driver's folder
            os.chdir(folder)  # where the relative paths of a suite begin
        if packages is not None:
            packages.install()
        for name, value in environment.items():
            os.environ.setdefault(name, value)  # the node's own settings come first
        self.heartbeat = heartbeat
        self._arrived: queue.SimpleQueue[PoolJob | Cancel] = queue.SimpleQueue()
        self._outgoing: queue.SimpleQueue[WorkerReport | None] = queue.SimpleQueue()
        self._in_progress: dict[str, JobInProgress] = {}
        self._saves_job = False  # whether the job in progress saves its state when stopped
        self._scratch = Path(tempfile.mkdtemp(prefix="asyncfl-worker-"))
        threading.Thread(target=self._work, daemon=True).start()

    # Called by the driver.

    def prepare_node(self, prepare: Callable[[], None] | None) -> str:
        """Prepare the node; return the reason if no jobs can be computed here, otherwise an empty text."""
        try:
            if prepare is not None:
                prepare()
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this node
            return f"{type(error).__name__}: {error}"
        return ""

    def begin(self, job: PoolJob, files: Mapping[str, bytes]) -> None:
        """Queue a job together with the job's files."""
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        mine = job.elsewhere(folder)
        mine.put_files(files)
        self._in_progress[mine.key] = JobInProgress(mine, folder, monotonic() + self.heartbeat)
        self._arrived.put(mine)

    def cancel(self, key: str) -> None:
        """Ask a job to end."""
        self._arrived.put(Cancel(key))

    def reports(self, seconds: float) -> list[WorkerReport | None]:
        """Return the reports of jobs, after `seconds` at the latest; None marks the end of a stopped worker.

        The last message of a job is not held back.
        """
        messages: list[WorkerReport | None] = []
        end = monotonic() + seconds
        while (seconds_left := end - monotonic()) > 0:
            try:
                messages.append(self._outgoing.get(timeout=seconds_left))
            except queue.Empty:
                break
            if messages[-1] is None or isinstance(messages[-1].message, Final):
                break
        while not self._outgoing.empty():
            messages.append(self._outgoing.get())
        return messages

    def stop(self) -> None:
        """Save the jobs in progress and end."""
        self.stopping = True
        if not self._saves_job:
            self._end()

    # Called by jobs, on their thread.

    def tell(self, job: PoolJob, message: Message) -> None:
        """Send a message about a job to the driver, with the job's files when due."""
        begun = self._in_progress[job.key]
        last = isinstance(message, Final)
        files = begun.job.files() if last or monotonic() > begun.next_copy else {}
        if files:
            size = sum(map(len, files.values()))
            begun.next_copy = monotonic() + max(self.heartbeat, size / MAX_BYTES_PER_SECOND)
        if last:
            del self._in_progress[job.key]
            shutil.rmtree(begun.folder, ignore_errors=True)
        self._outgoing.put(WorkerReport(job.key, message, files))

    def look(self) -> None:
        """Queue all arrived jobs and requests."""
        while not self._arrived.empty():
            self.take(self._arrived.get())

    def _work(self) -> None:
        """Compute arriving jobs on a separate thread until stopped; then send files of unfinished jobs."""
        import torch

        torch.set_num_threads(1)
        try:
            while not self.stopping:
                while not self.companions:
                    self.take(self._arrived.get())
                job = self.companions.popleft()
                self._saves_job = job.saves
                job.compute(self)
                self._saves_job = False
        except BaseException:  # noqa: BLE001 - as in a process: it ends with the error, and the driver retries
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        for begun in self._in_progress.values():
            self._outgoing.put(WorkerReport(begun.job.key, None, begun.job.files()))
        self._end()

    def _end(self) -> None:
        """Delete the folders of all jobs, and tell the driver (`RayPool`) with None that the worker ended."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._outgoing.put(None)
