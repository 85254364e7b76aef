"""How far every strategy of a scenario is behind its best one, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from reports.records.cells import Cell
from reports.records.records import RecordedScenario

if TYPE_CHECKING:
    from reports.statistics.paired import Effect


@dataclass(frozen=True, slots=True)
class Gap:
    """How far one of several strategies is behind the same best one."""

    effect: Effect  # its interval holds at 95 % together with those of all that are compared (Bonferroni)
    p: float  # adjusted (Holm) for the number of strategies that are compared
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

    Paired over the seeds that both strategies completed, in the ranking metric. The best is chosen on the
    same seeds, which favours it: with few seeds and many strategies some lead by chance.

    Returns:
        One for each strategy, the best one first; none where no two seeds can be paired.
    """
    metric, (leader, *others) = scenario.columns[0], scenario.ranked
    if not others or leader.diverged or isnan(leader.final[metric.name].mean):
        return []
    sign = 1 if metric.higher else -1
    best = {run.seed: run.final(metric.name) for run in leader.finite}
    paired = {
        cell.strategy: tuple(
            value
            for run in cell.finite
            if run.seed in best and not isnan(value := sign * (best[run.seed] - run.final(metric.name)))
        )
        for cell in others
    }
    gaps = behind({strategy: values for strategy, values in paired.items() if values})
    if all(gap.effect.n < 2 for gap in gaps.values()):
        return []
    return [
        Difference(cell, paired.get(cell.strategy, ()), gaps.get(cell.strategy)) for cell in scenario.ranked
    ]


def behind(differences: Mapping[str, Sequence[float]]) -> dict[str, Gap]:
    """Return gaps by name, from differences over seeds: intervals hold together at 95 %, p is Holm's."""
    from reports.statistics.paired import LEVEL, effect, holm, seeds_to_decide

    level = 1 - (1 - LEVEL) / max(1, len(differences))
    effects = {name: effect(values, level) for name, values in differences.items()}
    adjusted = holm([effect.p for effect in effects.values()])
    gaps = {}
    for (name, gap), p in zip(effects.items(), adjusted, strict=True):
        worse = gap.mean > 0 and p <= 1 - LEVEL
        seeds = None if worse else seeds_to_decide(gap, level=level)
        gaps[name] = Gap(gap, p, worse, None if seeds is None else max(seeds, gap.n + 1))
    return gaps
