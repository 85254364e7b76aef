"""Client updates a second, 100 clients at work: in every execution, and in a plain loop, the yardstick."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter, process_time
from typing import Any

import torch

from benchmarks.runs.jobs import AT_ONCE, EXECUTIONS
from benchmarks.speed import yardstick
from benchmarks.speed.noise import Noise
from benchmarks.speed.yardstick import Compute
from fl_core.execution.auto import Auto
from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation
from fl_core.problems.classification import Classification
from fl_core.problems.problem import CPU, Problem
from fl_core.recording.interleave import simulate_together

MODELS = ("logistic", "cnn")
CLIENTS, BATCH = 100, 64
REPEATS = 5
LONG = 0.5  # seconds of one measurement, at least
ASGD = {"name": "asgd", "local_lr": 1e-4, "local": {"name": "sgd", "batch": BATCH}}


def measure(tell: Callable[[str], None], device: torch.device = CPU) -> list[dict[str, Any]]:
    """Return a row for each model and execution: updates per second, the median of interleaved repeats.

    On one thread. On a CPU in processor time, which other processes hardly change; on a GPU in real time.
    """
    with one_thread():
        return [row for model in MODELS for row in _measured(model, tell, device)]


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch computes on one thread meanwhile."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def problem_of(model: str) -> Classification:
    """Return random images for a model."""
    return Noise.model_validate({"clients": CLIENTS, "model": model})


def endless(problem: Problem, strategy: dict[str, Any] = ASGD, seed: int = 0) -> Experiment:
    """Return an experiment under exponential delays that never ends."""
    timing, budget = {"durations": "exponential"}, {"updates": 10**9}
    scenario = {"problem": problem, "timing": timing, "budget": budget}
    return Experiment.model_validate({"scenario": scenario, "strategy": strategy, "seed": seed})


def plain_loop(problem: Classification, device: torch.device = CPU) -> Compute:
    """Return the yardstick on the images of a problem, normalised beforehand."""
    data = problem.load()
    images = (data.x_train.float() - data.mean[0]) / data.std[0]
    network = problem.model.build(problem.shape, problem.classes).to(device)
    labels = data.y_train.to(device)
    return yardstick.loop(network, images.to(device), labels, clients=problem.clients, batch=BATCH)


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


def _measured(model: str, tell: Callable[[str], None], device: torch.device) -> list[dict[str, Any]]:
    tell(model)
    problem = problem_of(model)
    runs = [endless(problem, seed=seed) for seed in range(AT_ONCE[device.type])]
    together = f"auto, {len(runs)} runs at once"
    executions = {name: make() for name, make in EXECUTIONS.items()} | {together: Auto()}
    arms = {"yardstick": plain_loop(problem, device)}
    for name, execution in executions.items():
        arms[name] = simulations(runs if name == together else runs[:1], execution, device)
    updates = {name: _enough(compute, device) for name, compute in arms.items()}
    rates: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(REPEATS):
        for name, compute in arms.items():
            rates[name].append(rate(compute, updates[name], device)[0])
    typical = {name: median(each) for name, each in rates.items()}
    return [
        {
            "model": model,
            "execution": name,
            "computes": executions[name].label if name in executions else "",
            "updates_per_second": typical[name],
            "of_yardstick": typical[name] / typical["yardstick"],
            "rates": rates[name],
        }
        for name in arms
    ]


def _enough(compute: Compute, device: torch.device) -> int:
    """Return a number of updates that take long enough to be measured."""
    updates = 1
    while rate(compute, updates, device)[1] < LONG:
        updates *= 2
    return updates


def rate(compute: Compute, updates: int, device: torch.device = CPU) -> tuple[float, float]:
    """Updates per second, and the seconds that they took."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    clock = perf_counter if device.type == "cuda" else process_time
    began = clock()
    computed = compute(updates)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = clock() - began
    return computed / seconds, seconds
