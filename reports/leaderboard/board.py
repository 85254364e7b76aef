"""A leaderboard: what is computed from the results of a suite, and from the studies that tuned it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.errors import UserError
from fl_core.schema import Status
from reports.leaderboard import results
from reports.leaderboard.profiles import ratios, score
from reports.leaderboard.results import SCENARIO
from reports.leaderboard.standings import standings

POPULATION = ["timing", "partition"]


@dataclass(frozen=True, eq=False)
class Board:
    """The results of one suite, or of several together."""

    runs: pd.DataFrame  # as `results.results` has them
    about: str = ""  # the suite's description

    @classmethod
    def load(cls, folder: Path, suite: str, about: str = "") -> Board:
        """From the results of a suite's scales that are kept in a folder; UserError where there are none."""
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
        found = pd.DataFrame(
            {
                "score": self.ratios.apply(score) if len(self.ratios) else np.nan,
                "value": by_strategy["value"].mean(),
                "worst_client": by_strategy["worst_client"].mean(),
                "uploads": uploads.div(uploads.min(axis=1), axis=0).median(),  # as a multiple of the least
                "server_bytes": by_strategy["server_bytes"].median(),
                "clients_bytes": by_strategy["clients_bytes"].median(),
                "width": by_strategy["width"].median(),
                "diverged": by_strategy["status"].agg(lambda status: (status == Status.DIVERGED).mean()),
            }
        )
        return standings(self.runs).join(found, on="strategy")

    @cached_property
    def problems(self) -> pd.DataFrame:
        """The standing on each problem, over populations and splits of the data."""
        return standings(self.runs, ["problem"])

    @cached_property
    def populations(self) -> pd.DataFrame:
        """The standing in each population of clients, over problems."""
        return standings(self.runs, POPULATION)
