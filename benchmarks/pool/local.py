"""A pool of worker processes on this machine; one that dies is replaced.

The jobs themselves report how many can run side by side in a process (`Capacity`): the first of a kind runs
alone. The jobs of a process that died are retried, each alone.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing import connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from time import monotonic
from typing import Generic, Self

from benchmarks.pool.fork_server import same_import_path
from benchmarks.pool.pool import DEATHS, Capacity, Died, Final, GivenUp, J, Message
from benchmarks.pool.worker import Note, serve

PATIENCE = 15.0  # seconds that workers have to save their jobs when all is stopped


class WorkerProcess(Generic[J]):
    """The driver's side of one worker process."""

    def __init__(self, context: ForkServerContext, log: Path) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, log), daemon=True)
        with same_import_path():  # if the fork server is started only now
            self.process.start()
        theirs.close()  # so that its death ends the pipe
        self.jobs: dict[str, J] = {}  # in progress, by key

    def begin(self, job: J) -> None:
        """Have it compute a job, beside its present ones."""
        self.jobs[job.key] = job
        self.send(job)

    def send(self, what: J | Note) -> None:
        """Send a job or a note; a dead worker is detected when receiving from it."""
        with suppress(OSError):
            self.pipe.send(what)

    def receive(self) -> tuple[str, Message] | Died:
        """Its next message, with the key of the job; waits for one."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            return Died(f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}")


class LocalPool(Generic[J]):
    """Up to `size` worker processes, started as needed; their libraries' output goes to `log`."""

    def __init__(self, size: int, log: Path) -> None:
        self.size, self.log = size, log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()  # messages name it
        self._context = multiprocessing.get_context("forkserver")
        self._workers: list[WorkerProcess[J]] = []
        self._waiting: deque[J] = deque()
        self._capacity: dict[Hashable, int] = {}  # by kind
        self._deaths: dict[str, int] = {}  # by job

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def submit(self, job: J) -> None:
        """Compute a job as soon as a process is free."""
        self._waiting.append(job)

    def send(self, job: J, note: object) -> None:
        """Send a note to the process that computes the job."""
        for worker in self._workers:
            if job.key in worker.jobs:
                worker.send(Note(job.key, note))

    @property
    def idle(self) -> int:
        """Processes with nothing to do, now or soon."""
        return max(0, self.size - sum(bool(one.jobs) for one in self._workers) - len(self._waiting))

    @property
    def busy(self) -> bool:
        """Whether there are jobs that have not ended."""
        return bool(self._waiting) or any(worker.jobs for worker in self._workers)

    def messages(self, seconds: float) -> list[tuple[J, Message]]:
        """One message from each process that has any."""
        self._assign()
        ready = connection.wait([worker.pipe for worker in self._workers], seconds)
        talking = [worker for worker in self._workers if worker.pipe in ready]
        return [told for worker in talking for told in self._received(worker)]

    def _assign(self) -> None:
        """Give each process something to do, as long as there is something."""
        for worker in self._workers:
            if self._waiting and not worker.jobs:
                worker.begin(self._waiting.popleft())
        while self._waiting and len(self._workers) < self.size:
            self._workers.append(WorkerProcess(self._context, self.log))
            self._workers[-1].begin(self._waiting.popleft())
        for worker in self._workers:
            self._fill_up(worker)

    def _fill_up(self, worker: WorkerProcess[J]) -> None:
        """Add companions: as many as are useful, while the other processes keep their share."""
        if not self._waiting or not worker.jobs:
            return
        kind = self._kind(next(iter(worker.jobs.values())))
        share = (len(self._waiting) + sum(len(one.jobs) for one in self._workers)) // self.size
        room = min(self._capacity.get(kind, 1), share) - len(worker.jobs)
        if kind is not None and room > 0:
            for job in list(islice((one for one in self._waiting if self._kind(one) == kind), room)):
                self._waiting.remove(job)
                worker.begin(job)

    def _kind(self, job: J) -> Hashable:
        """That of the job; None once a process has died with it."""
        return None if job.key in self._deaths else job.kind

    def _received(self, worker: WorkerProcess[J]) -> Iterator[tuple[J, Message]]:
        received = worker.receive()
        if isinstance(received, Died):
            self._workers.remove(worker)
            worker.pipe.close()
            for job in reversed(worker.jobs.values()):
                yield job, self._retried(job, received)
            return
        key, message = received
        job = worker.jobs[key]
        if isinstance(message, Capacity):
            self._capacity[job.kind] = message.jobs
            return
        if isinstance(message, Final):
            del worker.jobs[key]
        yield job, message

    def _retried(self, job: J, death: Died) -> Died | GivenUp:
        deaths = self._deaths.get(job.key, 0) + 1
        if deaths == DEATHS:
            return GivenUp(f"its worker process died {deaths} times ({death.how}); see {self.log}")
        retries = job.retries()
        self._deaths |= {retry.key: deaths for retry in retries}
        self._waiting.extendleft(reversed(retries))
        return death

    def stop(self) -> None:
        """Terminate all processes; one that takes too long, or a second Ctrl-C, has them killed."""
        try:
            for worker in self._workers:
                worker.process.terminate()
            end = monotonic() + PATIENCE
            for worker in self._workers:
                worker.process.join(max(0.0, end - monotonic()))
        finally:
            for worker in self._workers:
                worker.process.kill()
                worker.pipe.close()
            self._workers.clear()
            self._waiting.clear()
