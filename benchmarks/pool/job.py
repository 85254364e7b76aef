"""Jobs, messages about jobs, and the interface of workers.

A job (`PoolJob`) defines its own computation: the pool sends it to a worker and returns its messages. A job
whose worker dies is retried; after three deaths it is given up. Runs and baselines are jobs of
`benchmarks/runs/run_jobs.py`; the workers are `pool/worker.py` and `pool/ray_worker.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

MAX_DEATHS = 3  # workers that die with a job before it is given up

T = TypeVar("T")


class Message:
    """Base class of messages about a job; each kind of job defines further messages."""

    __slots__ = ()


class Final(Message):
    """The last message of a job."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Capacity(Message):
    """Useful number of jobs of the sender's kind to compute side by side in a worker."""

    jobs: int


@dataclass(frozen=True, slots=True)
class Died(Message):
    """Death of the job's worker; the job is retried."""

    how: str  # signal or exit code of the process, or the node


@dataclass(frozen=True, slots=True)
class GivenUp(Final):
    """End of a job after the death of too many workers."""

    reason: str


class PoolJob(ABC):
    """Base class of jobs: a picklable computation for a worker, complete with all inputs."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Identity of the job within a pool."""

    @property
    def kind(self) -> Hashable:
        """Kind of the job: jobs of equal kind can share a worker; None for a job to be computed alone."""
        return None

    @property
    def saves(self) -> bool:
        """Whether the job checks `Worker.stopping` and saves the state; other jobs are ended at once."""
        return False

    @abstractmethod
    def compute(self, worker: Worker) -> None:
        """Compute the job, and companions in the worker; the last message of each is a `Final`."""

    def files(self) -> dict[str, bytes]:
        """Return the job's files on the local disk by name."""
        return {}

    def put_files(self, files: Mapping[str, bytes]) -> None:  # noqa: B027 - a job need not leave files
        """Write files of the job from another machine to the local disk."""

    def elsewhere(self, folder: Path) -> Self:
        """Return the job for a node of a cluster, without a disk in common; files go to `folder`."""
        return self


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request to a job in progress to end."""

    key: str


class Worker(ABC):
    """Interface of a worker to jobs in progress; arriving jobs and requests are queued here."""

    def __init__(self) -> None:
        self.stopping = False  # whether the pool is stopped: the job must save its state and return
        self.companions: deque[PoolJob] = deque()  # received, and not yet begun
        self.cancelled: set[str] = set()  # keys of jobs that are to end
        self._shared: dict[Callable[[], Any], Any] = {}

    @abstractmethod
    def tell(self, job: PoolJob, message: Message) -> None:
        """Send a message about a job, or about a companion of the job, to the driver."""

    @abstractmethod
    def look(self) -> None:
        """Queue all arrived jobs and requests."""

    def take(self, arrived: PoolJob | Cancel) -> None:
        """Queue a job, or note a request to end a job."""
        if isinstance(arrived, Cancel):
            self.cancelled.add(arrived.key)
        else:
            self.companions.append(arrived)

    def is_cancelled(self, job: PoolJob) -> bool:
        """Return whether a job in progress is to end."""
        self.look()
        return job.key in self.cancelled

    def companion(self) -> PoolJob | None:
        """Return another job to run next to the jobs in progress, or None; call only with capacity left."""
        self.look()
        return self.companions.popleft() if self.companions else None

    def shared(self, make: Callable[[], T]) -> T:
        """Return the object made by `make`, for instance loaded data; `make` is called once in a worker."""
        if make not in self._shared:
            self._shared[make] = make()
        shared: T = self._shared[make]
        return shared


J = TypeVar("J", bound=PoolJob)
