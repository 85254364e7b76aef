"""Ablation: the tuned strategy with a single part turned off, on identical seeds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from benchmarks.leaderboard.entry import chosen
from benchmarks.leaderboard.finals import finals
from fl_core.parts import Part
from fl_core.scenario import Scenario
from fl_core.schema import SEED
from fl_core.strategies.hyperparameters import Values, with_parameters
from fl_core.strategies.strategy import Strategy
from fl_core.streams import stream
from fl_core.text import listed
from reports.inference import percentiles
from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.standing import RESAMPLES
from reports.leaderboard.tables import TUNED, Tables
from reports.leaderboard.workloads import Place
from tuning.study import Campaign, Study

OFF = (False, None, "none", 0)  # values of a field that turn its part off, the first that it takes
COLUMNS = ("part", "factor", "low", "high", "error")


def switches(strategy: Strategy, scenario: Scenario) -> dict[str, Any]:
    """Return the strategy's own fields open to ablation, each with the value to turn the field off."""
    names = type(strategy).model_fields.keys() - Strategy.model_fields.keys()
    fields = [name for name in type(strategy).model_fields if name in names]
    off = {name: _off(strategy, name, scenario) for name in fields}
    return {name: value for name, (takes, value) in off.items() if takes}


def _off(strategy: Strategy, name: str, scenario: Scenario) -> tuple[bool, Any]:
    current = getattr(strategy, name)
    if isinstance(current, Part) or current in OFF:
        return False, None  # another part is another strategy; what is off stays off
    for value in OFF:
        if (value is False) == isinstance(current, bool):
            try:
                with_parameters(strategy, {name: value}, scenario)
            except (ValidationError, ValueError):
                continue
            return True, value
    return False, None


@dataclass(frozen=True)
class Ablation:
    """Parts of a strategy to turn off in turn."""

    strategy: str  # label
    off: Mapping[str, Any]  # field → the value that turns it off

    def studies(
        self,
        final: Campaign,
        places: Mapping[str, Place],
        tables: Tables,
        values: Mapping[Place, Mapping[int, Values]],
    ) -> list[tuple[str, Study]]:
        """Return the studies without each part, at the tuned point of every scenario.

        Args:
            final: The design under the name of the final runs.
            places: Scenario → how the tables name it.
            tables: Those of the design.
            values: The parameters of the strategy's points by number, of every scenario.
        """
        tuned = self._tuned(tables)
        at = {
            (scenario, self.strategy): {tuned[place]: values[place][tuned[place]]}
            for scenario, place in places.items()
        }
        full = finals(final, at).studies
        return [(name, without(study, name, value)) for name, value in self.off.items() for study in full]

    def factors(
        self, tables: Tables, runs: pd.DataFrame, errors: Mapping[str, Mapping[str, str]]
    ) -> pd.DataFrame:
        """Return the factor in time to target without each part, with an interval over seeds.

        Where the strategy fails in a scenario there is no factor: the other scenarios would pass for all.

        Args:
            tables: Those of the design with final runs.
            runs: The runs without a part: scenario, seed, part, time_hard.
            errors: Part → scenario → why it fails without the part.
        """
        full = tables.finals
        full = full[(full["strategy"] == self.strategy) & (full["ruleset"] == TUNED)]
        budget = tables.rules.frames["budget"]
        rows: list[tuple[str, float, float, float, str]] = []
        for name in self.off:
            if errors.get(name):
                rows.append((name, nan, nan, nan, _said(errors[name])))
                continue
            ratio = _log_time(runs[runs["part"] == name], budget) - _log_time(full, budget)
            by_seed = ratio.unstack(SEED).mean().to_numpy()
            draws = stream(0, "ablation").choice(by_seed, (RESAMPLES, len(by_seed))).mean(1)
            factor, low, high = np.exp([by_seed.mean(), *percentiles(draws)])
            rows.append((name, factor, low, high, ""))
        return pd.DataFrame(rows, columns=COLUMNS)

    def _tuned(self, tables: Tables) -> dict[Place, int]:
        return {
            place: points[TUNED] for (place, name), points in chosen(tables).items() if name == self.strategy
        }


def without(study: Study, name: str, value: Any) -> Study:
    """Return a single-point study with a field, tuned or not, fixed to a value."""
    space = replace(study.space, candidates={**study.space.candidates, name: (value,)})
    first = tuple((origin, {**values, name: value}) for origin, values in study.first)
    return replace(study, strategy=f"{study.strategy}, without {name}", space=space, first=first)


def _said(errors: Mapping[str, str]) -> str:
    places: dict[str, list[str]] = {}
    for scenario, error in errors.items():
        places.setdefault(error, []).append(scenario)
    return "; ".join(f"{listed(scenarios)}: {error}" for error, scenarios in places.items())


def _log_time(runs: pd.DataFrame, budget: pd.Series) -> pd.Series:
    ends = budget.reindex(pd.MultiIndex.from_frame(runs[SCENARIO])).to_numpy()
    return pd.Series(
        np.log(np.minimum(runs["time_hard"].to_numpy(), ends)),
        pd.MultiIndex.from_frame(runs[[*SCENARIO, SEED]]),
    )
