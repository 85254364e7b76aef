"""Ranks over scenarios, with intervals over seeds.

In every scenario and seed the strategies are ranked by the metric at the end, 1 the best; equal values share
their mean rank, and runs that diverged share the last places. A seed's value is the mean of a strategy's
ranks over the scenarios. Intervals are Student's over seeds, since all scenarios of a seed share initial
models and job lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from reports.leaderboard.results import SCENARIO
from reports.statistics.paired import LEVEL, student


def ranks(results: pd.DataFrame) -> pd.DataFrame:
    """The results of the seeds that all strategies of a scenario have, with a column `rank`."""
    wanted = results.groupby(SCENARIO)["strategy"].transform("nunique")
    held = results.groupby([*SCENARIO, "seed"])["strategy"].transform("nunique")
    shared = results[held == wanted]
    rank = shared.groupby([*SCENARIO, "seed"])["value"].rank(ascending=False, na_option="bottom")
    return shared.assign(rank=rank)


def standings(ranked: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Mean rank of each strategy over all scenarios, or over those of each group; the best first.

    Columns: those of `by`; strategy; rank, low, high: the mean with its interval; separated: whether it is
    shown to be behind the first, by the interval of the paired difference, simultaneous for all strategies
    (Bonferroni); seeds; scenarios.
    """
    groups = ranked.groupby(list(by), sort=False) if by else [((), ranked)]
    rows = [(*group, *row) for group, of in groups for row in _standing(of)]
    columns = [*by, "strategy", "rank", "low", "high", "separated", "seeds", "scenarios"]
    return pd.DataFrame(rows, columns=columns)


def _standing(ranked: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    per_seed = ranked.pivot_table("rank", "seed", "strategy", aggfunc="mean")
    order = per_seed.mean().sort_values().index
    scenarios = ranked.groupby(SCENARIO).ngroups
    level = 1 - (1 - LEVEL) / max(1, len(order) - 1)
    for strategy in order:
        own = student(per_seed[strategy].to_numpy())
        low, high = max(1.0, own.low), min(float(len(order)), own.high)  # there are no other ranks
        behind = student((per_seed[strategy] - per_seed[order[0]]).to_numpy(), level)
        yield strategy, own.mean, low, high, behind.low > 0, own.n, scenarios
