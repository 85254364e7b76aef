"""Jobs, their messages, and the worker that computes them.

A job defines its own computation: the pool sends it to a worker and returns its messages. A job whose worker
dies is retried; after three deaths it is given up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

DEATHS = 3  # of a job's workers, after which it is given up

T = TypeVar("T")


class Message:
    """A message about a job; each kind of job has its own."""

    __slots__ = ()


class Final(Message):
    """The last message of a job."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Capacity(Message):
    """How many jobs of its kind can usefully be computed side by side in one worker."""

    jobs: int


@dataclass(frozen=True, slots=True)
class Died(Message):
    """The job's worker is gone; the job is retried."""

    how: str


@dataclass(frozen=True, slots=True)
class GivenUp(Final):
    """Too many of the job's workers died."""

    reason: str


class PoolJob(ABC):
    """A computation for one worker. It is pickled, and carries all that it needs."""

    @property
    @abstractmethod
    def key(self) -> str:
        """The job's identity among those of a pool."""

    @property
    def kind(self) -> Hashable:
        """Jobs of one kind can be computed side by side in one worker; None for one that goes alone."""
        return None

    @property
    def saves(self) -> bool:
        """Whether the job checks `Worker.stopping` and saves its state; others are ended at once."""
        return False

    @abstractmethod
    def compute(self, worker: Worker) -> None:
        """Compute the job, and companions in the worker; the last message of each is a `Final`."""

    def files(self) -> dict[str, bytes]:
        """Return what the job has left on this machine's disk so far, by name."""
        return {}

    def put_files(self, files: Mapping[str, bytes]) -> None:  # noqa: B027 - a job need not leave files
        """Leave on this machine's disk what was left on another's."""

    def elsewhere(self, folder: Path) -> Self:
        """Return the same job on another machine than the driver's, with files in `folder`."""
        return self


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request to a job in progress to end."""

    key: str


class Worker(ABC):
    """The worker as a job in progress sees it; what has arrived for its jobs is queued here."""

    def __init__(self) -> None:
        self.stopping = False  # whether the pool is stopped: the job must save its state and return
        self.companions: deque[PoolJob] = deque()
        self.cancelled: set[str] = set()  # keys of jobs that are to end
        self._shared: dict[Callable[[], Any], Any] = {}

    @abstractmethod
    def tell(self, job: PoolJob, message: Message) -> None:
        """Send a message about a job, or about a companion of it, to the driver."""

    @abstractmethod
    def look(self) -> None:
        """Queue what has arrived."""

    def take(self, arrived: PoolJob | Cancel) -> None:
        """Queue a job, or note that one is to end."""
        if isinstance(arrived, Cancel):
            self.cancelled.add(arrived.key)
        else:
            self.companions.append(arrived)

    def is_cancelled(self, job: PoolJob) -> bool:
        """Return whether a job in progress is to end."""
        self.look()
        return job.key in self.cancelled

    def companion(self) -> PoolJob | None:
        """Return another job to run beside those in progress, or None; call it while there is capacity."""
        self.look()
        return self.companions.popleft() if self.companions else None

    def shared(self, make: Callable[[], T]) -> T:
        """Return what all jobs of this worker have in common, such as data: made once."""
        if make not in self._shared:
            self._shared[make] = make()
        shared: T = self._shared[make]
        return shared


J = TypeVar("J", bound=PoolJob)
