"""Comparisons of strategies, paired over seeds: which pairs are compared, and on which numbers.

The tests themselves are in `reports/statistical_inference.py`.

- `compare`: two named strategies in each scenario, as `asyncfl compare` shows them.
- `contrasts`: every two strategies of every scenario, for the differences that hold among all tested.
- `differences`: every strategy of a scenario against its best one.

Fixed: which seeds are paired, and for how many tests p-values are adjusted. `asyncfl.compare` returns the
numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from math import isfinite, isnan, nan

import numpy as np

from benchmarks.mlflow_store.run_result import RunResult
from fl_core.recorded_names import TO_TARGET, UPDATES, Clock, Status
from fl_core.time_to_target import restricted
from reports.numbers import Measure
from reports.records.records import RecordedScenario
from reports.records.seed_summaries import Cell, value_at
from reports.statistical_inference import (
    ERROR,
    Effect,
    holm,
    paired,
    paired_effect,
    seeds_to_decide,
    sign_test,
    simultaneous_level,
    two_sided,
)

Pair = tuple[float, float]
AREA = "auc"  # the mean of the metric over client updates: the area under its curve, divided by its width


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Comparison of two strategies in a scenario, paired over common seeds."""

    scenario: str
    measure: Measure
    pairs: Mapping[int, Pair]  # by seed; ∞ for a target that was never met
    # Lead of the first strategy, with an interval at 95 % for all `tests` together (Bonferroni); None without
    # pairs, or if a value is not finite
    effect: Effect | None
    p: float  # two-sided, adjusted; NaN without any pair
    # Lead in times to a target that some runs missed, each pair cut at the first end of a run that missed it;
    # None if not needed or not possible. Without this and `effect`, p is of a sign test
    restricted: Effect | None = None
    tests: int = 1  # number of tests for which p is adjusted (Holm)
    target: str = ""  # in words, where the question is about times to a target
    step: float = nan  # median distance between evaluations, the precision of times to target
    remarks: tuple[str, ...] = ()  # on seeds left out of pairs, and on diverged runs

    @property
    def decided(self) -> bool:
        """True if a difference is shown."""
        return self.p <= ERROR

    @property
    def ahead(self) -> list[float]:
        """Lead of the first strategy, seed by seed."""
        return [direction(self.measure) * (first - second) for first, second in self.pairs.values()]

    @property
    def wins(self) -> tuple[int, int]:
        """Number of seeds won by each strategy; ties count for neither."""
        sign = direction(self.measure)
        more = [(first > second) - (first < second) for first, second in self.pairs.values()]
        return more.count(sign), more.count(-sign)

    @property
    def medians(self) -> Pair:
        """Median of each strategy, with ∞ for a target never met."""
        first, second = zip(*self.pairs.values(), strict=True)
        return float(np.median(first)), float(np.median(second))

    @property
    def means(self) -> Pair:
        """Mean of each strategy."""
        first, second = np.mean(list(self.pairs.values()), axis=0)
        return float(first), float(second)

    @property
    def met(self) -> tuple[int, int]:
        """Number of seeds with a met target, for each strategy."""
        first, second = np.isfinite(list(self.pairs.values())).sum(axis=0)
        return int(first), int(second)


def direction(metric: Measure) -> int:
    """Return -1 for a metric where less is better, otherwise 1."""
    return -1 if metric.higher is False else 1


