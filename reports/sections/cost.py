"""Cost: communication, memory and computation of every strategy."""

from collections.abc import Callable, Sequence
from math import isnan, nan

import numpy as np
import pandas as pd

from benchmarks.tracking.run_result import RunResult
from fl_core.schema import ENERGY, UPDATES, Name, Total
from fl_core.text import duration
from reports import numbers
from reports.records.records import RecordedScenario
from reports.sections.section import Results, Section
from reports.tables import UNKNOWN, PageTable, TableEntry, download

NOTE = (
    "Median over the runs of all scenarios; in brackets the least and the greatest, where they differ. Sent "
    "are updates, received are models and what comes with them. Wall time depends on the machine and on how "
    "jobs were computed."
)
OF_COLUMN = {  # what a column adds to the note
    "Sent to target": "Sent to target: until the target was met, ∞ where the median run never met it.",
    "Energy": "Energy: of all clients, in every phase and idle.",
    "Not finite": "Not finite: updates with an infinity or NaN, over the runs that had any.",
    "Misread": (
        "Misread: messages that a quantiser decoded wrong, sender and receiver being too far apart, over the "
        "runs that had any."
    ),
    "Server keeps": (
        "Kept: tensors other than models and updates at the end of the run, such as caches and buffers, "
        "those of the clients in total."
    ),
}


def at_end(run: RunResult, column: str) -> float:
    """Return a column of the curve in the last row; NaN without the column."""
    curve = run.files.curve
    return float(curve[column][-1]) if column in curve else nan


def sent_to_target(run: RunResult) -> float:
    """Return the bytes of all updates until the target was met; ∞ if never, NaN without a target."""
    return nan if run.target is None else run.time_to_target(Name.UPLOADS, run.target)


def energy_to_target(run: RunResult) -> float:
    """Return the joules of all clients until the target was met; ∞ if never, NaN without a target."""
    return (
        nan if run.target is None or ENERGY not in run.files.curve else run.time_to_target(ENERGY, run.target)
    )


# By heading: the cost of a run, and how to write it.
COLUMNS: dict[str, tuple[Callable[[RunResult], float], Callable[[float], str]]] = {
    "Updates": (lambda run: at_end(run, UPDATES), numbers.count),
    "Not finite": (lambda run: run.metrics.get(Total.NON_FINITE, nan), numbers.count),
    "Misread": (lambda run: run.metrics.get(Total.MISREAD, nan), numbers.count),
    "Local steps": (lambda run: run.metrics.get(Total.LOCAL_STEPS, nan), numbers.count),
    "Sent": (lambda run: at_end(run, Name.UPLOADS), numbers.size),
    "Received": (lambda run: at_end(run, Name.DOWNLOADS), numbers.size),
    "Sent to target": (sent_to_target, numbers.size),
    "Energy": (lambda run: at_end(run, ENERGY), numbers.energy),
    "Energy to target": (energy_to_target, numbers.energy),
    "Server keeps": (lambda run: run.metrics.get(Total.KEPT_BY_SERVER, nan), numbers.size),
    "Clients keep": (lambda run: run.metrics.get(Total.KEPT_BY_CLIENTS, nan), numbers.size),
    "Wall time": (lambda run: run.seconds or nan, duration),
}


def section(results: Results) -> Section | None:
    """Return the section with a table per problem; costs hardly depend on partition and delay."""
    by_problem: dict[str, list[RecordedScenario]] = {}
    for scenario in results.scenarios:
        by_problem.setdefault(scenario.problem, []).append(scenario)
    tables = {problem: table(problem, scenarios) for problem, scenarios in by_problem.items()}
    tables = {problem: costs for problem, costs in tables.items() if costs.lines}
    if not tables:
        return None
    blocks = [
        {
            "title": problem if len(tables) > 1 else "",
            "table": costs,
            "runs": sum(len(scenario.runs) for scenario in by_problem[problem]),
        }
        for problem, costs in tables.items()
    ]
    everything = pd.concat([costs.numbers for costs in tables.values()])
    link = download("Costs of all runs", results.suite.name, "cost", everything)
    shows, printed = {"blocks": blocks}, list(tables.values())
    headings = {heading for costs in printed for heading in costs.headings}
    note = " ".join([NOTE, *(text for heading, text in OF_COLUMN.items() if heading in headings)])
    return Section("cost", "Cost", "cost.html.j2", note, shows, tables=printed, downloads=[link])


def table(problem: str, scenarios: Sequence[RecordedScenario]) -> PageTable:
    """Return a table of a problem: a line per strategy for printing, a row of numbers per ended run."""
    ended = [
        (cell.strategy, run)
        for scenario in scenarios
        for cell in scenario.cells
        for run in cell.runs
        if run.status.terminated
    ]
    costs = pd.DataFrame(
        {
            "scenario": run.scenario,
            "strategy": strategy,
            "seed": run.seed,
            **{heading: cost(run) for heading, (cost, _) in COLUMNS.items()},
            "run": run.run_id,
        }
        for strategy, run in ended
    )
    columns = [heading for heading in COLUMNS if ended and costs[heading].notna().any()]
    lines = [
        (
            TableEntry(strategy),
            *(
                entry(costs[heading][costs["strategy"] == strategy], COLUMNS[heading][1])
                for heading in columns
            ),
        )
        for strategy in sorted({strategy for strategy, _ in ended}, key=str.casefold)
    ]
    unknown = [heading for heading in COLUMNS if heading not in columns and ended]
    rows = costs.drop(columns=unknown).rename(columns=str.lower)
    return PageTable(problem or "problem", rows, ["Strategy", *columns], lines)


def entry(values: Sequence[float] | pd.Series, write: Callable[[float], str]) -> TableEntry:
    """Return median and range; ∞ counts, unknown values do not."""
    numbers_known = [float(value) for value in values if not isnan(value)]
    if not numbers_known:
        return UNKNOWN
    middle = float(np.median(numbers_known))
    low, high = write(min(numbers_known)), write(max(numbers_known))
    return TableEntry(write(middle), f"({low} to {high})" if low != high else "", middle)
