"""One job after the other: the plain reference that every other execution agrees with."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fl_core.execution.execution import ComputeRequest
from fl_core.local.work import LocalWork
from fl_core.problems.problem import World
from fl_core.server.jobs import Job


class OneByOne:
    """The plain reference: one job, one local step after the other."""

    label = "one by one"

    def execute(self, requests: Sequence[ComputeRequest]) -> int:
        """Compute the jobs that are needed now."""
        for request in requests:
            work(request.job, request.world, request.local)
        return len(requests)


def work(job: Job, world: World, local: LocalWork) -> None:
    """Make K local steps from the model that was sent; write the results of the job."""
    if not job.steps:
        job.delta, job.gradient = torch.zeros_like(job.start), torch.zeros_like(job.start)
        return
    y = job.start
    total: Tensor | None = None
    losses: Tensor | None = None
    state: dict[str, Any] = {}
    for sample in local.samples(world, job).to(y.device).unbind():
        if job.with_loss:
            slope, loss = world.gradient_and_loss(y, job.client, sample)
            losses = loss if losses is None or loss is None else losses + loss
        else:
            slope = world.gradient(y, job.client, sample)
        g = local.correct(slope, y, job)
        y = local.move(y, g, job.lr, state)
        total = g if total is None else total + g
    assert total is not None
    job.delta = y - job.start
    job.gradient = total / job.steps if job.steps > 1 else total
    job.loss = None if losses is None else float(losses) / job.steps
    # A sum is finite only if all its terms are; this takes a fifth of the time of isfinite().all().
    job.finite = bool(torch.isfinite(job.delta.sum()))