def compare(scenarios: Sequence[RecordedScenario], first: str, second: str, metric: str) -> list[Comparison]:
    """Return a comparison for each scenario with both strategies, adjusted for the number of comparisons.

    Intervals hold together at 95 % (Bonferroni), p-values are Holm's. An interval of Student's t that leaves
    out 0 has p ≤ 0.05 beside it. The reverse need not be true: Holm's steps show more differences than
    intervals that hold together can.

    Args:
        scenarios: The scenarios of a suite.
        first: A strategy's label.
        second: Another one's.
        metric: A recorded metric, taken at the end of the run; or a name of `TO_TARGET`; or `AREA`.
    """
    comparisons = []
    for scenario in scenarios:
        cells = {cell.strategy: cell for cell in scenario.cells}
        if first in cells and second in cells:
            comparisons.append(_in_scenario(scenario, (cells[first], cells[second]), metric))
    tested = [comparison for comparison in comparisons if not isnan(comparison.p)]
    adjusted = iter(holm([comparison.p for comparison in tested]))
    level = simultaneous_level(len(tested))
    return [
        replace(
            comparison,
            effect=paired_effect(comparison.ahead, level) if comparison.effect else None,
            p=next(adjusted),
            tests=len(tested),
        )
        if not isnan(comparison.p)
        else comparison
        for comparison in comparisons
    ]


def overall(scenarios: Sequence[RecordedScenario], comparisons: Sequence[Comparison]) -> Comparison | None:
    """Return the mean over scenarios, over the seeds common to all comparisons.

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
    """Return the comparison of two strategies in a scenario, not yet adjusted for other comparisons."""
    clock = TO_TARGET.get(metric)  # None unless the question is about times to a target
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
                counts = "never, unless the target was met before" if clock else "its last model counts"
                stalled.append(f"seed {seed}: {cell.strategy} stalled ({counts})")
        if not reasons or (clock and all(run and run.status.terminated for run in runs)):
            pairs[seed] = pair
            if clock and all(run and clock in run.files.curve for run in runs):
                pair_of_runs = [run for run in runs if run]
                ends = [run.observed_until(met, clock) for run, met in zip(pair_of_runs, pair, strict=True)]
                cut.append(restricted(*zip(pair, ends, strict=True)))
        remarks += stalled
        if reasons:
            diverged = any(run and run.status is Status.DIVERGED for run in runs)
            counts = " (never, unless the target was met before)" if diverged and seed in pairs else ""
            remarks.append(f"seed {seed}: {' and '.join(reasons)}{counts}")
    target = scenario.metric.round_text(scenario.target) if clock and scenario.target is not None else ""
    comparison = _comparison(scenario.label, measured(scenario, metric), pairs, cut)
    step = scenario.evaluation_step(clock) if clock else nan
    return replace(comparison, target=target, step=step, remarks=tuple(remarks))


def _comparison(
    label: str, metric: Measure, pairs: Mapping[int, Pair], cut: Sequence[Pair] = ()
) -> Comparison:
    """Return the comparison of paired values: a t-test, on `cut` times if some are ∞, or else a sign test."""
    comparison = Comparison(label, metric, pairs, None, nan)
    if not pairs:
        return comparison
    if np.isfinite(list(pairs.values())).all():
        ahead = paired_effect(comparison.ahead)
        return replace(comparison, effect=ahead, p=ahead.p)
    if len(cut) > 1:
        ahead = paired_effect([second - first for first, second in cut])
        return replace(comparison, restricted=ahead, p=ahead.p)
    first, second = np.transpose(list(pairs.values()))
    return replace(comparison, p=two_sided(sign_test, np.subtract(first > second, second > first, dtype=int)))


def measured(scenario: RecordedScenario, metric: str) -> Measure:
    """Return the measure of a metric name, an area, or a time to target."""
    if metric in TO_TARGET:
        clock = TO_TARGET[metric]
        unit = scenario.cells[0].runs[0].time_unit or "units of virtual time"
        title = unit if clock is Clock.TIME else clock.words
        return Measure(metric, title, higher=False)
    if metric == AREA:
        return replace(scenario.metric, title=f"{scenario.metric.title}, mean over client updates")
    return scenario.measure(metric)


def _values(first: RunResult, second: RunResult, scenario: RecordedScenario, metric: str) -> Pair:
    """Return the values of two runs of a seed."""
    if metric in TO_TARGET:
        clock = TO_TARGET[metric]
        return first.time_to_target(clock, scenario.target), second.time_to_target(clock, scenario.target)
    if metric == AREA:
        return _areas(first, second)
    return first.final(metric), second.final(metric)


def _areas(first: RunResult, second: RunResult) -> Pair:
    """Return the exact means of two step functions over the client updates common to both runs."""
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


def _mistake(run: RunResult | None, value: float) -> str:
    """Return the fault of a strategy's run, with {} for the name; a missed target is no fault."""
    if run is None:
        return "{} was not run"
    if run.status is Status.DIVERGED:
        return "{} diverged"
    if run.status is Status.UNREADABLE:
        return "the curve of {} cannot be read"
    if run.status.unfinished:
        return "{} ended in error" if run.status is Status.ERROR else "{} is unfinished"
    return "{} did not record it" if isnan(value) else ""


