"""Who leads a suite: mean ranks over its scenarios, or the final values of a single one, over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isnan

import numpy as np

from fl_core.schema import Status
from reports.comparisons import Gap, behind, differences
from reports.inference import Effect, paired_effect, ranks
from reports.records.records import RecordedScenario


@dataclass(frozen=True, slots=True)
class StrategyStanding:
    """One strategy of a suite."""

    strategy: str
    score: Effect  # mean rank (1 is best) or mean final value, over seeds, with its own interval of 95 %
    gap: Gap | None = None  # to the leader, on the same scale; None of the leader, or if unpaired

    @property
    def open(self) -> bool:
        """Whether it was compared and is not separated from the leader."""
        return self.gap is not None and not self.gap.worse


@dataclass(frozen=True, slots=True)
class Standings:
    """The strategies that ran in all scenarios, the leader first.

    With several scenarios each seed gives every strategy a mean rank: its rank in a scenario is that of its
    final value among the strategies of that seed, ties share theirs, and diverged runs share the last ones.
    The interval is that of the mean over seeds; scenarios are those of the suite, and not a sample of others.
    """

    lines: tuple[StrategyStanding, ...]
    scenarios: int
    seeds: int  # that all of them have
    by_rank: bool

    @property
    def leader(self) -> StrategyStanding:
        """The first strategy."""
        return self.lines[0]

    @property
    def order(self) -> list[str]:
        """The strategies, the leader first."""
        return [line.strategy for line in self.lines]

    @property
    def compared(self) -> list[StrategyStanding]:
        """The strategies that were compared with the leader."""
        return [line for line in self.lines if line.gap is not None]

    @property
    def open(self) -> list[StrategyStanding]:
        """The strategies that are not separated from the leader, the nearest first."""
        return [line for line in self.lines if line.open]


def standings(scenarios: Sequence[RecordedScenario]) -> Standings | None:
    """Return the standings; None where fewer than two strategies have a number that can be compared."""
    if not scenarios:
        return None
    return _by_value(scenarios[0]) if len(scenarios) == 1 else by_rank(Finals.of(scenarios))


def _by_value(scenario: RecordedScenario) -> Standings | None:
    gaps = {other.strategy: other.gap for other in differences(scenario)}
    lines = []
    for cell in scenario.ranked:
        finals = [run.final(scenario.columns[0].name) for run in cell.finite]
        values = [value for value in finals if not isnan(value)]
        if values and not cell.diverged:
            lines.append(StrategyStanding(cell.strategy, paired_effect(values), gaps.get(cell.strategy)))
    if len(lines) < 2:
        return None
    return Standings(tuple(lines), 1, min(line.score.n for line in lines), by_rank=False)


def by_rank(table: Finals) -> Standings | None:
    """Return the standings by mean rank; None where fewer than two strategies can be compared."""
    if len(table.strategies) < 2 or not table.seeds:
        return None
    means = table.ranks.mean(0)  # [strategies, seeds]
    order = np.argsort(means.mean(1), kind="stable")
    names = [table.strategies[at] for at in order]
    ranks = dict(zip(names, means[order], strict=True))
    several = len(table.seeds) > 1
    gaps = behind({name: dict(enumerate(ranks[name])) for name in names}) if several else {}
    lines = tuple(StrategyStanding(name, paired_effect(list(ranks[name])), gaps.get(name)) for name in names)
    return Standings(lines, len(table.worth), len(table.seeds), by_rank=True)


@dataclass(frozen=True, eq=False)
class Finals:
    """Final values of the strategies that all scenarios have, over the seeds that all of them ended."""

    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    worth: np.ndarray  # [scenarios, strategies, seeds]; more is better, −∞ of diverged runs

    @classmethod
    def of(cls, scenarios: Sequence[RecordedScenario]) -> Finals:
        """Return the final values of runs as they were recorded."""
        tables = [_worth(scenario) for scenario in scenarios]
        strategies = tuple(name for name in tables[0] if all(name in table for table in tables))
        by_seed = [set(table[name]) for table in tables for name in strategies]
        seeds = sorted(set.intersection(*by_seed)) if by_seed else []
        worth = [[[table[name][seed] for seed in seeds] for name in strategies] for table in tables]
        return cls(strategies, tuple(seeds), np.array(worth))

    @cached_property
    def ranks(self) -> np.ndarray:
        """Ranks among the strategies from 1, ties sharing their mean [scenarios, strategies, seeds]."""
        return np.apply_along_axis(ranks, 1, -self.worth)


def _worth(scenario: RecordedScenario) -> dict[str, dict[int, float]]:
    """Return strategy → seed → final value, more being better."""
    metric = scenario.columns[0]
    sign = 1 if metric.higher else -1
    worth = {
        cell.strategy: {
            run.seed: value
            for run in cell.runs
            if run.status.terminated
            for value in [-inf if run.status is Status.DIVERGED else sign * run.final(metric.name)]
            if not isnan(value)
        }
        for cell in scenario.cells
    }
    return {strategy: values for strategy, values in worth.items() if values}
