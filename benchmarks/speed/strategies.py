"""How fast each strategy is simulated, as a ratio to the yardstick measured right beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from time import process_time

import numpy as np
import torch
from torch import nn

from benchmarks.speed import yardstick
from benchmarks.suite.suite import PlannedRun
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.problem import World
from fl_core.scenario import Budget

UPDATES, YARD = 60, 80  # that one measurement computes of a strategy, and of the yardstick
REPEATS = 7


def first_of_each(runs: Sequence[PlannedRun]) -> dict[str, Experiment]:
    """One run of every strategy: its first scenario and seed."""
    found: dict[str, Experiment] = {}
    for run in runs:
        found.setdefault(run.strategy, run.experiment)
    return found


def ratios(experiments: Mapping[str, Experiment]) -> dict[str, float]:
    """Client updates per second over those of the yardstick, by strategy: the median of interleaved repeats.

    On one thread, in processor time, and each next to a yardstick of its own, so that a busy or throttled
    machine slows both.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yard, worlds = plain_loop(), _worlds(experiments.values())
        arms = {name: endless(one, worlds[_place(one)]) for name, one in experiments.items()}
        found: dict[str, list[float]] = {name: [] for name in arms}
        for _ in range(REPEATS):
            for name, compute in arms.items():
                found[name].append(_seconds(yard) / _seconds(compute))
    finally:
        torch.set_num_threads(threads)
    return {name: round(median(values), 4) for name, values in found.items()}


def plain_loop() -> Callable[[], int]:
    """The yardstick: logistic regression on 64 random features, 10 clients, mini-batches of 16."""
    random = torch.Generator().manual_seed(0)
    images, labels = torch.rand((1000, 64), generator=random), torch.arange(1000) % 10
    network, parts = nn.Linear(64, 10), np.array_split(np.arange(1000), 10)

    def compute() -> int:
        yardstick.simulate(network, images, labels, parts, updates=YARD, batch=16, lr=1e-4)
        return YARD

    return compute


def endless(experiment: Experiment, world: World) -> Callable[[], int]:
    """The experiment without end: each call goes on for so many more updates."""
    scenario = experiment.scenario.model_copy(update={"budget": Budget(updates=10**9)})
    simulation = Simulation(experiment.model_copy(update={"scenario": scenario}), world)
    events = simulate(simulation)

    def compute() -> int:
        before = simulation.server.updates
        for _ in events:
            if simulation.server.updates - before >= UPDATES:
                break
        return max(1, simulation.server.updates - before)  # one that diverged has no more

    compute()  # so that no measurement contains what only the first call does
    return compute


def _seconds(compute: Callable[[], int]) -> float:
    began = process_time()
    computed = compute()
    return (process_time() - began) / computed


def _place(experiment: Experiment) -> tuple[str, int]:
    return repr(experiment.scenario.problem), experiment.seed


def _worlds(experiments: Iterable[Experiment]) -> dict[tuple[str, int], World]:
    found: dict[tuple[str, int], World] = {}
    for one in experiments:
        if _place(one) not in found:
            found[_place(one)] = one.scenario.problem.world(one.seed)
    return found
