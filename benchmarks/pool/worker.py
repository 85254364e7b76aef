"""A worker process: jobs and notes come through a pipe, messages go back; it dies with its driver."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from benchmarks.pool.pool import Message, PoolJob
from fl_core.import_guard import OwnPackages

LOOK_EVERY = 0.02  # seconds between two polls of the pipe; a poll takes as long as a local step

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Note:
    """A note on its way to a job."""

    key: str
    content: object


class QueueWorker(ABC):
    """The worker as its jobs see it; what has arrived for them is queued here."""

    def __init__(self) -> None:
        self.stopping = False
        self.companions: deque[PoolJob] = deque()
        self.notes: deque[Note] = deque()
        self._shared: dict[Callable[[], Any], Any] = {}

    @abstractmethod
    def tell(self, job: PoolJob, message: Message) -> None:
        """Send a message about a job to the driver."""

    @abstractmethod
    def look(self) -> None:
        """Queue what has arrived."""

    def note(self, job: PoolJob) -> Any:
        """The next note to a job in progress."""
        self.look()
        for note in self.notes:
            if note.key == job.key:
                self.notes.remove(note)
                return note.content
        return None

    def companion(self) -> PoolJob | None:
        """The next job to go on beside those in progress."""
        self.look()
        return self.companions.popleft() if self.companions else None

    def shared(self, make: Callable[[], T]) -> T:
        """What the jobs of this process have in common."""
        if make not in self._shared:
            self._shared[make] = make()
        found: T = self._shared[make]
        return found


class ProcessWorker(QueueWorker):
    """A worker at the end of a pipe."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self.pipe = pipe
        self._looked = monotonic()

    def work(self) -> None:
        """Compute jobs as they come, until the pipe is closed or the process is to stop."""
        while not self.stopping:
            try:
                job = self._next_job()
            except EOFError:
                return
            self.notes = deque(one for one in self.notes if one.key == job.key)  # the others have ended
            with self._terminable(saves=job.saves):
                job.compute(self)

    def tell(self, job: PoolJob, message: Message) -> None:
        """Send a message about a job to the driver."""
        try:
            self.pipe.send((job.key, message))
        except OSError:  # the driver is gone; that is no error of the job's
            os._exit(1)

    def _next_job(self) -> PoolJob:
        while not self.companions:
            self._receive()
        return self.companions.popleft()

    def look(self) -> None:
        """Queue what has come through the pipe, at most every `LOOK_EVERY` seconds."""
        if monotonic() < self._looked + LOOK_EVERY:
            return
        try:
            while self.pipe.poll():
                self._receive()
        except (EOFError, OSError):  # the driver is gone
            os._exit(1)
        self._looked = monotonic()

    def _receive(self) -> None:
        received = self.pipe.recv()
        if isinstance(received, Note):
            self.notes.append(received)
        else:
            self.companions.append(received)

    @contextmanager
    def _terminable(self, *, saves: bool) -> Iterator[None]:
        """SIGTERM ends the process at once, unless the job may save itself first."""
        if saves:
            signal.signal(signal.SIGTERM, self._stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _stop(self, *_: object) -> None:
        self.stopping = True


def serve(pipe: Connection, log: Path, own: OwnPackages | None) -> None:
    """The process's main function; `own` finds the modules of jobs that are the user's."""
    if own is not None:
        own.install()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes, and the driver decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_die_with_the_driver, daemon=True).start()
    _write_output_to(log)
    import torch

    torch.set_num_threads(1)
    gc.freeze()  # what was imported stays for good: it is not searched for garbage, nor its memory copied
    gc.enable()
    ProcessWorker(pipe).work()


def _die_with_the_driver() -> None:
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)


def _write_output_to(log: Path) -> None:
    """What libraries print must not disturb the driver's display."""
    with log.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
