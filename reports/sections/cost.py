"""Cost: communication, memory and computation of every strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, nan

import numpy as np
import pandas as pd

from fl_core.schema import OF_STRATEGY, STRATEGY_NAME, UPDATES, Name, Total
from fl_core.text import duration
from reports import numbers
from reports.downloads import download
from reports.records.records import RecordedRun, RecordedScenario
from reports.records.summary import time_to_target
from reports.sections.section import Results, Section, Table
from reports.statistics.ranking import RankingEntry

NOTE = (
    "Median over runs; in brackets the least and the greatest, where they differ. Sent to target: bytes of "
    "updates until the target was met (∞: the median run never met it). Not finite are updates with an "
    "infinity or NaN, over the runs that had any. Kept are tensors other than "
    "models and updates at the end of the run, such as caches and buffers, those of "
    "the clients in total. Wall time depends on the machine and on how jobs were computed."
)


def section(results: Results) -> Section | None:
    """One table per problem: the cost of strategies hardly depends on partition and delay."""
    by_problem: dict[str, list[RecordedScenario]] = {}
    for scenario, _ in results.scenarios:
        by_problem.setdefault(scenario.problem, []).append(scenario)
    found = [(problem, of, table(problem, of)) for problem, of in by_problem.items()]
    found = [(problem, of, its) for problem, of, its in found if its.lines]
    if not found:
        return None
    everything = pd.concat([its.numbers for _, _, its in found])
    shows = {
        "blocks": [
            {
                "title": problem if len(found) > 1 else "",
                "table": its,
                "runs": sum(len(scenario.runs) for scenario in of),
            }
            for problem, of, its in found
        ],
        "download": download(results.suite.name, "cost", everything),
    }
    return Section("cost", "Cost", "cost.html.j2", NOTE, shows, tables=[its for _, _, its in found])


def table(problem: str, scenarios: Sequence[RecordedScenario]) -> Table:
    """One line per strategy, over all scenarios of a problem."""
    runs: dict[str, list[RecordedRun]] = {}
    for scenario in scenarios:
        for cell in scenario.cells:
            runs.setdefault(cell.strategy, []).extend(run for run in cell.runs if run.status.terminated)
    runs = {strategy: of for strategy, of in sorted(runs.items(), key=lambda one: one[0].casefold()) if of}
    columns: dict[str, tuple[Callable[[RecordedRun], float], Callable[[float], str]]] = {
        "Updates": (lambda run: at_end(run, UPDATES), numbers.count),
        "Not finite": (lambda run: run.totals.get(Total.NON_FINITE, nan), numbers.count),
        "Local steps": (local_steps, numbers.count),
        "Sent": (lambda run: at_end(run, Name.UPLOADS), numbers.size),
        "Sent to target": (sent_to_target, numbers.size),
        "Server keeps": (lambda run: run.totals.get(Total.KEPT_BY_SERVER, nan), numbers.size),
        "Clients keep": (lambda run: run.totals.get(Total.KEPT_BY_CLIENTS, nan), numbers.size),
        "Wall time": (lambda run: run.wall_seconds or nan, duration),
    }
    values = {
        heading: {strategy: [value(run) for run in of] for strategy, of in runs.items()}
        for heading, (value, _) in columns.items()
    }
    said = (
        [heading for heading, of in values.items() if not np.isnan(np.concatenate(list(of.values()))).all()]
        if runs
        else []
    )
    lines = [
        (RankingEntry(strategy), *(entry(values[heading][strategy], columns[heading][1]) for heading in said))
        for strategy in runs
    ]
    return Table(
        problem or "problem", frame(scenarios, {h: columns[h][0] for h in said}), ["Strategy", *said], lines
    )


def entry(values: Sequence[float], write: Callable[[float], str]) -> RankingEntry:
    """Median and range; ∞ counts, unknown values do not."""
    known = [value for value in values if not np.isnan(value)]
    if not known:
        return RankingEntry(numbers.MISSING, value=nan)
    middle = float(np.median(known)) if all(map(isfinite, known)) else float(np.sort(known)[len(known) // 2])
    low, high = write(min(known)), write(max(known))
    return RankingEntry(write(middle), f"({low} to {high})" if low != high else "", middle)


def frame(
    scenarios: Sequence[RecordedScenario], columns: dict[str, Callable[[RecordedRun], float]]
) -> pd.DataFrame:
    """One row per ended run, bytes and seconds."""
    return pd.DataFrame(
        {
            "scenario": scenario.label,
            "strategy": cell.strategy,
            "seed": run.seed,
            **{heading.lower(): value(run) for heading, value in columns.items()},
            "run": run.id,
        }
        for scenario in scenarios
        for cell in scenario.cells
        for run in cell.runs
        if run.status.terminated
    )


def at_end(run: RecordedRun, column: str) -> float:
    """A column of the curve in its last row."""
    curve = run.files.curve
    return float(curve[column].iloc[-1]) if column in curve and len(curve) else nan


def sent_to_target(run: RecordedRun) -> float:
    """Bytes of all updates until the target was met; ∞ if it never was, NaN if there is none."""
    if run.target is None or Name.UPLOADS not in run.files.curve:
        return nan
    return time_to_target(run, Name.UPLOADS, run.target)


def local_steps(run: RecordedRun) -> float:
    """All local steps of all updates; NaN where K is not the same for every update."""
    spec = run.params.get
    steps = spec(f"{OF_STRATEGY}local.steps", "")
    changes = (f"{OF_STRATEGY}local.epochs", "arrangement.most_steps")
    if (
        not steps.isdecimal()
        or spec(f"{OF_STRATEGY}local.dynamic") == "true"
        or any(spec(name, "null") not in {"null", "None", ""} for name in changes)
        or spec(STRATEGY_NAME) == "asyncfeded"  # it sets K anew for every job
    ):
        return nan
    return int(steps) * at_end(run, UPDATES)
