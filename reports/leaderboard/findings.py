"""Findings on a strategy from the tables of a design: comparisons, claim, and a reviewer's checklist."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from fl_core.text import listed, many
from reports import numbers
from reports.inference import ERROR, paired_effect, percentiles, spearman
from reports.leaderboard.marks import untuned
from reports.leaderboard.printed import times
from reports.leaderboard.standing import (
    AGREES,
    BOUNDS,
    THIRD,
    Standing,
    standing,
    standing_table,
)
from reports.leaderboard.tables import ONE_SETTING, Tables

FEW_SEEDS, FEW_SCENARIOS = 5, 4  # below which an interval says little
FEW_ENTRIES = 6  # below which a rank correlation says little
AHEAD, BEHIND, NOT_SEPARATED = "ahead", "behind", "not separated"


@dataclass(frozen=True, eq=False)
class Findings:
    """An author's strategy among baselines, by the tables of a design."""

    strategy: str  # label
    tables: Tables
    ablation: pd.DataFrame  # part, factor, low, high, error
    refused: Mapping[str, str]  # what the strategy cannot take, and why

    @cached_property
    def tuned(self) -> Standing:
        """The standing with points tuned to each scenario."""
        return standing(self.tables)

    @cached_property
    def one_setting(self) -> Standing:
        """The standing with a single point for all scenarios of a workload."""
        return standing(self.tables, ONE_SETTING)

    @cached_property
    def third(self) -> Standing:
        """The standing at a third of every budget."""
        return standing(self.tables, horizon=THIRD)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The standing of all strategies, the best first."""
        return standing_table(self.tuned, self.tables)

    def row(self, name: str) -> dict[str, Any]:
        """Return the standing of a strategy."""
        return {str(column): values[name] for column, values in self.table.to_dict().items()}

    def against(self, own: Standing) -> pd.DataFrame:
        """Return the speed-up of the strategy over each baseline, paired by scenario and seed.

        A row for each baseline: factor, intervals of 95 % over seeds and over scenarios, the number of
        scenarios in which it is ahead, and the verdict, adjusted for all baselines (Bonferroni). It takes
        resampled seeds and scenarios, with the luck of tuning, and Student's t over the scenarios' means:
        resamples of a few scenarios alone differ too little.
        """
        names = own.costs.strategies
        at = names.index(self.strategy)
        rows = []
        for other, name in enumerate(names):
            if other == at:
                continue
            row = {"baseline": name, "factor": np.exp(own.scores[at] - own.scores[other])}
            for over in ("seeds", "scenarios"):
                draws = getattr(own, f"over_{over}")
                low, high = np.exp(percentiles(draws[:, at] - draws[:, other]))
                row |= {f"{over}_low": low, f"{over}_high": high}
            row["ahead_in"] = int((own.by_scenario[at] > own.by_scenario[other]).sum())
            share = ERROR / (len(names) - 1)
            draws = own.over_both[:, at] - own.over_both[:, other]
            drawn_low, drawn_high = percentiles(draws, 1 - share)
            over_means = paired_effect(own.by_scenario[at] - own.by_scenario[other], 1 - share)
            low, high = min(float(drawn_low), over_means.low), max(float(drawn_high), over_means.high)
            row["verdict"] = AHEAD if low > 0 else BEHIND if high < 0 else NOT_SEPARATED
            rows.append(row)
        return pd.DataFrame(rows).set_index("baseline").sort_values("factor", kind="stable")

    @property
    def missed(self) -> tuple[int, int]:
        """Number of tuned runs without the hard target, and number of all tuned runs."""
        row = self.row(self.strategy)
        return row["missed"], row["runs"]

    @property
    def ablation_failed(self) -> str:
        """Failures of the ablation by part, with scenarios and reasons; empty without failures."""
        failed = self.ablation[self.ablation["error"] != ""]
        return "; ".join(
            f"without {part} it fails in {error}"
            for part, error in zip(failed["part"], failed["error"], strict=True)
        )

    def claim(self) -> str:
        """Return the claim supported by the tables, as a paragraph."""
        rules, own = self.tables.rules, self.against(self.tuned)
        row = self.row(self.strategy)
        by = {verdict: list(own.index[own["verdict"] == verdict]) for verdict in WORDS}
        said = [f"{word} {listed(by[verdict])}" for verdict, word in WORDS.items() if by[verdict]]
        workloads = listed(list(dict.fromkeys(self.tuned.costs.scenarios.get_level_values(0))))
        with_one = self.against(self.one_setting)["verdict"]
        kept = [name for name in by[AHEAD] if with_one[name] == AHEAD]
        missed, runs = self.missed
        seeds, points = many(len(rules.final_seeds), "fresh seed"), many(rules.points, "point")
        scenarios = many(len(self.tables.scenarios), "scenario")
        factor = f"{BOUNDS[row['bound']]}{numbers.number(row['speedup'], 2)}"
        over = f"{_between(row, 'seeds')} over seeds, {_between(row, 'scenarios')} over scenarios"
        sentences = [
            f"On {workloads}, {scenarios}, {seeds}, {points} of tuning for every strategy:",
            f"{self.strategy} is {'; '.join(said)} (time to the target in virtual time; 95 %, paired, over",
            "seeds and scenarios, adjusted for all baselines).",
            self._over_reference(own, f"{factor} times as fast (95 %: {over})"),
            f"With one setting for all scenarios it is ahead of {listed(kept) if kept else 'none of them'}.",
            f"It missed the target in {missed} of {runs} runs, which count at their budgets."
            if missed
            else "",
            "Nothing is claimed for other data, models, populations of clients, or seconds on real devices.",
        ]
        return " ".join(filter(None, sentences))

    def _over_reference(self, own: pd.DataFrame, said: str) -> str:
        """Return the sentence on the speed-up over the reference, with the verdict of the same comparison."""
        reference = self.tables.rules.reference
        if reference not in own.index:
            return ""
        verdict = own.loc[reference, "verdict"]
        end = ", which is not told apart from as fast" if verdict == NOT_SEPARATED else ""
        return f"Against tuned {reference} it was {said}{end}."

    def checklist(self) -> Iterator[tuple[bool, str]]:
        """Yield the points of a reviewer's checklist, each preceded by whether the point is met."""
        rules, costs = self.tables.rules, self.tuned.costs
        own = self.against(self.tuned)
        row, reference = self.row(self.strategy), self.row(rules.reference)
        problems = len(set(costs.scenarios.get_level_values(0)))
        signs = [f"{name}: {sign}" for name in costs.strategies for sign in untuned(self.tables, costs, name)]
        agree = spearman(self.tuned.scores, self.third.scores)
        missed, runs = self.missed
        yield (
            True,
            f"Equal tuning for all: {many(rules.points, 'point')}, {many(len(rules.design_seeds), 'seed')}",
        )
        yield not signs, "No best value at an edge of its range, and none left out" + _why("; ".join(signs))
        yield (
            len(rules.final_seeds) >= FEW_SEEDS,
            f"{FEW_SEEDS} fresh seeds or more: {len(rules.final_seeds)}",
        )
        yield (
            len(costs.scenarios) >= FEW_SCENARIOS,
            f"{FEW_SCENARIOS} scenarios or more: {len(costs.scenarios)}",
        )
        yield problems > 1, f"More than one workload: {problems}"
        yield len(own) > 2, f"More than two baselines: {len(own)}"
        yield bool((own["verdict"] == AHEAD).all()), "Ahead of every baseline, over seeds and scenarios"
        yield (
            bool((self.against(self.one_setting)["verdict"] != BEHIND).all()),
            "With one setting behind none",
        )
        if len(costs.strategies) >= FEW_ENTRIES:
            yield agree >= AGREES, f"The order at a third of the budget agrees: rank correlation {agree:.2f}"
        yield missed == 0, f"The target met in all runs: missed in {missed} of {runs}"
        yield bool(row["bytes"] <= 1), f"No more bytes than tuned {rules.reference}: {times(row['bytes'])}"
        gain = row["worst_client"] - reference["worst_client"]
        if not isnan(gain):
            yield bool(gain >= 0), f"The worst client no worse than with {rules.reference}"
        parts, failed = list(self.ablation["part"]), self.ablation_failed
        yield (
            bool(parts) and not failed,
            f"Ablation: {listed(parts) if parts else 'no field turns a part off'}" + _why(failed),
        )
        yield False, "Data, models and populations that were not looked at while the method was designed"
        yield False, "Real devices: all times are virtual"


WORDS = {BEHIND: "behind", NOT_SEPARATED: "not separated from", AHEAD: "ahead of"}  # in this order


def _between(row: Mapping[str, Any], over: str) -> str:
    return " to ".join(numbers.number(row[f"{over}_{end}"], 2) for end in ("low", "high"))


def _why(text: str) -> str:
    return f": {text}" if text else ""