class Question(StrEnum):
    """Quantity for comparing two strategies, in order of importance."""

    TARGET = "time to target"
    FINAL = "final value"


@dataclass(frozen=True, slots=True, eq=False)
class PairedContrast:
    """Contrast of two strategies over common seeds, the leading strategy first."""

    question: Question
    scenario: RecordedScenario
    first: Cell  # ahead in the mean
    second: Cell
    effect: Effect  # lead of the first
    size: float  # mean lead as a share of the larger of both means, hence without a unit
    p: float  # adjusted (Holm) for all contrasts of the suite

    @property
    def holds(self) -> bool:
        """True if the difference is shown."""
        return self.p <= ERROR


def contrasts(scenarios: Sequence[RecordedScenario]) -> list[PairedContrast]:
    """Return the contrasts of all pairs of strategies with two seeds in common, the largest first.

    Every pair in every scenario is tested on both questions, so that no pair is chosen by its results: paired
    t-tests, adjusted together (Holm). If a run never met the target, both strategies are compared up to the
    end of this run, seed by seed (restricted mean time; Royston & Parmar, Statistics in Medicine 30, 2011).
    Strategies with diverged runs have no final value.
    """
    tested = [
        contrast for scenario in scenarios for contrast in (*_in_time(scenario), *_in_the_end(scenario))
    ]
    adjusted = holm([contrast.p for contrast in tested])
    tested = [replace(contrast, p=p) for contrast, p in zip(tested, adjusted, strict=True)]
    return sorted(tested, key=lambda contrast: -contrast.size)


def _in_time(scenario: RecordedScenario) -> Iterator[PairedContrast]:
    """Yield the contrasts of times to target, except for pairs without any met target."""
    if scenario.target is None:
        return
    cells = [(cell, _times(cell)) for cell in scenario.cells]
    for (first, ours), (second, theirs) in combinations(cells, 2):
        if any(isfinite(met) for met, _ in (*ours.values(), *theirs.values())):
            pairs = [restricted(ours[seed], theirs[seed]) for seed in ours if seed in theirs]
            yield from _contrast(Question.TARGET, scenario, (first, second), pairs, -1)


def _in_the_end(scenario: RecordedScenario) -> Iterator[PairedContrast]:
    """Yield the contrasts of final values."""
    metric = scenario.columns[0]
    finite_cells = [cell for cell in scenario.cells if not cell.having(Status.DIVERGED)]
    cells = [
        (cell, {run.seed: value for run in cell.finite if not isnan(value := run.final(metric.name))})
        for cell in finite_cells
    ]
    for (first, ours), (second, theirs) in combinations(cells, 2):
        pairs = [(ours[seed], theirs[seed]) for seed in ours if seed in theirs]
        yield from _contrast(Question.FINAL, scenario, (first, second), pairs, 1 if metric.higher else -1)


def _times(cell: Cell) -> dict[int, Pair]:
    """Return by seed the time to target of each ended run and the end of observation."""
    return {
        run.seed: (met, run.observed_until(met, Clock.TIME))
        for run, met in zip(cell.ended, cell.times(Clock.TIME), strict=True)
        if Clock.TIME in run.files.curve
    }


