"""Two strategies, seed by seed: which is ahead in each scenario, by how much, and how certainly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

import numpy as np
from scipy import special

from fl_core.schema import TO_TARGET, UPDATES, Clock, Status
from fl_core.time_to_target import restricted
from reports.records.cells import Cell
from reports.records.measures import Measure
from reports.records.records import RecordedScenario
from reports.records.runs import RecordedRun
from reports.records.steps import value_at
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
    p: float  # two-sided, adjusted; NaN without any pair
    restricted: Effect | None = None  # of times to a target that was not always met, each pair up to the
    # first end of a run that never met it; without it and `effect`, p is of a sign test
    tests: int = 1  # number of tests for which p is adjusted (Holm)
    target: str = ""  # in words, where the question is about times to a target
    remarks: tuple[str, ...] = ()  # seeds that are in no pair, or that diverged

    @property
    def decided(self) -> bool:
        """Whether a difference is shown."""
        return self.p <= 1 - LEVEL

    @property
    def ahead(self) -> list[float]:
        """How far the first is ahead, seed by seed."""
        return [direction(self.measure) * (first - second) for first, second in self.pairs.values()]

    @property
    def wins(self) -> tuple[int, int]:
        """On how many seeds each is ahead; ties count for neither."""
        sign = direction(self.measure)
        more = [(first > second) - (first < second) for first, second in self.pairs.values()]
        return more.count(sign), more.count(-sign)

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
        first, second = np.isfinite(list(self.pairs.values())).sum(axis=0)
        return int(first), int(second)


def direction(metric: Measure) -> int:
    """Return 1 where more is better or the direction is unknown, -1 where less is."""
    return -1 if metric.higher is False else 1


def compare(scenarios: Sequence[RecordedScenario], first: str, second: str, metric: str) -> list[Comparison]:
    """Return a comparison for each scenario in which both were tried, adjusted for their number.

    Intervals hold together at 95 % (Bonferroni), p-values are Holm's. An interval of Student's t that leaves
    out 0 has p ≤ 0.05 beside it. The reverse need not be true: Holm's steps show more differences than
    intervals that hold together can.

    Args:
        scenarios: The scenarios of a suite.
        first: A strategy's label.
        second: Another one's.
        metric: A recorded one, taken at the end of the run, one of `TO_TARGET`, or `AREA`.
    """
    comparisons = []
    for scenario in scenarios:
        cells = {cell.strategy: cell for cell in scenario.cells}
        if first in cells and second in cells:
            comparisons.append(_in_scenario(scenario, (cells[first], cells[second]), metric))
    tested = [comparison for comparison in comparisons if not isnan(comparison.p)]
    adjusted = iter(holm([comparison.p for comparison in tested]))
    level = 1 - (1 - LEVEL) / max(1, len(tested))
    return [
        replace(
            comparison,
            effect=effect(comparison.ahead, level) if comparison.effect else None,
            p=next(adjusted),
            tests=len(tested),
        )
        if not isnan(comparison.p)
        else comparison
        for comparison in comparisons
    ]


def overall(scenarios: Sequence[RecordedScenario], comparisons: Sequence[Comparison]) -> Comparison | None:
    """Return the mean over scenarios, over the seeds that all of them have.

    None where such a mean is meaningless: for one scenario, of different problems, of times to a target.
    """
    compared = {comparison.scenario for comparison in comparisons}
    problems = {scenario.problem for scenario in scenarios if scenario.label in compared}
    if len(comparisons) < 2 or len(problems) > 1:
        return None
    if any(comparison.effect is None or comparison.target for comparison in comparisons):
        return None
    seeds = sorted(set.intersection(*(set(comparison.pairs) for comparison in comparisons)))
    means = np.mean([[comparison.pairs[seed] for seed in seeds] for comparison in comparisons], axis=0)
    pairs = {seed: (float(a), float(b)) for seed, (a, b) in zip(seeds, means, strict=True)}
    label = f"mean of {len(comparisons)} scenarios"
    return _comparison(label, comparisons[0].measure, pairs) if seeds else None


def _in_scenario(scenario: RecordedScenario, cells: tuple[Cell, Cell], metric: str) -> Comparison:
    reach = metric in TO_TARGET
    pairs, cut, remarks = {}, [], []
    sides = [{run.seed: run for run in cell.runs} for cell in cells]
    for seed in sorted(sides[0].keys() | sides[1].keys()):
        first, second = runs = [side.get(seed) for side in sides]
        pair = _values(first, second, scenario, metric) if first and second else (0.0, 0.0)
        reasons, stalled = [], []
        for cell, run, value in zip(cells, runs, pair, strict=True):
            if reason := _mistake(run, value):
                reasons.append(reason.format(cell.strategy))
            if run and run.status is Status.STALLED:
                counts = "never, unless the target was met before" if reach else "its last model counts"
                stalled.append(f"seed {seed}: {cell.strategy} stalled ({counts})")
        if not reasons or (reach and all(run and run.status.terminated for run in runs)):
            pairs[seed] = pair
            if (
                reach
                and first
                and second
                and all(TO_TARGET[metric] in run.files.curve for run in (first, second))
            ):
                clock = TO_TARGET[metric]
                ends = [
                    run.observed_until(met, clock) for run, met in zip((first, second), pair, strict=True)
                ]
                cut.append(restricted(*zip(pair, ends, strict=True)))
        remarks += stalled
        if reasons:
            diverged = any(run and run.status is Status.DIVERGED for run in runs)
            counts = " (never, unless the target was met before)" if diverged and seed in pairs else ""
            remarks.append(f"seed {seed}: {' and '.join(reasons)}{counts}")
    target = scenario.metric.round_text(scenario.target) if reach and scenario.target is not None else ""
    comparison = _comparison(scenario.label, measured(scenario, metric), pairs, cut)
    return replace(comparison, target=target, remarks=tuple(remarks))


def _comparison(
    label: str, metric: Measure, pairs: Mapping[int, Pair], cut: Sequence[Pair] = ()
) -> Comparison:
    comparison = Comparison(label, metric, pairs, None, nan)
    if not pairs:
        return comparison
    if np.isfinite(list(pairs.values())).all():
        ahead = effect(comparison.ahead)
        return replace(comparison, effect=ahead, p=ahead.p)
    if len(cut) > 1:
        ahead = effect([second - first for first, second in cut])
        return replace(comparison, restricted=ahead, p=ahead.p)
    # The exact sign test; `scipy.stats` takes a second to import.
    p = min(1.0, 2 * float(special.bdtr(min(comparison.wins), sum(comparison.wins), 0.5)))
    return replace(comparison, p=p)


def measured(scenario: RecordedScenario, metric: str) -> Measure:
    """Return the metric in question."""
    if metric in TO_TARGET:
        clock = TO_TARGET[metric]
        unit = scenario.cells[0].runs[0].time_unit or "units of virtual time"
        title = unit if clock is Clock.TIME else clock.words
        return Measure(metric, title, higher=False)
    if metric == AREA:
        return replace(scenario.metric, title=f"{scenario.metric.title}, mean over client updates")
    return scenario.measure(metric)


def _values(first: RecordedRun, second: RecordedRun, scenario: RecordedScenario, metric: str) -> Pair:
    if metric in TO_TARGET:
        clock = TO_TARGET[metric]
        return first.time_to_target(clock, scenario.target), second.time_to_target(clock, scenario.target)
    if metric == AREA:
        return _areas(first, second)
    return first.final(metric), second.final(metric)


def _areas(first: RecordedRun, second: RecordedRun) -> Pair:
    """Return the means of step functions over the client updates that both runs had, exactly."""
    curves = [run.files.curve for run in (first, second)]
    if any(first.metric not in curve for curve in curves):
        return nan, nan
    steps = [(curve[UPDATES].astype(float), curve[first.metric].astype(float)) for curve in curves]
    end = min(updates[-1] for updates, _ in steps)
    grid = np.unique(np.concatenate([updates for updates, _ in steps] + [[end]]))
    grid = grid[grid <= end]
    if len(grid) < 2:
        return nan, nan
    means = [np.average(value_at(grid[:-1], *step), weights=np.diff(grid)) for step in steps]
    return float(means[0]), float(means[1])


def _mistake(run: RecordedRun | None, value: float) -> str:
    """Return what is wrong with the run of a strategy {}; missing the target is not wrong."""
    if run is None:
        return "{} was not run"
    if run.status is Status.DIVERGED:
        return "{} diverged"
    if run.status is Status.UNREADABLE:
        return "the curve of {} cannot be read"
    if run.status.unfinished:
        return "{} ended in error" if run.status is Status.ERROR else "{} is unfinished"
    return "{} did not record it" if isnan(value) else ""
