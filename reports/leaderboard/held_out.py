"""Held-out scenarios and the board: does its order hold where nothing was tuned?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.standing import spearman, standing
from reports.leaderboard.tables import ONE_SETTING, RULESETS, Tables


def scores(tables: Tables) -> pd.Series:
    """Return the score of each entry in the held-out scenarios, the best first; maybe of none.

    It is the mean over scenarios and seeds of log(T_ref / T), both with the one setting of their workload.
    Entries without all of these runs are left out.
    """
    runs = tables.held_out
    if runs.empty:
        return pd.Series(dtype=float)
    runs = runs.assign(cost=np.log(np.minimum(runs["time_hard"], _budgets(tables))))
    costs = runs.pivot(index=[*SCENARIO, "seed"], columns="strategy", values="cost").dropna(axis=1)
    if tables.rules.reference not in costs:
        return pd.Series(dtype=float)
    ahead = -costs.sub(costs[tables.rules.reference], axis=0)
    return ahead.mean().sort_values(ascending=False, kind="stable")


def missed(tables: Tables) -> pd.Series:
    """Return how many held-out runs of each entry missed the hard target."""
    runs = tables.held_out
    return (runs["time_hard"] > _budgets(tables)).groupby(runs["strategy"]).sum()


def bounds(tables: Tables) -> dict[str, str]:
    """Return of each entry's speed-up there: '≥' where only the reference missed, '≤' where only it did."""
    count = missed(tables)
    late = count[tables.rules.reference] > 0
    return {
        str(name): "≥" if late and not own else "≤" if own and not late else "" for name, own in count.items()
    }


def correlations(tables: Tables) -> dict[str, float]:
    """Return the rank correlation of held-out scores with the board's of the same workloads, by ruleset."""
    there = scores(tables)
    if there.empty:
        return {}
    problems = dict.fromkeys(tables.held_out["problem"])
    boards = {ruleset: standing(tables.on(*problems), ruleset) for ruleset in RULESETS}
    shared = [name for name in boards[ONE_SETTING].costs.strategies if name in there.index]
    return {
        ruleset: spearman(_in_order(board.costs.strategies, board.scores, shared), there[shared].to_numpy())
        for ruleset, board in boards.items()
    }


def _in_order(names: tuple[str, ...], values: np.ndarray, shared: list[str]) -> np.ndarray:
    return pd.Series(values, index=list(names))[shared].to_numpy()


def _budgets(tables: Tables) -> np.ndarray:
    """Return the budget of each held-out run's scenario."""
    scenarios = pd.MultiIndex.from_frame(tables.held_out[SCENARIO])
    return tables.rules.frames["budget"].reindex(scenarios).to_numpy()
