"""A leaderboard: what is computed from the results of a suite, and from the studies that tuned it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.errors import UserError
from fl_core.schema import Status
from reports.leaderboard import results
from reports.leaderboard.profiles import ratios, score
from reports.leaderboard.rules import SCENARIO
from reports.statistics.standings import Finals, by_rank

POPULATION = ["timing", "partition"]
STANDING = ["strategy", "rank", "low", "high", "separated", "seeds", "scenarios"]


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """The results of one suite, or of several together."""

    runs: pd.DataFrame  # as `results.results` has them
    about: str = ""  # the suite's description

    @classmethod
    def load(cls, folder: Path, suite: str, about: str = "") -> Leaderboard:
        """Return the kept results of a suite's scales in a folder; UserError where there are none."""
        files = sorted(folder.glob(f"{suite}-*.csv"))
        if not files:
            raise UserError(
                f"no results of '{suite}' are kept in {folder}; name a suite that has run: "
                "asyncfl leaderboard SUITE"
            )
        return cls(pd.concat(map(results.load, files), ignore_index=True), about)

    @cached_property
    def ratios(self) -> pd.DataFrame:
        """Times to target as multiples of the fastest strategy's, [scenario, strategy]; maybe no scenario."""
        return ratios(self.runs)

    @cached_property
    def overall(self) -> pd.DataFrame:
        """A row for each strategy, the best mean rank first: standing, score, final values, cost."""
        by_strategy = self.runs.groupby("strategy")
        uploads = self.runs.pivot_table("uploads", SCENARIO, "strategy", aggfunc="median", dropna=False)
        columns = {
            "score": self.ratios.apply(score) if len(self.ratios) else np.nan,
            **{name: by_strategy[name].mean() for name in ("value", "worst_client")},
            "uploads": uploads.div(uploads.min(axis=1), axis=0).median(),  # as a multiple of the least
            **{name: by_strategy[name].median() for name in ("server_bytes", "clients_bytes", "width")},
            "diverged": by_strategy["status"].agg(lambda status: (status == Status.DIVERGED).mean()),
        }
        return standings(self.runs).join(pd.DataFrame(columns), on="strategy")

    @cached_property
    def problems(self) -> pd.DataFrame:
        """The standing on each problem, over populations and splits of the data."""
        return standings(self.runs, ["problem"])

    @cached_property
    def populations(self) -> pd.DataFrame:
        """The standing in each population of clients, over problems."""
        return standings(self.runs, POPULATION)


def standings(results: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return the standing of each strategy over all scenarios, or over those of each group; the best first.

    Args:
        results: A table of results, one row per run.
        by: The columns that make the groups.

    Returns:
        The columns of `by`; strategy; rank, low, high: the mean with its interval; separated: whether it is
        shown to be behind the first; seeds; scenarios. A group in which nothing can be compared is left out.
    """
    groups = results.groupby(list(by), sort=False) if by else [((), results)]
    rows = []
    for group, own in groups:
        if (ranked := by_rank(finals(own))) is None:
            continue
        for line in ranked.lines:
            row = dict(zip(by, group, strict=True)) | {"strategy": line.strategy, "rank": line.score.mean}
            row["low"] = max(1.0, line.score.low)  # there are no other ranks
            row["high"] = min(float(len(ranked.lines)), line.score.high)
            row["separated"] = line.gap is not None and line.gap.worse
            rows.append(row | {"seeds": ranked.seeds, "scenarios": ranked.scenarios})
    return pd.DataFrame(rows, columns=[*by, *STANDING])


def finals(results: pd.DataFrame) -> Finals:
    """Return final values of the strategies in all scenarios, over the seeds that all of them ended."""
    worth = results["value"].where(results["status"] != Status.DIVERGED, -np.inf)
    known = results.assign(value=worth).dropna(subset="value")
    everywhere = known.groupby("strategy")[SCENARIO].apply(lambda scenarios: len(scenarios.drop_duplicates()))
    strategies = tuple(everywhere.index[everywhere == known.groupby(SCENARIO).ngroups])
    wide = known.pivot(index=SCENARIO, columns=["seed", "strategy"], values="value").dropna(axis=1)
    held = [seed for seed in known["seed"].unique() if {(seed, name) for name in strategies} <= set(wide)]
    values = [[wide[seed, name].to_numpy() for seed in sorted(held)] for name in strategies]
    return Finals(strategies, tuple(sorted(held)), np.moveaxis(np.array(values), -1, 0))
