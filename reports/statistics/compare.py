"""Two strategies, seed by seed: which is ahead in each scenario, by how much, and how certainly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isnan, nan

import numpy as np

from fl_core.schema import TO_TARGET, UPDATES, Clock, Status
from reports.records.measures import Measure
from reports.records.records import Cell, RecordedRun, RecordedScenario
from reports.records.steps import value_at
from reports.records.summary import time_to_target
from reports.statistics.paired import LEVEL, Effect, effect, holm

AREA = "auc"  # the mean of the metric over client updates: the area under its curve, divided by its width

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The first strategy against the second, over the seeds that both have."""

    scenario: str
    measure: Measure
    pairs: Mapping[int, Pair]  # by seed; ∞ for a target that was never met
    effect: Effect | None  # how far the first is ahead; None where a pair is not finite, or there is none;
    # its interval holds at 95 % together with those of all `tests` (Bonferroni)
    p: float  # two-sided, adjusted; of a sign test where there is no effect; NaN without any pair
    tests: int = 1  # number of tests for which p is adjusted (Holm)
    target: str = ""  # in words, where the question is about times to a target
    remarks: tuple[str, ...] = ()  # seeds that are in no pair, or that diverged

    @property
    def decided(self) -> bool:
        """Whether a difference is shown."""
        return self.p <= 1 - LEVEL

    @property
    def wins(self) -> tuple[int, int]:
        """On how many seeds each is ahead; ties count for neither."""
        more = [(first > second) - (first < second) for first, second in self.pairs.values()]
        return more.count(direction(self.measure)), more.count(-direction(self.measure))

    @property
    def medians(self) -> Pair:
        """The median of each, in which never is ∞."""
        first, second = zip(*self.pairs.values(), strict=True)
        return float(np.median(first)), float(np.median(second))

    @property
    def means(self) -> Pair:
        """The mean of each."""
        first, second = np.mean(list(self.pairs.values()), axis=0)
        return float(first), float(second)

    @property
    def met(self) -> tuple[int, int]:
        """On how many seeds each met the target."""
        return (
            sum(isfinite(first) for first, _ in self.pairs.values()),
            sum(isfinite(second) for _, second in self.pairs.values()),
        )


def direction(of: Measure) -> int:
    """1 where more is better or the direction is unknown; -1 where less is."""
    return -1 if of.higher is False else 1


def compare(scenarios: Sequence[RecordedScenario], first: str, second: str, metric: str) -> list[Comparison]:
    """A comparison for each scenario in which both were tried, adjusted for their number.

    Intervals hold together at 95 % (Bonferroni), p-values are Holm's. An interval of Student's t that leaves
    out 0 has p ≤ 0.05 beside it. The reverse need not be true: Holm's steps show more differences than
    intervals that hold together can.

    `metric` is a recorded one, taken at the end of the run, one of `TO_TARGET`, or `AREA`.
    """
    found = []
    for scenario in scenarios:
        cells = {cell.strategy: cell for cell in scenario.cells}
        if first in cells and second in cells:
            found.append(_in_scenario(scenario, cells[first], cells[second], metric))
    tested = [one for one in found if not isnan(one.p)]
    adjusted = iter(holm([one.p for one in tested]))
    return [one if isnan(one.p) else _together(one, next(adjusted), len(tested)) for one in found]


def _together(one: Comparison, p: float, tests: int) -> Comparison:
    """One of several: with its adjusted p, and an interval that holds together with the others."""
    wide = effect(_ahead(one.measure, one.pairs), 1 - (1 - LEVEL) / tests) if one.effect else None
    return replace(one, effect=wide, p=p, tests=tests)


def overall(scenarios: Sequence[RecordedScenario], found: Sequence[Comparison]) -> Comparison | None:
    """The mean over scenarios, over the seeds that all of them have.

    None where such a mean is meaningless: for one scenario, of different problems, of times to a target.
    """
    compared = {one.scenario for one in found}
    problems = {one.problem for one in scenarios if one.label in compared}
    if len(found) < 2 or len(problems) > 1 or any(one.effect is None or one.target for one in found):
        return None
    seeds = sorted(set.intersection(*(set(one.pairs) for one in found)))
    means = np.mean([[one.pairs[seed] for seed in seeds] for one in found], axis=0)
    pairs = {seed: (float(a), float(b)) for seed, (a, b) in zip(seeds, means, strict=True)}
    return _comparison(f"mean of {len(found)} scenarios", found[0].measure, pairs) if seeds else None


