"""Computation of jobs one by one: the plain reference that every other execution is tested against.

`work` and `make_steps` are the local training of a client; real clients (`fl_core/live`) call them, too.

Fixed: each step, bit for bit: golden trajectories and the baseline of suite `ci` are computed so.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from fl_core.execution.execution import ComputeRequest
from fl_core.local_work import LocalWork, Work
from fl_core.problems.problem import Report, World
from fl_core.server.jobs import Job


class OneByOne:
    """Execution of exactly the requested jobs, each alone and step by step."""

    label = "one by one"

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Compute exactly the requested jobs, none ahead of time; return 1 for each."""
        for request in requests:
            work(request.job, request.world, request.local)
        return [1] * len(requests)


def work(job: Job, world: World, local: LocalWork) -> None:
    """Make K local steps from the model sent; write the result into the job."""
    if not job.steps:
        job.delta, job.gradient = torch.zeros_like(job.start), torch.zeros_like(job.start)
        return
    if local.whole:
        local.compute(job, world)
        return
    samples, device = local.samples(world, job), job.start.device
    if samples.device != device:
        samples = samples.to(device)
    checksum, reported = make_steps(job, world, local, samples)
    if reported:
        job.reported = {name: float(value) / job.steps for name, value in reported.items()}
    job.finite = bool(torch.isfinite(checksum))


class Gradients(Protocol):
    """The gradients of a world, as computed by `World` or by an execution."""

    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        """Return `World.gradient`."""

    def gradient_and_report(self, model: Tensor, client: int, sample: Tensor) -> tuple[Tensor, Report]:
        """Return `World.gradient_and_report`."""


def make_steps(job: Job, gradients: Gradients, local: LocalWork, samples: Tensor) -> tuple[Tensor, Report]:
    """Make the local steps of a job; write delta and gradient, without waiting for a GPU.

    Args:
        job: A job of at least one step.
        gradients: The world of the job, or its gradients by CUDA graphs.
        local: The local work.
        samples: The samples of its steps [K, ...], on the device of the model.

    Returns:
        A number [] that is finite only if the whole delta is, and the sums of what the steps reported.
    """
    y, writes = job.start, job.start._version
    inputs = Work(job.start, job.broadcast, job.client_state)
    total: Tensor | None = None
    reported: Report = {}
    state: dict[str, Any] = {**job.moments}
    for sample in samples.unbind():
        if job.reports:
            slope, report = gradients.gradient_and_report(y, job.client, sample)
            reported = {name: value + reported.get(name, 0) for name, value in report.items()}
        else:
            slope = gradients.gradient(y, job.client, sample)
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
    if job.moments:
        job.new_moments = {name: state[name] for name in job.moments}
    # A sum is finite only if all its terms are; this takes a fifth of the time of isfinite().all().
    return job.delta.sum(), reported


def written_into(local: LocalWork) -> RuntimeError:
    """Return the error for local work changing the given model, shared with others."""
    return RuntimeError(
        f"{type(local).__name__}, or the problem's gradient, changes the given model in place: "
        "return a new one, or write into a .clone()"
    )


def must_be_like(start: Tensor, local: LocalWork, end: Tensor, gradients: Tensor) -> None:
    """Raise ValueError unless local work returns models and gradients of the given shape."""
    for method, tensor in (("move", end), ("correct", gradients)):
        if tensor.shape != start.shape:
            shapes = f"shape {tuple(start.shape)}, not {tuple(tensor.shape)}"
            raise ValueError(f"{type(local).__name__}.{method} must return a tensor of {shapes}")
