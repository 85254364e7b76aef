"""Who leads a suite: mean ranks over its scenarios, or the final values of a single one, over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isnan
from typing import TYPE_CHECKING

import numpy as np

from fl_core.schema import Status
from reports.records.records import RecordedScenario
from reports.records.summary import Row
from reports.statistics.differences import Behind, behind, differences

if TYPE_CHECKING:
    from reports.statistics.paired import Effect


@dataclass(frozen=True, slots=True)
class Standing:
    """One strategy of a suite."""

    strategy: str
    score: Effect  # mean rank (1 is best) or mean final value, over seeds, with its own interval of 95 %
    behind: Behind | None = None  # against the leader, on the same scale; None of the leader, or if unpaired

    @property
    def open(self) -> bool:
        """Whether it was compared and is not separated from the leader."""
        return self.behind is not None and not self.behind.worse


@dataclass(frozen=True, slots=True)
class Standings:
    """The strategies that ran in all scenarios, the leader first.

    With several scenarios each seed gives every strategy a mean rank: its rank in a scenario is that of its
    final value among the strategies of that seed, ties share theirs, and diverged runs share the last ones.
    The interval is that of the mean over seeds; scenarios are those of the suite, and not a sample of others.
    """

    lines: tuple[Standing, ...]
    scenarios: int
    seeds: int  # that all of them have
    by_rank: bool

    @property
    def leader(self) -> Standing:
        """The first one."""
        return self.lines[0]

    @property
    def order(self) -> list[str]:
        """The strategies, the leader first."""
        return [one.strategy for one in self.lines]

    @property
    def compared(self) -> list[Standing]:
        """Those that were compared with the leader."""
        return [one for one in self.lines if one.behind is not None]

    @property
    def open(self) -> list[Standing]:
        """Those that are not separated from the leader, the nearest first."""
        return [one for one in self.lines if one.open]


def standings(scenarios: Sequence[tuple[RecordedScenario, Sequence[Row]]]) -> Standings | None:
    """None where fewer than two strategies have a number that can be compared."""
    if not scenarios:
        return None
    return _by_value(*scenarios[0]) if len(scenarios) == 1 else by_rank(Finals.of(scenarios))


def _by_value(scenario: RecordedScenario, rows: Sequence[Row]) -> Standings | None:
    from reports.statistics.paired import effect

    ranks = scenario.columns[0]
    compared = {one.row.strategy: one for one in differences(scenario, list(rows))}
    lines = []
    for row in rows:
        values = [value for run in row.cell.finite if not isnan(value := run.final(ranks.name))]
        one = compared.get(row.strategy)
        away = Behind(one.effect, one.p, one.worse, one.needed) if one and one.effect else None
        if values and not row.diverged:
            lines.append(Standing(row.strategy, effect(values), away))
    if len(lines) < 2:
        return None
    return Standings(tuple(lines), 1, min(one.score.n for one in lines), by_rank=False)


def by_rank(table: Finals) -> Standings | None:
    """The standings by mean rank; None where fewer than two strategies, or no seed, can be compared."""
    from reports.statistics.paired import effect

    if len(table.strategies) < 2 or not table.seeds:
        return None
    ranks = table.ranks.mean(0)  # [strategies, seeds]
    order = np.argsort(ranks.mean(1), kind="stable")
    first = order[0]
    away = behind({table.strategies[at]: list(ranks[at] - ranks[first]) for at in order[1:]})
    lines = tuple(
        Standing(name, effect(list(ranks[at])), away.get(name) if len(table.seeds) > 1 else None)
        for at in order
        if (name := table.strategies[at])
    )
    return Standings(lines, len(table.worth), len(table.seeds), by_rank=True)


@dataclass(frozen=True, eq=False)
class Finals:
    """Final values of the strategies that all scenarios have, over the seeds that all of them ended."""

    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    worth: np.ndarray  # [scenarios, strategies, seeds]; more is better, −∞ of diverged runs

    @classmethod
    def of(cls, scenarios: Sequence[tuple[RecordedScenario, Sequence[Row]]]) -> Finals:
        """Of runs as they were recorded."""
        tables = [_worth(scenario) for scenario, _ in scenarios]
        strategies = tuple(name for name in tables[0] if all(name in table for table in tables))
        by_seed = [set(table[name]) for table in tables for name in strategies]
        seeds = sorted(set.intersection(*by_seed)) if by_seed else []
        worth = [[[table[name][seed] for seed in seeds] for name in strategies] for table in tables]
        return cls(strategies, tuple(seeds), np.array(worth))

    @cached_property
    def ranks(self) -> np.ndarray:
        """Ranks among the strategies from 1, ties sharing their mean [scenarios, strategies, seeds]."""
        from reports.statistics.estimates import ranks

        return np.apply_along_axis(ranks, 1, -self.worth)


def _worth(scenario: RecordedScenario) -> dict[str, dict[int, float]]:
    """Strategy → seed → final value, more being better."""
    ranks = scenario.columns[0]
    sign = 1 if ranks.higher else -1
    found: dict[str, dict[int, float]] = {}
    for cell in scenario.cells:
        ended = {
            run.seed: -inf if run.status is Status.DIVERGED else sign * run.final(ranks.name)
            for run in cell.runs
            if run.status.terminated
        }
        known = {seed: value for seed, value in ended.items() if not isnan(value)}
        if known:
            found[cell.strategy] = known
    return found
