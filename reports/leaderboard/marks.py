"""Marks of entries: departures from the rules' design, missing runs, untuned parameters."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from fl_core.text import listed, many
from reports.leaderboard.choice import tuned
from reports.leaderboard.costs import Costs
from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.tables import RULESETS, Tables, values

FEW = 4  # different values of a parameter, up to which it is a choice and has no edges
OFTEN = 0.5  # share of scenarios with the best value at the same edge from which it is said


def unequal(tables: Tables, strategy: str) -> list[str]:
    """Return the departures of an entry from the design of the rules, a reason to list the entry apart."""
    rules, own = tables.rules, tables.of(strategy)
    faults = []
    counts = own.points.groupby("problem")["point"].nunique()
    if other := sorted(set(counts) - {rules.points}):
        faults.append(f"{many(other[0], 'point')} in place of {rules.points}")
    if lacking := _lacking(tables, strategy):
        faults.append(lacking)
    for name, table, seeds in (
        ("design", own.design, rules.design_seeds),
        ("finals", own.finals, rules.final_seeds),
    ):
        if other := sorted(set(table["seed"]) - set(seeds)):
            faults.append(f"{name} with seeds that are not of the rules: {listed(list(map(str, other)))}")
    return faults


def incomplete(tables: Tables, strategy: str) -> bool:
    """Return whether an entry lacks runs needed for a score."""
    return bool(_lacking(tables, strategy))


def untuned(tables: Tables, costs: Costs, strategy: str) -> list[str]:
    """Return signs of untuned parameters of an entry.

    A parameter that the reference's design varies is the same at all points, or is not among them; the best
    points of half of a workload's scenarios have the least, or the greatest, value that was tried.
    """
    problems = np.asarray(costs.scenarios.get_level_values("problem"))
    chosen = tuned(costs)[costs.strategies.index(strategy)]
    signs = []
    for problem in dict.fromkeys(problems):
        names = (strategy, tables.rules.reference)
        own, theirs = (values(tables.points, problem, name) for name in names)
        signs += [
            f"{problem}: {sign}"
            for sign in (*_frozen(own, theirs), *_edges(own, chosen[problems == problem]))
        ]
    return signs


def _frozen(own: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[str]:
    for name in theirs:
        if theirs[name].nunique() > 1 and (name not in own or own[name].nunique() < 2):
            yield f"{name} does not vary"


def _edges(own: pd.DataFrame, chosen: np.ndarray) -> Iterator[str]:
    for name in own.select_dtypes("number"):
        if own[name].nunique() > FEW:
            best = own[name].reindex(chosen).to_numpy()
            for edge, value in (("least", own[name].min()), ("greatest", own[name].max())):
                if np.mean(best == value) >= OFTEN:
                    yield f"{name} is best at the {edge} value tried, {value:.3g}"


def _lacking(tables: Tables, strategy: str) -> str:
    """Return the missing runs of an entry, as text; empty for a complete entry."""
    rules = tables.rules
    design = tables.design[tables.design["strategy"] == strategy]
    again = max(1, rules.points // 4) * len(rules.design_seeds[1:]) + rules.points
    finals = tables.finals[tables.finals["strategy"] == strategy]
    expected = len(RULESETS) * len(rules.final_seeds)
    for name, table, count in (("design", design, again), ("final", finals, expected)):
        known = table.groupby(SCENARIO).size().reindex(tables.scenarios, fill_value=0)
        if lacking := int((count - known).clip(lower=0).sum()):
            return f"{many(lacking, f'{name} run')} missing"
    return ""
