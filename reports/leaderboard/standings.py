"""Mean ranks in a table of results, over all scenarios or over those of each group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fl_core.schema import Status
from reports.leaderboard.results import SCENARIO
from reports.statistics.standings import Finals, Standing, by_rank


def standings(results: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """The standing of each strategy over all scenarios, or over those of each group; the best first.

    Columns: those of `by`; strategy; rank, low, high: the mean with its interval; separated: whether it is
    shown to be behind the first; seeds; scenarios. A group in which nothing can be compared is left out.
    """
    groups = results.groupby(list(by), sort=False) if by else [((), results)]
    rows = []
    for group, of in groups:
        if found := by_rank(finals(of)):
            rows += [
                (*group, *_row(one, len(found.lines)), found.seeds, found.scenarios) for one in found.lines
            ]
    columns = [*by, "strategy", "rank", "low", "high", "separated", "seeds", "scenarios"]
    return pd.DataFrame(rows, columns=columns)


def _row(one: Standing, last: int) -> tuple[str, float, float, float, bool]:
    low, high = max(1.0, one.score.low), min(float(last), one.score.high)  # there are no other ranks
    return one.strategy, one.score.mean, low, high, one.behind is not None and one.behind.worse


def finals(results: pd.DataFrame) -> Finals:
    """Final values of the strategies that all scenarios have, over the seeds that all of them ended."""
    worth = results["value"].where(results["status"] != Status.DIVERGED, -np.inf)
    known = results.assign(value=worth).dropna(subset="value")
    everywhere = known.groupby("strategy")[SCENARIO].apply(lambda of: len(of.drop_duplicates()))
    strategies = tuple(everywhere.index[everywhere == known.groupby(SCENARIO).ngroups])
    wide = known.pivot(index=SCENARIO, columns=["seed", "strategy"], values="value").dropna(axis=1)
    held = [seed for seed in known["seed"].unique() if {(seed, name) for name in strategies} <= set(wide)]
    values = [[wide[seed, name].to_numpy() for seed in sorted(held)] for name in strategies]
    return Finals(strategies, tuple(sorted(held)), np.moveaxis(np.array(values), -1, 0))
