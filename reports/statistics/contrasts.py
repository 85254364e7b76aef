"""Every two strategies of every scenario against each other: which differences hold among all tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from math import isfinite, isnan
from typing import TYPE_CHECKING

import numpy as np

from fl_core.schema import Clock, Status
from fl_core.time_to_target import restricted
from reports.records.cells import Cell
from reports.records.records import RecordedScenario

if TYPE_CHECKING:
    from reports.statistics.paired import Effect

Pair = tuple[float, float]


class Question(StrEnum):
    """The number in which two strategies are compared, in the order of importance."""

    TARGET = "time to target"
    FINAL = "final value"


@dataclass(frozen=True, slots=True, eq=False)
class PairedContrast:
    """The strategy that is ahead against the other, over the seeds that both have."""

    question: Question
    scenario: RecordedScenario
    first: Cell  # ahead in the mean
    second: Cell
    effect: Effect  # how far the first is ahead
    size: float  # the same as a share of the larger of both means, hence without a unit
    p: float  # adjusted (Holm) for all contrasts of the suite

    @property
    def holds(self) -> bool:
        """Whether the difference is shown."""
        from reports.statistics.paired import LEVEL

        return self.p <= 1 - LEVEL


def contrasts(scenarios: Sequence[RecordedScenario]) -> list[PairedContrast]:
    """Return the contrasts of all pairs of strategies with two seeds in common, the largest first.

    Both questions are put to every pair in every scenario, so that no pair is chosen by its results; paired
    t-tests, adjusted together (Holm). A time to target ends where a run that never met the target ended: both
    strategies are compared up to there, seed by seed (restricted mean time; Royston & Parmar, Statistics in
    Medicine 30, 2011). Strategies with diverged runs have no final value.
    """
    from reports.statistics.paired import holm

    tested = [
        contrast for scenario in scenarios for contrast in (*_in_time(scenario), *_in_the_end(scenario))
    ]
    adjusted = holm([contrast.p for contrast in tested])
    tested = [replace(contrast, p=p) for contrast, p in zip(tested, adjusted, strict=True)]
    return sorted(tested, key=lambda contrast: -contrast.size)


def _in_time(scenario: RecordedScenario) -> Iterator[PairedContrast]:
    """Yield the contrasts of times to target; none of two strategies that both never met it."""
    if scenario.target is None:
        return
    cells = [(cell, _times(cell, scenario.target)) for cell in scenario.cells]
    for (first, ours), (second, theirs) in combinations(cells, 2):
        if any(isfinite(met) for met, _ in (*ours.values(), *theirs.values())):
            pairs = [restricted(ours[seed], theirs[seed]) for seed in ours if seed in theirs]
            yield from _contrast(Question.TARGET, scenario, (first, second), pairs, -1)


def _in_the_end(scenario: RecordedScenario) -> Iterator[PairedContrast]:
    """Yield the contrasts of final values."""
    metric = scenario.columns[0]
    whole = [cell for cell in scenario.cells if not cell.having(Status.DIVERGED)]
    cells = [
        (cell, {run.seed: value for run in cell.finite if not isnan(value := run.final(metric.name))})
        for cell in whole
    ]
    for (first, ours), (second, theirs) in combinations(cells, 2):
        pairs = [(ours[seed], theirs[seed]) for seed in ours if seed in theirs]
        yield from _contrast(Question.FINAL, scenario, (first, second), pairs, 1 if metric.higher else -1)


def _times(cell: Cell, target: float) -> dict[int, Pair]:
    """Return by seed the time to target of the ended runs, and until when they were observed."""
    return {
        run.seed: (met, run.observed_until(met, Clock.TIME))
        for run in cell.runs
        if run.status.terminated and Clock.TIME in run.files.curve
        for met in [run.time_to_target(Clock.TIME, target)]
    }


def _contrast(
    question: Question, scenario: RecordedScenario, cells: tuple[Cell, Cell], pairs: Sequence[Pair], sign: int
) -> Iterator[PairedContrast]:
    """Yield the contrast of two cells if they share two seeds.

    `pairs` are the values of both, seed by seed; `sign` is 1 where more is better, else −1.
    """
    from reports.statistics.paired import student

    if len(pairs) < 2:
        return
    means, ahead = np.mean(pairs, axis=0), sign * np.subtract(*np.transpose(pairs))  # [2], [seeds]
    if ahead.mean() < 0:
        cells, ahead = (cells[1], cells[0]), -ahead
    effect, largest = student(ahead), np.abs(means).max()
    size = effect.mean / largest if largest else 0.0
    yield PairedContrast(question, scenario, *cells, effect, size, effect.p)


def seeds_to_show(contrasts: Sequence[PairedContrast]) -> tuple[PairedContrast, int] | None:
    """Return the largest contrast with a spread, and the seeds that would show it if it is as estimated.

    None without such a contrast. The one with the smallest p-value would promise too much: of many contrasts
    over few seeds some have a small spread by chance.
    """
    from reports.statistics.paired import LEVEL, seeds_to_decide

    level = 1 - (1 - LEVEL) / max(1, len(contrasts))
    for contrast in contrasts:
        if contrast.effect.std > 0 and (seeds := seeds_to_decide(contrast.effect, level=level)):
            return contrast, max(seeds, contrast.effect.n + 1)
    return None