def _in_scenario(scenario: RecordedScenario, first: Cell, second: Cell, metric: str) -> Comparison:
    reach = metric in TO_TARGET
    of = measured(scenario, metric)
    pairs, remarks = {}, []
    sides = [{run.seed: run for run in cell.runs} for cell in (first, second)]
    for seed in sorted(sides[0].keys() | sides[1].keys()):
        runs = [side.get(seed) for side in sides]
        pair = _values(runs[0], runs[1], scenario, metric) if runs[0] and runs[1] else (0.0, 0.0)
        reasons = [
            what
            for cell, run, value in zip((first, second), runs, pair, strict=True)
            if (what := _mistakes(cell.strategy, run, value))
        ]
        diverged = any(run and run.status is Status.DIVERGED for run in runs)
        if not reasons or (reach and all(run and run.status.terminated for run in runs)):
            pairs[seed] = pair
        for cell, run in zip((first, second), runs, strict=True):
            if run and run.status is Status.STALLED:
                remarks.append(f"seed {seed}: {cell.strategy} stalled (its last model counts)")
        if reasons:
            counts = " (never, unless the target was met before)" if diverged and seed in pairs else ""
            remarks.append(f"seed {seed}: {' and '.join(reasons)}{counts}")
    target = scenario.metric.round_text(scenario.target) if reach and scenario.target is not None else ""
    return replace(_comparison(scenario.label, of, pairs), target=target, remarks=tuple(remarks))


def _comparison(label: str, of: Measure, pairs: Mapping[int, Pair]) -> Comparison:
    if pairs and all(isfinite(first) and isfinite(second) for first, second in pairs.values()):
        found = effect(_ahead(of, pairs))
        return Comparison(label, of, pairs, found, found.p)
    one = Comparison(label, of, pairs, None, nan)
    return replace(one, p=_sign_test(one.wins)) if pairs else one


def _ahead(of: Measure, pairs: Mapping[int, Pair]) -> list[float]:
    """How far the first is ahead, seed by seed."""
    return [direction(of) * (first - second) for first, second in pairs.values()]


def _sign_test(wins: tuple[int, int]) -> float:
    """Two-sided p-value of the counts of seeds won, if both are equally good."""
    from scipy.stats import binomtest

    return float(binomtest(wins[0], sum(wins)).pvalue) if sum(wins) else 1.0


def measured(scenario: RecordedScenario, metric: str) -> Measure:
    """The measure in question."""
    if metric in TO_TARGET:
        clock = TO_TARGET[metric]
        title = "units of virtual time" if clock is Clock.TIME else clock.words
        return Measure(metric, title, higher=False)
    if metric == AREA:
        own = scenario.metric
        return replace(own, title=f"{own.title}, mean over client updates")
    return scenario.measure(metric)


def _values(first: RecordedRun, second: RecordedRun, scenario: RecordedScenario, metric: str) -> Pair:
    if metric in TO_TARGET:
        clock = TO_TARGET[metric]
        return time_to_target(first, clock, scenario.target), time_to_target(second, clock, scenario.target)
    if metric == AREA:
        return _areas(first, second)
    return first.final(metric), second.final(metric)


def _areas(first: RecordedRun, second: RecordedRun) -> Pair:
    """Over the client updates that both had: means of step functions, exactly."""
    curves = [run.files.curve for run in (first, second)]
    if any(curve.empty or first.metric not in curve for curve in curves):
        return nan, nan
    end = min(curve[UPDATES].iloc[-1] for curve in curves)
    grid = np.unique(np.concatenate([curve[UPDATES].to_numpy(float) for curve in curves] + [[end]]))
    grid = grid[grid <= end]
    if len(grid) < 2:
        return nan, nan
    steps = [
        value_at(grid[:-1], curve[UPDATES].to_numpy(float), curve[first.metric].to_numpy(float))
        for curve in curves
    ]
    one, other = (float(np.average(values, weights=np.diff(grid))) for values in steps)
    return one, other


def _mistakes(strategy: str, run: RecordedRun | None, value: float) -> str:
    """What is wrong with a strategy's run; empty if nothing is. Missing the target is not wrong."""
    if run is None:
        return f"{strategy} was not run"
    if run.status is Status.DIVERGED:
        return f"{strategy} diverged"
    if run.status is Status.UNREADABLE:
        return f"the curve of {strategy} cannot be read"
    if run.status.unfinished:
        return f"{strategy} {'ended in error' if run.status is Status.ERROR else 'is unfinished'}"
    return f"{strategy} did not record it" if isnan(value) else ""
