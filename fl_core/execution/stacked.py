"""Stacked execution: jobs in flight are computed together, in one call for all.

In virtual time the model, mini-batches and length of a job are fixed when it is sent. So all jobs in flight
can be computed when the first result is needed, and the order of events does not change. The jobs may belong
to one simulation, or to several of one problem (`recording/interleave.py`).

Fixed: results up to the rounding of sums. Free: which jobs a stack has, and in which order.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate, islice, zip_longest
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from fl_core.execution.execution import ComputeRequest
from fl_core.execution.one_by_one import must_be_like, work, written_into
from fl_core.local_work import LocalWork, Work
from fl_core.problems.problem import Report, World
from fl_core.server.jobs import Job


class AllInFlight:
    """Stacked execution: up to `max_batch` jobs per call, the earliest arrivals first."""

    def __init__(self, max_batch: int = 32) -> None:
        self.max_batch = max_batch

    @property
    def label(self) -> str:
        """The way of computing, for the record."""
        return f"all in flight, up to {self.max_batch} together"

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Compute the requested jobs and the next jobs of each simulation, up to `max_batch` in all.

        Jobs share a stack if their worlds are of one kind and on one device, and their local work is equal.
        """
        families: dict[tuple[Hashable, torch.device, LocalWork], list[tuple[Job, World]]] = {}
        members = [
            families.setdefault((request.world.kind, request.job.start.device, request.local), [])
            for request in requests
        ]
        chosen = list(islice(in_turn(requests), max(self.max_batch, len(requests))))
        for job, place in chosen:
            if job.steps and not requests[place].local.whole:
                members[place].append((job, requests[place].world))
            else:
                work(job, requests[place].world, requests[place].local)
        for (_, _, local), pairs in families.items():
            if len({job.steps for job, _ in pairs}) > 1:
                pairs.sort(key=lambda pair: -pair[0].steps)
            for first in range(0, len(pairs), self.max_batch):
                work_together(pairs[first : first + self.max_batch], local)
        counts = Counter([place for _, place in chosen])
        return [counts[place] for place in range(len(requests))]


def in_turn(requests: Sequence[ComputeRequest]) -> Iterator[tuple[Job, int]]:
    """Yield the first job without a result of each simulation, with its request's index; then the second."""
    for rank in zip_longest(*[request.jobs() for request in requests]):
        yield from [(job, place) for place, job in enumerate(rank) if job is not None]


def work_together(pairs: Sequence[tuple[Job, World]], local: LocalWork) -> None:
    """Compute J jobs as `work` does, stacked [J, d]; equal up to the last bits of a sum.

    Args:
        pairs: Jobs with their worlds, all of one kind, by falling number of steps: when the last jobs of the
            stack have made their steps, the stack shrinks from its end.
        local: The local work of all jobs.
    """
    if len(pairs) == 1:
        return work(*pairs[0], local)
    jobs, world = [job for job, _ in pairs], pairs[0][1]
    stack = Work(
        torch.stack([job.start for job in jobs]),
        _stacked([job.broadcast for job in jobs]),
        _stacked([job.client_state for job in jobs]),
    )
    total = y = stack_start = stack.start
    counts = [job.steps for job in jobs]
    widths = [len(jobs)]
    # Mini-batches job by job, put into the order of the steps; they all go to a GPU in one transfer.
    drawn = torch.cat([local.samples(world_of_job, job) for job, world_of_job in pairs])
    if counts[0] > 1:
        widths = [sum(count > step for count in counts) for step in range(counts[0])]
        firsts = [0, *accumulate(counts)]
        drawn = drawn[[firsts[place] + step for step, active in enumerate(widths) for place in range(active)]]
    samples = torch.split(drawn.to(y.device), widths)
    clients = torch.tensor([job.client for job in jobs], device=y.device)
    lr = torch.tensor([job.lr for job in jobs], dtype=y.dtype, device=y.device)[:, None]
    state: dict[str, Any] = _stacked([job.moments for job in jobs])
    ended: list[tuple[Tensor, Tensor, Tensor]] = []  # models, sums of gradients, starts; last jobs first
    reports = any(job.reports for job in jobs)
    reported: list[Report] = []  # of each step, [J] as far as its jobs go
    for step, (active, sample) in enumerate(zip(widths, samples, strict=True)):
        if active < len(y):
            ended.append((y[active:], total[active:], stack.start[active:]))
            _note_moments(jobs[active : len(y)], state, active)
            y, total, lr, clients, state = _first(active, y, total, lr, clients, state)
            stack = Work(*_first(active, stack.start, stack.broadcast, stack.client_state))
        slopes, report = _computed(world, reports, y, clients, sample)
        reported.append(report)
        g = local.correct(slopes, y, stack)
        y = local.move(y, g, lr, state)
        total = total + g if step else g
    _note_moments(jobs[: len(y)], state)
    start = stack.start
    if stack_start._version:
        raise written_into(local)
    must_be_like(start, local, y, total)
    if ended:
        last = (y, total, start)
        y, total, start = (torch.cat(parts) for parts in zip(last, *reversed(ended), strict=True))
    delta = y - start
    if counts[0] > 1:
        total = total / torch.tensor(counts, dtype=y.dtype, device=y.device)[:, None]
    sums = delta.sum(1).tolist()  # finite only if all their terms are
    results = zip(jobs, delta.unbind(), total.unbind(), sums, strict=True)
    for job, moved, mean, full_delta in results:
        job.delta, job.gradient, job.finite = moved, mean, isfinite(full_delta)
    _note_reports(jobs, reported)
    return None


def _computed(
    world: World, reports: bool, y: Tensor, clients: Tensor, samples: Tensor
) -> tuple[Tensor, Report]:
    """Return gradients [J, d], and reports, [J] each, on request."""
    if reports:
        return world.gradients_and_reports(y, clients, samples)
    return world.gradients(y, clients, samples), {}


def _note_moments(jobs: Sequence[Job], state: dict[str, Any], first: int = 0) -> None:
    """Write the optimisers' memory of jobs, stacked from row `first` on."""
    for row, job in enumerate(jobs, first):
        job.new_moments = {name: state[name][row].clone() for name in job.moments}


def _note_reports(jobs: Sequence[Job], reported: Sequence[Report]) -> None:
    """Write the means of each job's reports, over the steps of the job."""
    for name in reported[0]:
        losses = [report[name].tolist() for report in reported]
        for place, job in enumerate(jobs):
            if job.reports:
                job.reported[name] = sum(row[place] for row in losses[: job.steps]) / job.steps


def _first(count: int, *parts: Any) -> list[Any]:
    """Return the parts of a stack for its first `count` jobs."""
    return [_rows(count, part) for part in parts]


def _rows(count: int, part: Any) -> Any:
    """Return the first rows of all tensors in nested dicts; other values belong to all jobs."""
    if isinstance(part, dict):
        return {key: _rows(count, value) for key, value in part.items()}
    return part[:count] if isinstance(part, Tensor) else part


def _stacked(parts: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the tensors of all jobs stacked, by name [J, …]."""
    return {key: torch.stack([part[key] for part in parts]) for key in parts[0]}
