"""How fast each strategy is simulated, as a ratio to the yardstick measured right beside it."""

from collections.abc import Mapping, Sequence
from statistics import median

import torch
from torch import nn

from benchmarks.speed import yardstick
from benchmarks.speed.measurement import one_thread, rate, simulations
from benchmarks.suite.suite import PlannedRun
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.scenario import Budget

UPDATES, YARD = 60, 80  # that one measurement computes of a strategy, and of the yardstick
REPEATS = 7


def first_of_each(runs: Sequence[PlannedRun]) -> dict[str, Experiment]:
    """One run of every strategy: its first scenario and seed."""
    return {run.strategy: run.experiment for run in reversed(runs)}


def ratios(experiments: Mapping[str, Experiment]) -> dict[str, float]:
    """Client updates per second over those of the yardstick, by strategy: the median of interleaved repeats.

    On one thread, in processor time, and each next to a yardstick of its own, so that a busy or throttled
    machine slows both. The yardstick: logistic regression on 64 random features, 10 clients, mini-batches of
    16.
    """
    random = torch.Generator().manual_seed(0)
    features, labels = torch.rand((1000, 64), generator=random), torch.arange(1000) % 10
    with one_thread():
        yard = yardstick.loop(nn.Linear(64, 10), features, labels, clients=10, batch=16)
        arms = {
            name: simulations([_endless(experiment)], OneByOne()) for name, experiment in experiments.items()
        }
        measured: dict[str, list[float]] = {name: [] for name in arms}
        for _ in range(REPEATS):
            for name, compute in arms.items():
                of_yard = rate(yard, YARD)
                measured[name].append(rate(compute, UPDATES) / of_yard)
    return {name: round(median(values), 4) for name, values in measured.items()}


def _endless(experiment: Experiment) -> Experiment:
    scenario = experiment.scenario.model_copy(update={"budget": Budget(updates=10**9)})
    return experiment.model_copy(update={"scenario": scenario})