def _contrast(
    question: Question, scenario: RecordedScenario, cells: tuple[Cell, Cell], pairs: Sequence[Pair], sign: int
) -> Iterator[PairedContrast]:
    """Yield the contrast of two cells with at least two common seeds.

    `pairs` are the values of both, seed by seed; `sign` is 1 where more is better, else −1.
    """
    if len(pairs) < 2:
        return
    means, ahead = np.mean(pairs, axis=0), sign * np.subtract(*np.transpose(pairs))  # [2], [seeds]
    if ahead.mean() < 0:
        cells, ahead = (cells[1], cells[0]), -ahead
    difference, largest = paired_effect(ahead), np.abs(means).max()
    size = difference.mean / largest if largest else 0.0
    yield PairedContrast(question, scenario, *cells, difference, size, difference.p)


def seeds_to_show(contrasts: Sequence[PairedContrast]) -> tuple[PairedContrast, int] | None:
    """Return the largest contrast with a spread, and the estimated number of seeds to show the difference.

    None without such a contrast. The contrast with the smallest p-value would promise too much: of many
    contrasts over few seeds some have a small spread by chance.
    """
    level = simultaneous_level(len(contrasts))
    for contrast in contrasts:
        if contrast.effect.std > 0 and (seeds := seeds_to_decide(contrast.effect, level=level)):
            return contrast, max(seeds, contrast.effect.n + 1)
    return None


@dataclass(frozen=True, slots=True)
class Gap:
    """Distance of a strategy from the best of several compared strategies."""

    values: tuple[float, ...]  # paired differences, one per common seed; positive is worse
    effect: Effect  # with an interval at 95 % for all pairs of strategies together (Bonferroni)
    p: float  # adjusted (Holm) for all pairs of strategies
    worse: bool  # whether the strategy is shown to be worse; False does not mean equal
    needed: int | None  # seeds to separate the strategies, if the difference is as estimated


def differences(scenario: RecordedScenario) -> dict[str, Gap]:
    """Return the gap of each other strategy of a scenario to the best, in the ranking metric.

    Paired over the seeds that both strategies completed; empty where no two seeds can be paired.
    """
    metric, cells = scenario.columns[0], scenario.ranked
    if len(cells) < 2 or cells[0].diverged or isnan(cells[0].final[metric.name].mean):
        return {}
    sign = 1 if metric.higher else -1
    losses = {
        cell.strategy: {
            run.seed: value for run in cell.finite if not isnan(value := -sign * run.final(metric.name))
        }
        for cell in cells
    }
    gaps = behind(losses)
    return gaps if any(gap.effect.n > 1 for gap in gaps.values()) else {}


def behind(losses: Mapping[str, Mapping[int, float]]) -> dict[str, Gap]:
    """Return the gap of each other strategy to the first strategy, the best on the compared seeds.

    Any strategy might have led. Hence intervals hold together at 95 % for all pairs of strategies, and p is
    Holm's among all pairs: of equal strategies, one is shown to be worse in at most 5 % of cases.

    Args:
        losses: Strategy → seed → a number of which less is better, the best strategy first.
    """
    pairs = {
        (first, second): values
        for first, second in combinations(losses, 2)
        if (values := paired(losses[first], losses[second]))
    }
    level = simultaneous_level(len(pairs))
    adjusted = dict(zip(pairs, holm([paired_effect(values).p for values in pairs.values()]), strict=True))
    leader, *followers = losses
    gaps = {}
    for name in followers:
        if (leader, name) in pairs:
            values, p = pairs[leader, name], adjusted[leader, name]
            effect = paired_effect(values, level)
            worse = effect.mean > 0 and p <= ERROR
            seeds = None if worse else seeds_to_decide(effect, level=level)
            gaps[name] = Gap(values, effect, p, worse, None if seeds is None else max(seeds, effect.n + 1))
    return gaps
