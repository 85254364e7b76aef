"""`execution: auto`: the fastest way to compute the jobs of a run, found by timing the run's own jobs.

Trials of `asyncfl tune` use it. `Choice` compares widths of stacks (and CUDA graphs); `Auto` executes with
the choice.

Free: all constants, which only affect speed.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from statistics import median
from time import perf_counter, thread_time
from typing import ClassVar

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from fl_core.execution.cuda_graphs import Graphed
from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
GRAPHS = 0  # stands for CUDA graphs in the place of a width
MIN_GAIN = 0.03  # a wider stack has to be faster by this much
MIN_TIMED_CALLS, MAX_TIMED_CALLS = 3, 8  # per width in a comparison; the first call of each is not timed
ENOUGH_SECONDS = 0.1  # of timed calls, for a width
MAX_LOST_COMPARISONS = 2  # widths in a row without a gain before wider ones are skipped
MAX_STACKED_NUMBERS = 2**27  # on a CPU
GPU_MEMORY_FRACTION = 1 / 16  # for a stack on a GPU, which several processes may share


class Choice:
    """The width with the most used updates per second; 1 unless a stack was measured to be faster.

    From narrow to wide, each width is compared with the best so far: their calls alternate, so that both run
    under the same machine load, and the medians are compared. Jobs computed and then dismissed count as lost.
    """

    def __init__(self, widths: Sequence[int] = WIDTHS) -> None:
        self._best, *self._challengers = widths
        self._lost = 0  # comparisons in a row that the best has won
        self._cost = {self._best: 1.0}  # width → time per job, relative to one by one
        self._computed = dict.fromkeys(widths, 0)
        self._wasted = dict.fromkeys(widths, 0)
        self._meet()

    def _meet(self) -> None:
        """Start a new comparison."""
        self._calls: dict[int, list[float]] = {width: [] for width in (self._best, *self._challengers[:1])}
        self._seconds = dict.fromkeys(self._calls, 0.0)
        self.width = self._best  # how many jobs the next call computes together

    @property
    def measuring(self) -> bool:
        """True if widths are left to try."""
        return bool(self._challengers)

    def narrow(self, widest: float) -> None:
        """Skip widths above `widest`, for which memory would not suffice."""
        self._challengers = [width for width in self._challengers if width <= widest]
        self._meet()

    def saw(self, width: int, jobs: int, seconds: float, wasted: int = 0) -> None:
        """Record the time of a call, and choose the width of the next.

        Args:
            width: The most jobs that the call computed together.
            jobs: The jobs computed.
            seconds: How long the call took.
            wasted: Jobs that were computed and dismissed since the previous call.
        """
        self._computed[width] += jobs
        self._wasted[width] += wasted
        if not self.measuring:
            self.width = min(self._cost, key=self._paid)
        elif width in self._calls:  # or another run has ended the comparison meanwhile
            self._seconds[width] += seconds if self._calls[width] else 0
            self._calls[width].append(seconds / jobs)
            self.width = min(self._calls, key=lambda tried: len(self._calls[tried]))
            if all(map(self._settled, self._calls)):
                self._decide()

    def _settled(self, width: int) -> bool:
        """Return whether a width was timed long enough in the present comparison."""
        timed = len(self._calls[width]) - 1
        return timed >= MAX_TIMED_CALLS or (
            timed >= MIN_TIMED_CALLS and self._seconds[width] >= ENOUGH_SECONDS
        )

    def _decide(self) -> None:
        """Move to the next width, or to the best if none is left or a better width is unlikely."""
        challenger = self._challengers.pop(0)
        best, alternative = (median(calls[1:]) for calls in self._calls.values())
        if alternative <= (1 - MIN_GAIN) * best:
            self._cost[challenger] = self._cost[self._best] * alternative / best
            self._best, self._lost = challenger, 0
        else:
            self._cost[challenger] = self._cost[self._best] * max(1, alternative / best)
            self._lost += 1
        if self._lost == MAX_LOST_COMPARISONS:
            self._challengers.clear()
        self._meet()

    def _paid(self, width: int) -> float:
        """Return the cost per used update."""
        used = 1 - min(1, self._wasted[width] / max(1, self._computed[width]))
        return self._cost[width] / used if used else float("inf")


class Auto:
    """Execution by single jobs, CUDA graphs or stacks, whichever is fastest; for runs of a single problem.

    The choice is remembered for the life of the process: for a kind of world (data and model), device, local
    work (mini-batch, K), and number of jobs to choose from.
    """

    known: ClassVar[dict[Hashable, Choice]] = {}

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._choice: Choice | None = None
        self._runs = 0  # the most that ran side by side when a choice was made
        self._stackable = False  # whether there was more than one job to choose from

    @property
    def label(self) -> str:
        """The choice, for the record."""
        if self._choice is None:
            return "auto"
        if self.measuring:
            return "auto, still measuring"
        width = self._choice.width
        if width == GRAPHS:
            return "auto: CUDA graphs"
        return f"auto: {f'up to {width} together' if width > 1 else 'one by one'}"

    @property
    def measuring(self) -> bool:
        """True if the choice is still open."""
        return self._choice is None or self._choice.measuring

    @property
    def pays(self) -> bool:
        """True if interleaving more runs would help: a stack is faster, or was not possible alone."""
        choice = self._choice
        return choice is not None and not choice.measuring and (choice.width > 1 or not self._stackable)

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Compute the needed jobs and, while faster, other jobs in flight."""
        if not any(request.job.steps for request in requests):  # nothing to compute, nor to measure
            return OneByOne().execute(requests)
        if self._choice is None or len(requests) > self._runs:
            self._runs = len(requests)
            return self._begin(requests)
        width, began = self._choice.width, self._now(requests)
        execution: Execution = Graphed() if width == GRAPHS else AllInFlight(width)
        computed = execution.execute(requests)
        wasted = sum(request.wasted for request in requests)
        self._choice.saw(width, sum(computed), self._now(requests) - began, wasted)
        return computed

    def _now(self, requests: Sequence[ComputeRequest]) -> float:
        """Return the time in seconds; on a CPU the thread's own, without other processes.

        Once nothing is left to measure, the time is 0: a system call can take as long as the work.
        """
        if not (self._choice and self._choice.measuring):
            return 0.0
        clock = self._clock or (thread_time if requests[0].job.start.device.type == "cpu" else perf_counter)
        return clock()

    def _begin(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Make the first call: use the choice of earlier runs with equal work, or begin a comparison."""
        room = sum(len(list(islice(request.jobs(), WIDTHS[-1]))) for request in requests)
        stacks = [width for width in WIDTHS[1:] if width < 2 * room]
        self._stackable = bool(stacks)
        on_gpu = requests[0].job.start.device.type == "cuda"
        widths = [1, *([GRAPHS] if on_gpu else []), *stacks]
        key = (requests[0].world.kind, requests[0].job.start.device, requests[0].local, len(widths))
        if key in self.known:
            self._choice = self.known[key]
            return self.execute(requests)
        self._choice = self.known[key] = Choice(widths)
        elements = 0

        def keep(tensor: Tensor) -> Tensor:
            nonlocal elements
            elements += tensor.numel()
            return tensor

        with saved_tensors_hooks(keep, lambda tensor: tensor):
            computed = AllInFlight(1).execute(requests)
        steps = sum(request.job.steps for request in requests)
        self._choice.narrow(
            largest(requests[0].job.start) / (requests[0].job.start.numel() + elements / steps)
        )
        return computed


def largest(model: Tensor) -> float:
    """Return how many numbers a stack may hold: models, and activations kept for gradients."""
    if model.device.type == "cpu":
        return MAX_STACKED_NUMBERS
    return torch.cuda.mem_get_info(model.device)[1] * GPU_MEMORY_FRACTION / model.element_size()
