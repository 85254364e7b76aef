"""Scores in held-out scenarios, and agreement with the order of the board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from fl_core.streams import stream
from reports.inference import spearman
from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.standing import RESAMPLES, bound, standing
from reports.leaderboard.tables import ONE_SETTING, RULESETS, Tables


def scores(tables: Tables) -> pd.Series:
    """Return the score of each entry in the held-out scenarios, the best first; possibly empty.

    It is the mean over scenarios and seeds of log(T_ref / T), both with the one setting of their workload.
    Entries without all of these runs are left out.
    """
    runs = tables.held_out
    if runs.empty:
        return pd.Series(dtype=float)
    runs = runs.assign(cost=np.log(np.minimum(runs["time_hard"], tables.rules.budgets(runs))))
    costs = runs.pivot(index=[*SCENARIO, "seed"], columns="strategy", values="cost").dropna(axis=1)
    if tables.rules.reference not in costs:
        return pd.Series(dtype=float)
    ahead = -costs.sub(costs[tables.rules.reference], axis=0)
    return ahead.mean().sort_values(ascending=False, kind="stable")


def each(tables: Tables) -> Iterator[tuple[str, Tables]]:
    """Yield each held-out scenario by name, with the tables restricted to the scenario's held-out runs."""
    for scenario, runs in tables.held_out.groupby(SCENARIO, sort=False):
        yield " · ".join(map(str, scenario)), replace(tables, held_out=runs.reset_index(drop=True))


def missed(tables: Tables) -> pd.Series:
    """Return how many held-out runs of each entry missed the hard target."""
    runs = tables.held_out
    return (runs["time_hard"] > tables.rules.budgets(runs)).groupby(runs["strategy"]).sum()


def bounds(tables: Tables) -> dict[str, str]:
    """Return by entry the sign of a bound on the held-out speed-up (see `bound`)."""
    late = missed(tables) > 0
    reference = tables.rules.reference
    return {str(name): "" if name == reference else bound(own, late[reference]) for name, own in late.items()}


def places(scored: pd.Series) -> dict[str, float]:
    """Return the place of each entry, 1 for the first; equal entries share the mean of places."""
    return {str(name): place for name, place in scored.rank(ascending=False).items()}


def over_scenarios(tables: Tables) -> pd.DataFrame:
    """Return scores in resampled held-out scenarios, [draws, entries]."""
    means = pd.DataFrame([scores(alone) for _, alone in each(tables)])
    count = len(means)
    times = stream(0, "held out").multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return pd.DataFrame(times @ means.to_numpy() / count, columns=means.columns)


def correlations(tables: Tables) -> dict[str, float]:
    """Return rank correlations of held-out and board scores on the held-out workloads, by ruleset."""
    there = scores(tables)
    if there.empty:
        return {}
    problems = dict.fromkeys(tables.held_out["problem"])
    boards = {ruleset: standing(tables.on(*problems), ruleset) for ruleset in RULESETS}
    shared = [name for name in boards[ONE_SETTING].costs.strategies if name in there.index]
    return {
        ruleset: spearman(
            pd.Series(board.scores, index=board.costs.strategies)[shared].to_numpy(), there[shared].to_numpy()
        )
        for ruleset, board in boards.items()
    }
