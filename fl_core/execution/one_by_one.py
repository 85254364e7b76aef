"""Execution: a job becomes an update. A pure function of the job, whatever is computed beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from fl_core.local.work import LocalWork
from fl_core.server.jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fl_core.problems.problem import World


@dataclass(slots=True)
class Need:
    """A simulation cannot go on before `job` is computed; a driver fills the result in."""

    job: Job
    world: World
    local: LocalWork
    jobs: Callable[[], Iterator[Job]]  # it and all others whose result is missing, earliest arrival first
    wasted: int = 0  # jobs that were computed and then dismissed, since the last need


class Execution(Protocol):
    """Fills in results."""

    @property
    def label(self) -> str:
        """How it computes, for the record."""

    def fill(self, needs: Sequence[Need]) -> int:
        """Compute the job of each need, and as many others of their jobs as pays; returns how many it did."""


class OneByOne:
    """The plain reference: one job, one local step after the other."""

    label = "one by one"

    def fill(self, needs: Sequence[Need]) -> int:
        """Compute the jobs that are needed now."""
        for need in needs:
            work(need.job, need.world, need.local)
        return len(needs)


def work(job: Job, world: World, local: LocalWork) -> None:
    """K local steps from the model that was sent; writes `delta`, `gradient` and `finite` of the job."""
    if not job.steps:
        job.delta, job.gradient = torch.zeros_like(job.start), torch.zeros_like(job.start)
        return
    y = job.start
    total: Tensor | None = None
    state: dict[str, Any] = {}
    for sample in local.samples(world, job).to(y.device).unbind():
        g = local.correct(world.gradient(y, job.client, sample), y, job)
        y = local.move(y, g, job.lr, state)
        total = g if total is None else total + g
    assert total is not None
    job.delta = y - job.start
    job.gradient = total / job.steps if job.steps > 1 else total
    # A sum is finite only if all its terms are, and costs a fifth of isfinite().all().
    job.finite = bool(torch.isfinite(job.delta.sum()))
