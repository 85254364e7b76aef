"""How far every strategy of a scenario is behind its best one, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING

from reports.records.cells import Cell
from reports.records.records import RecordedScenario

if TYPE_CHECKING:
    from reports.statistics.paired import Effect


@dataclass(frozen=True, slots=True)
class Gap:
    """How far one of several strategies is behind the same best one."""

    effect: Effect  # its interval holds at 95 % together with those of all pairs of strategies (Bonferroni)
    p: float  # adjusted (Holm) for all pairs of strategies
    worse: bool  # whether it is shown to be worse; False means only that it is not shown
    needed: int | None  # seeds that would separate it, if the difference is as estimated


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """One strategy against the best of the scenario; positive where it is worse."""

    cell: Cell
    values: tuple[float, ...] = ()  # one per seed that both completed
    gap: Gap | None = None  # None where there is no such seed, and of the best itself

    @property
    def strategy(self) -> str:
        """The strategy's label."""
        return self.cell.strategy

    @property
    def open(self) -> bool:
        """Whether it was compared and is not separated from the best."""
        return self.gap is not None and not self.gap.worse


def differences(scenario: RecordedScenario) -> list[Difference]:
    """Return the differences of all strategies of a scenario to its best one.

    Paired over the seeds that both strategies completed, in the ranking metric.

    Returns:
        One for each strategy, the best one first; none where no two seeds can be paired.
    """
    metric, (leader, *others) = scenario.columns[0], scenario.ranked
    if not others or leader.diverged or isnan(leader.final[metric.name].mean):
        return []
    sign = 1 if metric.higher else -1
    losses = {
        cell.strategy: {
            run.seed: value for run in cell.finite if not isnan(value := -sign * run.final(metric.name))
        }
        for cell in scenario.ranked
    }
    gaps = behind(losses)
    if all(gap.effect.n < 2 for gap in gaps.values()):
        return []
    return [
        Difference(cell, values, gaps.get(cell.strategy))
        for cell in scenario.ranked
        for values in [paired(losses[leader.strategy], losses[cell.strategy]) if cell is not leader else ()]
    ]


def behind(losses: Mapping[str, Mapping[int, float]]) -> dict[str, Gap]:
    """Return how far strategies are behind the first one, which is the best on the same seeds.

    Any strategy might have led. Hence intervals hold together at 95 % for all pairs of strategies, and p is
    Holm's among all pairs: of equal strategies, one is shown to be worse in at most 5 % of cases.

    Args:
        losses: Strategy → seed → a number of which less is better, the best strategy first.
    """
    from reports.statistics.paired import LEVEL, effect, holm, seeds_to_decide, student

    pairs = {
        (first, second): values
        for first, second in combinations(losses, 2)
        if (values := paired(losses[first], losses[second]))
    }
    level = 1 - (1 - LEVEL) / max(1, len(pairs))
    adjusted = dict(zip(pairs, holm([student(values).p for values in pairs.values()]), strict=True))
    leader, *others = losses
    gaps = {}
    for name in others:
        if (leader, name) in pairs:
            gap, p = effect(pairs[leader, name], level), adjusted[leader, name]
            worse = gap.mean > 0 and p <= 1 - LEVEL
            seeds = None if worse else seeds_to_decide(gap, level=level)
            gaps[name] = Gap(gap, p, worse, None if seeds is None else max(seeds, gap.n + 1))
    return gaps


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[float, ...]:
    """Return the second minus the first, for each seed that both have."""
    return tuple(value - first[seed] for seed, value in second.items() if seed in first)
