"""Jobs, their messages, and the interface of every engine.

A job defines its own computation: the pool sends it to a worker and returns its messages. A job whose worker
dies is retried; after three deaths it is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

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


class PoolJob(Protocol):
    """A computation for one worker. It is pickled, and carries all that it needs."""

    @property
    def key(self) -> str:
        """Its identity among the jobs of a pool."""

    @property
    def kind(self) -> Hashable:
        """Jobs of one kind can be computed side by side in one worker; None for one that goes alone."""

    @property
    def saves(self) -> bool:
        """Whether it checks `Worker.stopping` and saves its state; other jobs are ended at once."""

    def compute(self, worker: Worker) -> None:
        """Compute it, and its companions in the worker; the last message of each is a `Final`."""

    def retries(self) -> Sequence[Self]:
        """What is computed instead once its worker has died: itself, or the parts of which it consists.

        Each is then computed alone, so that one that kills its workers is given up alone.
        """

    def files(self) -> dict[str, bytes]:
        """What it has left on this machine's disk so far, by name; empty if nothing."""

    def put_files(self, files: Mapping[str, bytes]) -> None:
        """Leave on this machine's disk what was left on another's."""

    def elsewhere(self, folder: Path) -> Self:
        """The same job on another machine than the driver's, with its files in `folder`."""


class Worker(Protocol):
    """The worker as a job in progress sees it."""

    @property
    def stopping(self) -> bool:
        """Whether the pool is stopped: the job must save its state and return."""

    def tell(self, job: PoolJob, message: Message) -> None:
        """Send a message about this job, or about a companion of it."""

    def note(self, job: PoolJob) -> Any:
        """The next note that was sent to a job, or None."""

    def companion(self) -> PoolJob | None:
        """Another job of this kind to run beside it, or None; to be called while there is capacity."""

    def shared(self, make: Callable[[], T]) -> T:
        """What all jobs of this worker have in common, such as data: made once."""


J = TypeVar("J", bound=PoolJob)


class Pool(Protocol[J]):
    """An engine that computes jobs. Results depend neither on the engine nor on its size."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(self, *_: object) -> None:
        """Stop it."""

    def submit(self, job: J) -> None:
        """Compute a job as soon as there is a worker for it, after those that were submitted before."""

    def send(self, job: J, note: object) -> None:
        """Send a note to a job; one that is not in progress does not get it."""

    @property
    def idle(self) -> int:
        """How many more jobs could start immediately."""

    @property
    def busy(self) -> bool:
        """Whether there are jobs whose final message has not been received yet."""

    def messages(self, seconds: float) -> list[tuple[J, Message]]:
        """The messages since the last call; empty if none comes within `seconds`."""

    def stop(self) -> None:
        """End all workers. Jobs that can save their state do so first, within a time limit."""
