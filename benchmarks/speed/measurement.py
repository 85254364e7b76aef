"""Updates a second of simulations, and of any loop beside them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import process_time

import torch

from benchmarks.speed.yardstick import Compute
from fl_core.execution.auto import Auto
from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation
from fl_core.problems.problem import CPU
from fl_core.recording.interleave import simulate_together


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch computes on one thread meanwhile."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def simulations(
    experiments: Sequence[Experiment], execution: Execution, device: torch.device = CPU
) -> Compute:
    """Return simulations side by side, after `auto` has chosen how to compute."""
    begun = [Simulation(each, each.scenario.problem.world(each.seed).to(device)) for each in experiments]
    counted = CountingExecution(execution)
    events = simulate_together(begun, len(begun), counted)

    def compute(updates: int) -> int:
        before = counted.computed
        for _ in events:
            if counted.computed - before >= updates:
                break
        return max(1, counted.computed - before)  # one that diverged has no more

    compute(1)
    while isinstance(execution, Auto) and execution.measuring:
        compute(1)
    return compute


class CountingExecution:
    """An execution that counts the jobs it computes."""

    def __init__(self, execution: Execution) -> None:
        self.label = execution.label
        self.computed = 0
        self._execution = execution

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Compute what is needed, and count it."""
        computed = self._execution.execute(requests)
        self.computed += sum(computed)
        return computed


def rate(compute: Compute, updates: int) -> float:
    """Return updates per second of processor time, which other processes hardly change."""
    began = process_time()
    computed = compute(updates)
    return computed / (process_time() - began)
