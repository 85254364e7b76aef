"""Budgets and targets of scenarios from recorded runs of a pilot, to be frozen in a suite."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, log10

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tracking.run_result import Columns, RunResult
from fl_core.schema import ITERATION, STRATEGY_NAME, TIME
from fl_core.time_to_target import time_to_target
from reports.records.cells import value_at

REFERENCE = "fedavg"  # strategy by name
EASY, HARD = 0.9, 0.98  # shares of what the best strategy's median reaches within the budget
TIMES, ROUNDS = 3, 30  # the budget: times of the reference to the easy target, and its rounds at least


@dataclass(frozen=True, slots=True)
class Goals:
    """The budget and targets of a scenario."""

    budget: float  # virtual time
    easy: float
    hard: float


@dataclass(frozen=True, slots=True)
class Configuration:
    """A strategy with parameters: a learning curve a seed, with columns time, iteration and metric."""

    curves: Sequence[Columns]
    metric: str

    def reaches(self, time: float) -> float:
        """Return the metric at a time, median over seeds."""
        at = [value_at(np.array([time]), curve[TIME], curve[self.metric])[0] for curve in self.curves]
        return float(np.median(at))

    def time_to(self, target: float) -> float:
        """Return the time to a target, median over seeds."""
        return self._median(self.metric, target)

    def time_of_round(self, rounds: int) -> float:
        """Return the time of the first evaluation with a number of rounds complete, median over seeds."""
        return self._median(ITERATION, rounds)

    def _median(self, column: str, value: float) -> float:
        reach = [time_to_target(curve[TIME], curve[column], value, True) for curve in self.curves]
        return float(np.median(reach))


def goals(
    reference: Sequence[Configuration], others: Sequence[Configuration], horizon: float
) -> Goals | None:
    """Return budget and targets of a scenario; None where runs end too soon to tell.

    The budget is three times the median time of the tuned reference to the easy target, 30 of its rounds at
    least; the targets are shares of what the best reaches within the budget. From the horizon of the runs
    downwards these are repeated until nothing changes.
    """
    budget = horizon
    while True:
        best = max(own.reaches(budget) for own in (*reference, *others))
        tuned = min(reference, key=lambda own: own.time_to(EASY * best))
        wanted = max(TIMES * tuned.time_to(EASY * best), tuned.time_of_round(ROUNDS))
        if wanted > horizon:
            return None
        if wanted >= budget:
            return Goals(_rounded(budget), _three_digits(EASY * best), _three_digits(HARD * best))
        budget = wanted


def from_runs(runs: Iterable[RunResult]) -> dict[str, Goals]:
    """Return the goals of every scenario of a pilot; UserError if runs are missing or too short.

    Raises:
        UserError: Runs of the reference are missing, or all runs end too soon.
    """
    by_scenario: dict[str, dict[str, list[RunResult]]] = {}
    for run in runs:
        if run.status.finite:
            by_scenario.setdefault(run.scenario, {}).setdefault(run.strategy, []).append(run)
    return {scenario: _of_scenario(scenario, own) for scenario, own in by_scenario.items()}


def _of_scenario(scenario: str, by_strategy: Mapping[str, list[RunResult]]) -> Goals:
    reference: list[Configuration] = []
    others: list[Configuration] = []
    for runs in by_strategy.values():
        curves = [run.files.curve for run in runs]
        kind = reference if runs[0].params.get(STRATEGY_NAME) == REFERENCE else others
        kind.append(Configuration(curves, runs[0].metric))
    if not reference:
        raise UserError(
            f"{scenario}: the pilot has no run of {REFERENCE}, over whose time budgets are stated"
        )
    every = [curve[TIME][-1] for own in (*reference, *others) for curve in own.curves]
    if (own := goals(reference, others, min(every, default=inf))) is None:
        raise UserError(
            f"{scenario}: runs of the pilot end before {ROUNDS} rounds of {REFERENCE}: make them longer"
        )
    return own


def _rounded(budget: float) -> float:
    """Return a budget, rounded up to two digits."""
    unit = 10 ** (floor(log10(budget)) - 1)
    return float(ceil(round(budget / unit, 9)) * unit)


def _three_digits(target: float) -> float:
    return round(target, 3)
