"""A worker process: receives jobs and requests through a pipe, sends messages, and dies with the driver.

`LocalPool` starts it. Its output goes to the log of the store, so that the driver's display stays clean.
"""

import gc
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic

from benchmarks.pool.job import Message, PoolJob, Worker
from fl_core.import_guard import UserPackages

POLL_SECONDS = 0.02  # between two polls of the pipe, since a poll takes as long as a local step


class ProcessWorker(Worker):
    """A worker connected to the driver by a pipe."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self.pipe = pipe
        self._last_poll = monotonic()

    def work(self) -> None:
        """Compute arriving jobs, until the pipe is closed or the process has to stop."""
        while not self.stopping:
            try:
                while not self.companions:
                    self.take(self.pipe.recv())
                job = self.companions.popleft()
            except EOFError:
                return
            self.cancelled &= {job.key}  # all other requests were about jobs that have ended
            if job.saves:  # else SIGTERM ends the process at once
                signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stopping", True))
            try:
                job.compute(self)
            finally:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def tell(self, job: PoolJob, message: Message) -> None:
        """Send a message about a job to the driver."""
        try:
            self.pipe.send((job.key, message))
        except OSError:  # the driver is gone; that is no error of the job's
            os._exit(1)

    def look(self) -> None:
        """Queue all jobs and requests from the pipe, at most every `POLL_SECONDS` seconds."""
        if monotonic() < self._last_poll + POLL_SECONDS:
            return
        try:
            while self.pipe.poll():
                self.take(self.pipe.recv())
        except (EOFError, OSError):  # the driver is gone
            os._exit(1)
        self._last_poll = monotonic()


def serve(pipe: Connection, log: Path, packages: UserPackages | None) -> None:
    """Run a worker process; `packages` locates the modules of the user's code."""
    if packages is not None:
        packages.install()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes, and the driver decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_die_with_the_driver, daemon=True).start()
    with log.open("ab", buffering=0) as file:  # what libraries print must not disturb the driver's display
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
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
