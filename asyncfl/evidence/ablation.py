"""Ablation: the tuned strategy with one of its parts turned off, on the same seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from asyncfl.leaderboard.entry import chosen
from fl_core.parts import Part
from fl_core.scenario import Scenario
from fl_core.schema import SEED
from fl_core.strategies.hyperparameters import Values, with_parameters
from fl_core.strategies.strategy import Strategy
from fl_core.streams import stream
from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.standing import RESAMPLES, interval
from reports.leaderboard.tables import TUNED, Tables
from reports.leaderboard.workloads import Place

OFF = (False, None, "none", 0)  # values of a field that turn its part off, the first that it takes
APART = 1000  # points without the k-th part are numbered from k · 1000


def switches(strategy: Strategy, scenario: Scenario) -> dict[str, Any]:
    """Return the strategy's own fields that can be turned off, each with the value that does so."""
    own = type(strategy).model_fields.keys() - Strategy.model_fields.keys()
    fields = [name for name in type(strategy).model_fields if name in own]
    off = {name: _off(strategy, name, scenario) for name in fields}
    return {name: value for name, (takes, value) in off.items() if takes}


def _off(strategy: Strategy, name: str, scenario: Scenario) -> tuple[bool, Any]:
    now = getattr(strategy, name)
    if isinstance(now, Part) or now in OFF:
        return False, None  # another part is another strategy; what is off stays off
    for value in OFF:
        if (value is False) == isinstance(now, bool):
            try:
                with_parameters(strategy, {name: value}, scenario)
            except (ValidationError, ValueError):
                continue
            return True, value
    return False, None


@dataclass(frozen=True)
class Ablation:
    """The parts of a strategy that are turned off in turn."""

    strategy: str  # label
    off: Mapping[str, Any]  # field → the value that turns it off

    def points(
        self, tables: Tables, values: Mapping[Place, Mapping[int, Values]]
    ) -> dict[Place, dict[int, Values]]:
        """Return the points to run in every scenario: the tuned one without each part.

        Args:
            tables: Those of the design.
            values: The parameters of the strategy's points by number, of every scenario.
        """
        tuned = self._tuned(tables)
        return {
            place: {
                APART * k + tuned[place]: {**values[place][tuned[place]], name: value}
                for k, (name, value) in enumerate(self.off.items(), 1)
            }
            for place in values
        }

    def factors(self, tables: Tables, without: pd.DataFrame) -> pd.DataFrame:
        """Return how many times longer it takes without each part, with an interval over seeds.

        Args:
            tables: Those of the design with final runs.
            without: The runs without a part: scenario, seed, point, time_hard.
        """
        whole = tables.finals
        whole = whole[(whole["strategy"] == self.strategy) & (whole["ruleset"] == TUNED)]
        budget = tables.rules.frames["budget"]
        rows = []
        for k, name in enumerate(self.off, 1):
            own = without[without["point"] // APART == k]
            ratio = _log_time(own, budget) - _log_time(whole, budget)
            by_seed = ratio.unstack(SEED).mean().to_numpy()
            draws = stream(0, "ablation").choice(by_seed, (RESAMPLES, len(by_seed))).mean(1)
            low, high = interval(draws)
            rows.append(
                {"part": name, "factor": np.exp(by_seed.mean()), "low": np.exp(low), "high": np.exp(high)}
            )
        return pd.DataFrame(rows, columns=["part", "factor", "low", "high"])

    def _tuned(self, tables: Tables) -> dict[Place, int]:
        return {
            place: points[TUNED] for (place, name), points in chosen(tables).items() if name == self.strategy
        }


def _log_time(runs: pd.DataFrame, budget: pd.Series) -> pd.Series:
    ends = budget.reindex(pd.MultiIndex.from_frame(runs[SCENARIO])).to_numpy()
    return pd.Series(
        np.log(np.minimum(runs["time_hard"].to_numpy(), ends)),
        pd.MultiIndex.from_frame(runs[[*SCENARIO, SEED]]),
    )
