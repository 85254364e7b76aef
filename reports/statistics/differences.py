"""How far every strategy of a scenario is behind its best one, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING

from reports.records.records import RecordedScenario
from reports.records.summary import Row

if TYPE_CHECKING:
    from reports.statistics.paired import Effect


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """One strategy against the best of the scenario; positive where it is worse."""

    row: Row
    values: tuple[float, ...]  # one per seed that both completed
    # Its interval holds at 95 % together with those of all strategies that are compared (Bonferroni).
    effect: Effect | None  # None where there is no such seed, and of the best itself
    p: float  # adjusted (Holm) for the number of strategies that are compared; NaN without an effect
    worse: bool = False  # whether it is shown to be worse; False means only that it is not shown
    needed: int | None = None  # seeds that would separate it, if the difference is as estimated

    @property
    def open(self) -> bool:
        """Whether it was compared and is not separated from the best."""
        return self.effect is not None and not self.worse


def differences(scenario: RecordedScenario, rows: Sequence[Row]) -> list[Difference]:
    """Of all rows, in their order, the first one being the best; none where no two seeds can be paired.

    Paired over the seeds that both strategies completed, in the ranking metric. The best is chosen on the
    same seeds, which favours it: with few seeds and many strategies some lead by chance.
    """
    ranks = scenario.columns[0]
    if len(rows) < 2 or rows[0].diverged or isnan(rows[0].final[ranks.name].mean):
        return []
    best, *others = rows
    sign = 1 if ranks.higher else -1
    reference = {run.seed: run.final(ranks.name) for run in best.cell.finite}
    paired = {
        row.strategy: tuple(
            value
            for run in row.cell.finite
            if run.seed in reference
            and not isnan(value := sign * (reference[run.seed] - run.final(ranks.name)))
        )
        for row in others
    }
    found = behind({name: values for name, values in paired.items() if values})
    if all(one.effect.n < 2 for one in found.values()):
        return []

    def compared(row: Row) -> Difference:
        one = found.get(row.strategy)
        if one is None:
            return Difference(row, (), None, nan)
        return Difference(row, paired[row.strategy], one.effect, one.p, one.worse, one.needed)

    return [Difference(best, (), None, nan), *map(compared, others)]


@dataclass(frozen=True, slots=True)
class Behind:
    """How far one of several is behind the same best one."""

    effect: Effect
    p: float  # Holm's, among all of them
    worse: bool
    needed: int | None


def behind(differences: Mapping[str, Sequence[float]]) -> dict[str, Behind]:
    """By name, from differences over seeds: intervals that hold together at 95 %, and p adjusted (Holm)."""
    from reports.statistics.paired import LEVEL, effect, holm, seeds_to_decide

    level = 1 - (1 - LEVEL) / max(1, len(differences))
    effects = {name: effect(values, level) for name, values in differences.items()}
    adjusted = holm([one.p for one in effects.values()])
    found = {}
    for (name, one), p in zip(effects.items(), adjusted, strict=True):
        worse = one.mean > 0 and p <= 1 - LEVEL
        seeds = None if worse else seeds_to_decide(one, level=level)
        found[name] = Behind(one, p, worse, None if seeds is None else max(seeds, one.n + 1))
    return found
