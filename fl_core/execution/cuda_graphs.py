"""Gradients as CUDA graphs: on a GPU, a gradient is captured once and replayed for every job.

A network on a small mini-batch is hundreds of kernels of a few microseconds, which a GPU computes faster than
Python launches them. A CUDA graph launches all of them with one call. Jobs are computed one after the other
by the same kernels, so results equal those of `OneByOne` bit for bit.

Fixed: equality with `OneByOne` (tests/fl_core/test_cuda_graphs.py, on a GPU).
"""

import logging
from collections.abc import Callable, Sequence
from itertools import islice
from math import isfinite
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from fl_core.execution.execution import ComputeRequest
from fl_core.execution.one_by_one import make_steps, work
from fl_core.execution.stacked import in_turn
from fl_core.problems.problem import Report, World
from fl_core.server.jobs import Job

log = logging.getLogger(__name__)

WARM_UP_CALLS = 3  # before a capture, as PyTorch recommends
CHECKED_REPLAYS = 2  # after a capture; each is compared with a plain gradient

Computed = tuple[Tensor, Report]  # a gradient [d], and a report, which is empty unless requested


class Graphed:
    """Jobs in turn, each gradient a replayed CUDA graph; plain gradients where none can be captured.

    Up to `max_jobs` jobs in flight are computed whenever one is needed, and the host waits for the GPU once
    for all of them.
    """

    def __init__(self, max_jobs: int = 32) -> None:
        self.max_jobs = max_jobs
        self._refusals: dict[str, None] = {}  # why gradients were not captured, in order

    @property
    def label(self) -> str:
        """The way of computing, for the record."""
        if self._refusals:
            return f"one by one, without CUDA graphs: {'; '.join(self._refusals)}"
        return "CUDA graphs"

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Compute the requested jobs and the next jobs of each simulation, up to `max_jobs` in all."""
        computed = [0] * len(requests)
        waiting: list[tuple[Job, Tensor, Report]] = []
        for job, place in islice(in_turn(requests), max(self.max_jobs, len(requests))):
            request = requests[place]
            world, local = request.world, request.local
            computed[place] += 1
            graphs = self._graphs(job, world)
            if graphs is None:
                work(job, world, local)
                continue
            samples = local.samples(world, job).pin_memory().to(job.start.device, non_blocking=True)
            waiting.append((job, *make_steps(job, Replayed(world, graphs), local, samples)))
        if waiting:
            _fetch(waiting)
        return computed

    def _graphs(self, job: Job, world: World) -> "CapturedGradients | None":
        """Return the captured gradients of a job's world, or None if the job is computed plainly."""
        if job.start.device.type != "cuda":
            self._refusals["graphs need a GPU"] = None
            return None
        graphs = CapturedGradients.of(world)
        if graphs.refusal:
            self._refusals[graphs.refusal] = None
            return None
        return graphs if job.steps and world.sizes[job.client] else None


def _fetch(waiting: Sequence[tuple[Job, Tensor, Report]]) -> None:
    """Write finiteness of deltas, and means of reports, into jobs after a single wait for the GPU."""
    on_device = [value for _, checksum, reported in waiting for value in (checksum, *reported.values())]
    values = iter(torch.stack([value.double() for value in on_device]).tolist())
    for job, _, reported in waiting:
        job.finite = isfinite(next(values))
        job.reported = {name: next(values) / job.steps for name in reported}


class CapturedGradients:
    """The gradients of a world, captured once for each shape of a mini-batch, with and without reports."""

    _of_worlds: ClassVar[WeakKeyDictionary[World, "CapturedGradients"]] = WeakKeyDictionary()

    def __init__(self, world: World) -> None:
        # Why the gradients of this world are computed plainly; "" if they are captured
        self.refusal = "" if world.by_sample else f"gradients of {type(world).__name__} depend on the client"
        self._graphs: dict[tuple[torch.Size, bool], Graph] = {}  # by shape of a sample, and reports or not

    @classmethod
    def of(cls, world: World) -> "CapturedGradients":
        """Return the captured gradients of a world, kept as long as the world."""
        gradients = cls._of_worlds.get(world)
        if gradients is None:
            gradients = cls._of_worlds[world] = cls(world)
        return gradients

    def compute(
        self, plain: Callable[[Tensor, Tensor], Computed], reports: bool, *inputs: Tensor
    ) -> Computed:
        """Return the result of `plain` for a model [d] and a sample, by a replay where possible."""
        shape = inputs[1].shape, reports
        graph = self._graphs.get(shape)
        if graph is not None and not graph.checks_left:
            return graph.replay(*inputs)
        expected = plain(*inputs)
        if self.refusal:
            return expected
        try:
            if graph is None:
                graph = self._graphs[shape] = Graph(plain, *inputs)
            graph.check(expected, *inputs)
        except RuntimeError as error:  # torch's own too, of a call that no graph can hold
            self._graphs.clear()
            torch.cuda.synchronize(inputs[0].device)
            self.refusal = f"no capture: {str(error).splitlines()[0]}"
            log.warning(
                "execution: graphed has no effect, and gradients are computed without CUDA graphs: %s",
                self.refusal,
            )
        return expected


class Replayed(NamedTuple):
    """The gradients of a world, by captured graphs."""

    world: World
    graphs: CapturedGradients

    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        """Return the gradient [d] on a mini-batch."""

        def plain(model: Tensor, sample: Tensor) -> Computed:
            return self.world.gradient(model, client, sample), {}

        return self.graphs.compute(plain, False, model, sample)[0]

    def gradient_and_report(self, model: Tensor, client: int, sample: Tensor) -> Computed:
        """Return the gradient [d] on a mini-batch, and the report."""

        def plain(model: Tensor, sample: Tensor) -> Computed:
            return self.world.gradient_and_report(model, client, sample)

        return self.graphs.compute(plain, True, model, sample)


class Graph:
    """A captured gradient: kernels, and the tensors read and written."""

    def __init__(self, plain: Callable[[Tensor, Tensor], Computed], model: Tensor, sample: Tensor) -> None:
        self.model, self.sample = model.clone(), sample.clone()
        self.checks_left = CHECKED_REPLAYS
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP_CALLS):
                plain(self.model, self.sample)
        torch.cuda.current_stream().wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._result = plain(self.model, self.sample)

    def replay(self, model: Tensor, sample: Tensor) -> Computed:
        """Return gradient and report of another model and sample, as new tensors."""
        self.model.copy_(model)
        self.sample.copy_(sample)
        self._graph.replay()
        gradient, report = self._result
        return gradient.clone(), {name: value.clone() for name, value in report.items()}

    def check(self, expected: Computed, model: Tensor, sample: Tensor) -> None:
        """Raise RuntimeError unless a replay equals the plain gradient and report bit for bit."""
        gradient, report = self.replay(model, sample)
        plain, reported = expected
        same = report.keys() == reported.keys() and torch.equal(gradient, plain)
        if not (same and all(torch.equal(report[name], value) for name, value in reported.items())):
            raise RuntimeError(
                "the gradient of a replayed CUDA graph differs from the one computed without it"
            )
        self.checks_left -= 1
