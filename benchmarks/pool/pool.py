"""Base class of pools: assignment of jobs to workers, and retries of the jobs of dead workers.

`LocalPool` (processes) and `RayPool` (a cluster) derive from it. Jobs of one kind may run side by side in a
worker: the first runs alone, and reports how many are useful (`Capacity`). The jobs of a worker that died are
retried, each alone, since any of them may have killed it.
"""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Hashable, Iterator
from itertools import islice
from typing import Any, Generic, Self, TypeVar

from benchmarks.pool.job import MAX_DEATHS, Capacity, Died, Final, GivenUp, J, Message

log = logging.getLogger(__name__)


class WorkerHandle(ABC, Generic[J]):
    """Handle of a worker on the driver's side."""

    def __init__(self) -> None:
        self.jobs: dict[str, J] = {}  # in progress, by key
        self.ready = True  # False while a Ray worker prepares its node: jobs are not yet accepted

    @abstractmethod
    def begin(self, job: J) -> None:
        """Send a job to the worker, in addition to `jobs`; a dead worker is detected on receiving."""
        self.jobs[job.key] = job

    @abstractmethod
    def cancel(self, key: str) -> None:
        """Ask the worker to end a job."""


H = TypeVar("H", bound=WorkerHandle[Any])


class Pool(ABC, Generic[J, H]):
    """Base class of pools; subclasses start the workers, receive messages and end the workers.

    Results depend neither on the engine nor on its size.
    """

    def __init__(self) -> None:
        self.workers: list[H] = []
        self.waiting: deque[J] = deque()  # submitted, and not yet given to a worker
        self._capacity: dict[Hashable, int] = {}  # by kind of job: how many a worker takes side by side
        self._deaths: dict[str, int] = {}  # by key of a job: workers that died with it

    @property
    @abstractmethod
    def size(self) -> int:
        """Current maximum number of workers."""

    @abstractmethod
    def start(self) -> H:
        """Start another worker."""

    @abstractmethod
    def lost(self, deaths: int, last: Died) -> str:
        """Return the reason for giving up a job after repeated deaths of workers, and where to read more."""

    @abstractmethod
    def messages(self, seconds: float) -> list[tuple[J, Message]]:
        """Assign waiting jobs, and return the messages since the last call; empty if none came in `seconds`.

        Nothing happens between two calls: the caller's loop drives the pool.
        """

    @abstractmethod
    def stop(self) -> None:
        """Save resumable jobs, then end all workers, within a time limit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def submit(self, job: J) -> None:
        """Queue a job behind all jobs submitted earlier, until a worker is free."""
        self.waiting.append(job)

    def withdraw(self, keys: Collection[str]) -> set[str]:
        """Drop all waiting jobs with the given keys; return the dropped keys."""
        dropped = {job.key for job in self.waiting if job.key in keys}
        self.waiting = deque(job for job in self.waiting if job.key not in dropped)
        return dropped

    def cancel(self, job: J) -> None:
        """Ask a job in progress to end; nothing happens to any other, see `withdraw`."""
        for worker in self.workers:
            if job.key in worker.jobs:
                worker.cancel(job.key)

    @property
    def idle(self) -> int:
        """Number of workers without a job, minus the number of waiting jobs."""
        return max(0, self.size - sum(bool(worker.jobs) for worker in self.workers) - len(self.waiting))

    @property
    def busy(self) -> bool:
        """Whether the final message of any job is still outstanding."""
        return bool(self.waiting) or any(worker.jobs for worker in self.workers)

    def assign(self) -> None:
        """Hand waiting jobs to free workers, starting further workers if necessary."""
        starting = 0  # workers that are not ready: each will take a waiting job
        for worker in self.workers:
            if not worker.ready:
                starting += 1
            elif self.waiting and not worker.jobs:
                worker.begin(self.waiting.popleft())
        size = self.size
        while len(self.waiting) > starting and len(self.workers) < size:
            self.workers.append(self.start())
            log.info("worker %d of %d started", len(self.workers), size)
            if self.workers[-1].ready:
                self.workers[-1].begin(self.waiting.popleft())
            else:
                starting += 1
        share = (len(self.waiting) + sum(len(worker.jobs) for worker in self.workers)) // max(1, size)
        for worker in self.workers:
            self._fill_up(worker, share)

    def _fill_up(self, worker: H, share: int) -> None:
        """Give a worker further jobs of the same kind, up to the kind's capacity and to `share` jobs.

        Args:
            worker: A worker with a job in progress.
            share: Jobs for each worker if all were spread evenly; more would leave other workers idle.
        """
        if not self.waiting or not worker.jobs:
            return
        kind = self._kind(next(iter(worker.jobs.values())))
        room = min(self._capacity.get(kind, 1), share) - len(worker.jobs)
        if kind is not None and room > 0:
            for job in list(islice((job for job in self.waiting if self._kind(job) == kind), room)):
                self.waiting.remove(job)
                worker.begin(job)

    def _kind(self, job: J) -> Hashable:
        """Return the kind of a job; None once a worker has died with the job."""
        return None if job.key in self._deaths else job.kind

    def accept(self, worker: H, key: str, message: Message) -> Iterator[tuple[J, Message]]:
        """Process a worker's message about a job in progress."""
        job = worker.jobs[key]
        if isinstance(message, Capacity):
            self._capacity[job.kind] = message.jobs
            return
        if isinstance(message, Final):
            del worker.jobs[key]
        yield job, message

    def died(self, worker: H, death: Died) -> Iterator[tuple[J, Message]]:
        """Remove a dead worker, and retry the worker's jobs before all waiting jobs."""
        self.workers.remove(worker)
        log.warning("worker died (%s) with jobs: %s", death.how, ", ".join(worker.jobs) or "none")
        for job in reversed(worker.jobs.values()):
            yield job, self._retried(job, death)

    def _retried(self, job: J, death: Died) -> Died | GivenUp:
        """Queue a job of a dead worker again, before all others, or give the job up."""
        deaths = self._deaths.get(job.key, 0) + 1
        log.warning("job %s: %s", job.key, "given up" if deaths == MAX_DEATHS else f"retry {deaths}")
        if deaths == MAX_DEATHS:
            return GivenUp(self.lost(deaths, death))
        self._deaths[job.key] = deaths
        self.waiting.appendleft(job)
        return death
