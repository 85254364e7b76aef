"""Speed of the simulator: updates per second of each strategy, as a ratio to a plain loop.

The gate (`asyncfl check`) and the tests in `tests/speed/` measure it. The plain loop, the yardstick, is what
a researcher would write for this one experiment: asynchronous SGD with exponential delays, with a heap,
nn.Module, autograd and torch.optim.SGD, on one thread.

Fixed: the yardstick, since baselines store ratios to it.
"""

import heapq
from collections.abc import Callable, Collection, Sequence
from statistics import median
from time import process_time

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.device import one_thread
from benchmarks.suite.suite import PlannedRun
from fl_core.execution.auto import Auto
from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation
from fl_core.problems.problem import CPU
from fl_core.recording.interleave import RunSlot, interleave
from fl_core.scenario import Budget

Compute = Callable[[int], int]  # requested updates → computed updates: as many, or up to a stack more


def simulations(
    experiments: Sequence[Experiment], execution: Execution, device: torch.device = CPU
) -> Compute:
    """Return simulations side by side as a computation, with the choice of `auto` already made."""
    worlds = [experiment.scenario.problem.world(experiment.seed).to(device) for experiment in experiments]
    begun = [Simulation(*pair) for pair in zip(experiments, worlds, strict=True)]
    counted = CountingExecution(execution)
    events = interleave([RunSlot(simulation.events()) for simulation in begun], len(begun), counted)

    def compute(updates: int) -> int:
        first = counted.computed
        for slot, _ in events:
            if slot.error is not None:
                raise slot.error
            if counted.computed - first >= updates:
                break
        return max(1, counted.computed - first)  # not 0, even if all runs have diverged and ended

    compute(1)
    while isinstance(execution, Auto) and execution.measuring:
        compute(1)
    return compute


class CountingExecution:
    """An execution with a count of computed jobs."""

    def __init__(self, execution: Execution) -> None:
        self.label = execution.label
        self.computed = 0
        self._execution = execution

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Compute the requested jobs, and count the computed jobs."""
        computed = self._execution.execute(requests)
        self.computed += sum(computed)
        return computed


def rate(compute: Compute, updates: int) -> float:
    """Return updates per second of processor time, a clock hardly changed by other processes."""
    began = process_time()
    computed = compute(updates)
    return computed / (process_time() - began)


def loop(network: nn.Module, inputs: Tensor, labels: Tensor, *, clients: int, batch: int) -> Compute:
    """Return the yardstick on the given data, divided among clients."""
    parts = np.array_split(np.arange(len(inputs)), clients)

    def compute(updates: int) -> int:
        simulate(network, inputs, labels, parts, updates=updates, batch=batch, lr=1e-4)
        return updates

    return compute


def simulate(
    network: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    parts: list[np.ndarray],
    *,
    updates: int,
    batch: int,
    lr: float,
) -> list[Tensor]:
    """Return the parameters after a number of updates; clients hold a part each and are always at work."""
    random = np.random.default_rng(0)
    optimizer = torch.optim.SGD(network.parameters(), lr)
    server = [p.detach().clone() for p in network.parameters()]
    queue = [(random.exponential(), client, server) for client in range(len(parts))]
    heapq.heapify(queue)
    for _ in range(updates):
        time, client, start = heapq.heappop(queue)
        with torch.no_grad():
            for p, value in zip(network.parameters(), start, strict=True):
                p.copy_(value)
        chosen = torch.from_numpy(random.choice(parts[client], batch))
        optimizer.zero_grad()
        loss = cross_entropy(network(inputs[chosen]), labels[chosen])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            pairs = zip(server, network.parameters(), start, strict=True)
            server = [value + (p - old) for value, p, old in pairs]
        heapq.heappush(queue, (time + random.exponential(), client, server))
    return server


STRATEGY_UPDATES, YARDSTICK_UPDATES = 60, 80  # in one measurement
REPEATS = 7


def ratios(runs: Sequence[PlannedRun], strategies: Collection[str]) -> dict[str, float]:
    """Return client updates per second over the yardstick's, by strategy: medians of interleaved repeats.

    Of every strategy the first scenario and seed are simulated, on one thread, in processor time, and each
    next to a yardstick of its own, so that a busy or throttled machine slows both. The yardstick: logistic
    regression on 64 random features, 10 clients, mini-batches of 16.
    """
    experiments = {run.strategy: run.experiment for run in reversed(runs) if run.strategy in strategies}
    random = torch.Generator().manual_seed(0)
    features, labels = torch.rand((1000, 64), generator=random), torch.arange(1000) % 10
    with one_thread():
        yard = loop(nn.Linear(64, 10), features, labels, clients=10, batch=16)
        arms = {
            name: simulations([_endless(experiment)], OneByOne()) for name, experiment in experiments.items()
        }
        measured: dict[str, list[float]] = {name: [] for name in arms}
        for _ in range(REPEATS):
            for name, compute in arms.items():
                of_yard = rate(yard, YARDSTICK_UPDATES)
                measured[name].append(rate(compute, STRATEGY_UPDATES) / of_yard)
    return {name: round(median(values), 4) for name, values in measured.items()}


def _endless(experiment: Experiment) -> Experiment:
    scenario = experiment.scenario.model_copy(update={"budget": Budget(updates=10**9)})
    return experiment.model_copy(update={"scenario": scenario})
