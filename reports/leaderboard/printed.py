"""Standings as printed tables: board, leaders by clients, every scenario, tuning, horizons."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from reports import numbers
from reports.inference import percentiles, ranks
from reports.leaderboard.rules import SCENARIO
from reports.leaderboard.standing import BOLD, Standing, standing, standing_table
from reports.leaderboard.tables import ONE_SETTING, Tables
from reports.tables import markdown

STANDING = ("Strategy", "Sooner", "95 % seeds", "95 % scenarios", "P(first)", "Missed")
BESIDE = ("Strategy", "Sooner", "Easy target", "Updates", "Uploaded", "At the end (%)", "Worst client (%)")
COUNTS = (1, 4, 16)  # points of a budget curve in the table, and all

Printed = tuple[Sequence[str], Sequence[Sequence[str]]]  # head and rows


def summary(table: pd.DataFrame) -> Printed:
    """Return head and rows of the standing."""
    head = (
        "Strategy", "Sooner", "95 % seeds", "95 % scenarios", "P(first)", "Easy target", "Updates",
        "Uploaded", "At the end (%)", "Worst client (%)", "Missed",
    )  # fmt: skip
    rows = [
        (
            f"**{name}**" if row["first"] >= BOLD else str(name),
            sooner(row["bound"], row["speedup"]),
            interval_over(row, "seeds"),
            interval_over(row, "scenarios"),
            f"{row['first']:.2f}",
            times(row["easy"]),
            times(row["updates"]),
            times(row["bytes"]),
            numbers.percent(row["accuracy"]),
            numbers.percent(row["worst_client"]),
            f"{row['missed']} of {row['runs']}",
        )
        for name, row in table.iterrows()
    ]
    return head, rows


def columns(printed: Printed, names: Sequence[str]) -> Printed:
    """Return some columns of a printed table."""
    head, rows = printed
    at = [head.index(name) for name in names]
    return names, [[row[place] for place in at] for row in rows]


def leaders(own: Standing) -> str:
    """Return a table of the first strategies, with a row for each workload and population of clients."""
    problems, _, timings = (np.asarray(own.costs.scenarios.get_level_values(name)) for name in SCENARIO)
    rows = []
    for problem, timing in dict.fromkeys(zip(problems, timings, strict=True)):
        there = own.within((problems == problem) & (timings == timing))
        first = there.order[0]
        low, high = (np.exp(ends[first]) for ends in percentiles(there.over_seeds))
        name, speedup = own.costs.strategies[first], np.exp(there.scores[first])
        rows.append(
            (
                f"{problem} · {timing}",
                f"**{name}**" if there.first[first] >= BOLD else name,
                f"{sooner(there.bounds[first], speedup)} {between(low, high)}",
                f"{there.first[first]:.2f}",
                str(int((~there.behind).sum()) - 1),
            )
        )
    head = ["Workload · clients", "First", "Sooner, 95 % seeds", "P(first)", "Not separated"]
    return markdown(head, rows, left=2)


def across(own: Standing, workloads: Sequence[str]) -> list[str]:
    """Return a table for each workload: strategies down, best first, and scenarios across."""
    scores, scenarios = own.by_scenario, own.costs.scenarios
    places = np.apply_along_axis(ranks, 0, -scores)  # equal ones share theirs
    unmet = (own.costs.reached[own.ruleset] == 0).all(-1)
    unmet &= unmet[own.costs.strategies.index(own.reference)]  # by neither: there is nothing to compare
    parts = []
    for problem in workloads:
        at = np.flatnonzero(scenarios.get_level_values(0) == problem).tolist()
        heads = [" · ".join(map(str, scenarios[s][1:])) for s in at]
        mean = scores[:, at].mean(1)
        everywhere, *bounds = (
            own.within(np.isin(np.arange(len(scenarios)), there)).bounds for there in [at, *([s] for s in at)]
        )
        rows = [
            (
                own.costs.strategies[a],
                sooner(everywhere[a], np.exp(mean[a])),
                *(
                    f"{'–' if unmet[a, s] else sooner(bound[a], np.exp(scores[a, s]))} ({places[a, s]:g})"
                    for s, bound in zip(at, bounds, strict=True)
                ),
            )
            for a in np.argsort(-mean, kind="stable")
        ]
        parts += [f"### {problem}", markdown(["Strategy", "All", *heads], rows)]
    return parts


def sensitivity(tables: Tables, table: pd.DataFrame, own: Standing, curves: np.ndarray) -> str:
    """Return a table of tuning: tuned, with a single setting, with the best of few random points."""
    one_setting = standing_table(standing(tables, ONE_SETTING), tables).reindex(table.index)
    head = ["Strategy", "Tuned", "One setting", "95 % scenarios", *(f"Best of {k}" for k in COUNTS)]
    places = {name: place for place, name in enumerate(own.costs.strategies)}
    rows = [
        (
            str(name),
            sooner(row["bound"], row["speedup"]),
            sooner(single["bound"], single["speedup"]),
            interval_over(single, "scenarios"),
            *(times(curves[places[str(name)], min(k, curves.shape[1]) - 1]) for k in COUNTS),
        )
        for (name, row), (_, single) in zip(table.iterrows(), one_setting.iterrows(), strict=True)
    ]
    return markdown(head, rows)


def horizon(own: Standing, third: Standing) -> str:
    """Return each strategy's place on the board, and at a third of the budget."""
    both = [ranks(-standing_.scores) for standing_ in (own, third)]
    rows = [
        (own.costs.strategies[a], f"{both[0][a]:g}", f"{both[1][a]:g}")
        for a in np.argsort(-own.scores, kind="stable")
    ]
    return markdown(["Strategy", "Place", "At a third"], rows)


def interval_over(row: pd.Series, over: str) -> str:
    """Return the interval of a speed-up over seeds, or over scenarios."""
    return between(row[f"{over}_low"], row[f"{over}_high"])


def between(low: float, high: float) -> str:
    """Return an interval as text."""
    return f"[{numbers.number(float(low), 2)},\u00a0{numbers.number(float(high), 2)}]"


def sooner(bound: str, speedup: float) -> str:
    """Return a speed-up as text, preceded by the sign of a bound."""
    return f"{bound}\u00a0{times(speedup)}".strip("\u00a0")


def times(factor: float) -> str:
    """Return a factor as text, with the sign ×."""
    return f"{numbers.number(float(factor), 2)}\u00a0×"
