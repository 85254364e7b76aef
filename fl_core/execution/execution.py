"""The execution interface: what a simulation needs computed, and what computes it.

A result is a pure function of its job, regardless of what is computed with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fl_core.local.work import LocalWork
    from fl_core.problems.problem import World
    from fl_core.server.jobs import Job


@dataclass(slots=True)
class Need:
    """A simulation cannot go on before `job` is computed; an execution fills in the result."""

    job: Job
    world: World
    local: LocalWork
    jobs: Callable[[], Iterator[Job]]  # this and all others whose result is missing, earliest arrival first
    wasted: int = 0  # jobs that were computed and then dismissed, since the last need


class Execution(Protocol):
    """Fills in results."""

    @property
    def label(self) -> str:
        """How it computes, for the record."""

    def fill(self, needs: Sequence[Need]) -> int:
        """Compute the job of each need, and as many of their other jobs as pays; returns their number."""
