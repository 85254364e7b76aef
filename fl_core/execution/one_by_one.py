"""One job after the other: the plain reference that every other execution agrees with."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fl_core.execution.execution import ComputeRequest
from fl_core.local.work import LocalWork, Work
from fl_core.problems.problem import Report, World
from fl_core.server.jobs import Job


class OneByOne:
    """The plain reference: one job, one local step after the other."""

    label = "one by one"

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Compute the jobs that are needed now."""
        for request in requests:
            work(request.job, request.world, request.local)
        return [1] * len(requests)


def work(job: Job, world: World, local: LocalWork) -> None:
    """Make K local steps from the model that was sent; write the results of the job."""
    if not job.steps:
        job.delta, job.gradient = torch.zeros_like(job.start), torch.zeros_like(job.start)
        return
    y, writes = job.start, job.start._version
    inputs = Work(job.start, job.broadcast, job.client_state)
    total: Tensor | None = None
    reported: Report = {}
    state: dict[str, Any] = {}
    samples = local.samples(world, job)
    for sample in (samples if samples.device == y.device else samples.to(y.device)).unbind():
        if job.reports:
            slope, report = world.gradient_and_report(y, job.client, sample)
            reported = {name: value + reported.get(name, 0) for name, value in report.items()}
        else:
            slope = world.gradient(y, job.client, sample)
        g = local.correct(slope, y, inputs)
        y = local.move(y, g, job.lr, state)
        total = g if total is None else total + g
    assert total is not None
    if job.start._version != writes:
        raise written_into(local)
    if not y.shape == total.shape == inputs.start.shape:
        must_be_like(inputs.start, local, y, total)
    job.delta = y - inputs.start
    job.gradient = total / job.steps if job.steps > 1 else total
    if reported:
        job.reported = {name: float(value) / job.steps for name, value in reported.items()}
    # A sum is finite only if all its terms are; this takes a fifth of the time of isfinite().all().
    job.finite = bool(torch.isfinite(job.delta.sum()))


def written_into(local: LocalWork) -> RuntimeError:
    """Return the error of local work that changes the model it is given, which others hold, too."""
    return RuntimeError(
        f"{type(local).__name__}, or the problem's gradient, changes the model that it is given in place: "
        "return a new one, or write into a .clone()"
    )


def must_be_like(start: Tensor, local: LocalWork, end: Tensor, gradients: Tensor) -> None:
    """Raise ValueError unless local work returns models and gradients of the shape it is given."""
    for method, made in (("move", end), ("correct", gradients)):
        if made.shape != start.shape:
            shapes = f"shape {tuple(made.shape)}, not {tuple(start.shape)}"
            raise ValueError(f"{type(local).__name__}.{method} returns a tensor of {shapes}")
