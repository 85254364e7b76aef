"""How far every strategy of a scenario is behind its best one, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
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
    effect: Effect | None  # None where there is no such seed, and of the best itself
    p: float  # adjusted (Holm) for the number of strategies that are compared; NaN without an effect
    worse: bool = False  # whether it is shown to be worse; False means only that it is not shown

    @property
    def open(self) -> bool:
        """Whether it was compared and is not shown to be worse."""
        return self.effect is not None and not self.worse


def differences(scenario: RecordedScenario, rows: Sequence[Row]) -> list[Difference]:
    """Of all rows, in their order, the first one being the best; none where no two seeds can be paired.

    Paired over the seeds that both strategies completed, in the ranking metric. The best is chosen on the
    same seeds, which favours it: with few seeds and many strategies some lead by chance.
    """
    from reports.statistics.paired import LEVEL, effect, holm

    ranks = scenario.columns[0]
    if len(rows) < 2 or rows[0].diverged or isnan(rows[0].final[ranks.name].mean):
        return []
    best, *others = rows
    sign = 1 if ranks.higher else -1
    reference = {run.seed: run.final(ranks.name) for run in best.cell.done}
    paired = {
        row.strategy: tuple(
            value
            for run in row.cell.done
            if run.seed in reference
            and not isnan(value := sign * (reference[run.seed] - run.final(ranks.name)))
        )
        for row in others
    }
    effects = {name: effect(values) for name, values in paired.items() if values}
    if all(found.n < 2 for found in effects.values()):
        return []
    adjusted = dict(zip(effects, holm([found.p for found in effects.values()]), strict=True))

    def compared(row: Row) -> Difference:
        found, p = effects.get(row.strategy), adjusted.get(row.strategy, nan)
        worse = found is not None and found.mean > 0 and p <= 1 - LEVEL
        return Difference(row, paired[row.strategy], found, p, worse)

    return [Difference(best, (), None, nan), *map(compared, others)]
