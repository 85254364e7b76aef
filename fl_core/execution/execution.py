"""The interface of executions: a simulation requests the result of a job, an execution computes it.

A result is a pure function of its job: it does not depend on the time of computation or on other jobs.

Fixed: that a result follows from its job alone; checkpoints, replays and stacks rely on it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, final

from fl_core.local_work import LocalWork
from fl_core.problems.problem import World
from fl_core.server.jobs import Job


@final
@dataclass(slots=True)
class ComputeRequest:
    """A job without a result at its arrival: `Simulation.events` yields it and waits for the result."""

    job: Job
    world: World
    local: LocalWork
    jobs: Callable[[], Iterator[Job]]  # this and all other jobs without a result, earliest arrival first
    wasted: int = 0  # jobs that were computed and then dismissed, since the last request


class Execution(Protocol):
    """A way of computing requested jobs."""

    @property
    def label(self) -> str:
        """The way of computing, for the record."""

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Compute the requested jobs, and other in-flight jobs where batching is faster.

        Args:
            requests: One for each simulation that waits.

        Returns:
            The number of jobs computed for each request.
        """
