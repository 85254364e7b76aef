"""Costs of reaching the hard target: logarithms of virtual times, censored at the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.tables import RULESETS, Tables

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ReevaluatedPoints:
    """The points run under all design seeds; NaN where a scenario has fewer than others."""

    points: Array  # their numbers [A, S, Q]
    cost: Array  # [A, S, Q, design seeds]
    accuracy: Array


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs log min(T, budget) of strategies [A] in scenarios [S]; NaN without a run.

    A score is a difference of costs, so that what is chosen by least cost has the greatest score.
    """

    strategies: tuple[str, ...]
    scenarios: pd.MultiIndex
    design: Array  # [A, S, points, design seeds]; the first seed has all points
    accuracy: Array  # of the same runs, at the end
    finals: Mapping[str, Array]  # ruleset → [A, S, final seeds]
    reached: Mapping[str, Array]  # ruleset → whether, of the same shape

    @classmethod
    def of(cls, tables: Tables, horizon: float = 1.0) -> Costs:
        """Return the costs of all entries, censored at a share of every budget."""
        rules, finals, design = tables.rules, tables.finals, tables.design
        names, scenarios = tables.entries, tables.scenarios

        def spread(table: pd.DataFrame, values: Array, axes: Mapping[str, Sequence[int]]) -> Array:
            places = [
                pd.Index(names).get_indexer(pd.Index(table["strategy"])),
                scenarios.get_indexer(pd.MultiIndex.from_frame(table[SCENARIO])),
                *(pd.Index(known).get_indexer(pd.Index(table[axis])) for axis, known in axes.items()),
            ]
            ruled = np.all(np.array(places) >= 0, axis=0)
            full = np.full([len(names), len(scenarios), *map(len, axes.values())], np.nan)
            full[tuple(place[ruled] for place in places)] = np.asarray(values, float)[ruled]
            return full

        at = {"point": range(rules.points), "seed": rules.design_seeds}
        cost = _cost(finals, tables, horizon)
        reached = finals["time_hard"].to_numpy() <= horizon * rules.budgets(finals)
        under = {"seed": rules.final_seeds}
        by_ruleset = {name: (finals["ruleset"] == name).to_numpy() for name in RULESETS}
        return cls(
            names,
            scenarios,
            spread(design, _cost(design, tables, horizon), at),
            spread(design, design["accuracy"].to_numpy(), at),
            {name: spread(finals[own], cost[own], under) for name, own in by_ruleset.items()},
            {name: spread(finals[own], reached[own], under) for name, own in by_ruleset.items()},
        )

    def within(self, scenarios: Array) -> Costs:
        """Return the costs in some scenarios alone; a mask [S]."""
        at = np.flatnonzero(scenarios)
        return replace(
            self,
            scenarios=self.scenarios[at],
            design=self.design[:, at],
            accuracy=self.accuracy[:, at],
            finals={name: table[:, at] for name, table in self.finals.items()},
            reached={name: table[:, at] for name, table in self.reached.items()},
        )

    @cached_property
    def again(self) -> ReevaluatedPoints:
        """The candidates of the tuned ruleset."""
        whole = ~np.isnan(self.design).any(-1)
        points = np.argsort(~whole, axis=-1, kind="stable")[..., : max(1, whole.sum(-1).max(initial=1))]
        known = np.take_along_axis(whole, points, -1)[..., None]
        tables = (np.take_along_axis(table, points[..., None], 2) for table in (self.design, self.accuracy))
        return ReevaluatedPoints(points, *(np.where(known, table, np.nan) for table in tables))

    @cached_property
    def siblings(self) -> Array:
        """Mask [S, S] of pairs of different scenarios with a common workload."""
        problems = np.asarray(self.scenarios.get_level_values("problem"))
        return (problems[:, None] == problems[None, :]) & ~np.eye(len(problems), dtype=bool)


def _cost(runs: pd.DataFrame, tables: Tables, horizon: float) -> Array:
    return np.log(np.minimum(runs["time_hard"].to_numpy(), horizon * tables.rules.budgets(runs)))
