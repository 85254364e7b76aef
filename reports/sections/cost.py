"""Section on cost: communication, memory and computation of every strategy.

`reports/page.py` calls `section`.
"""

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np
import pandas as pd

from fl_core.recorded_names import ENERGY, UPDATES, Clock, Name, Status, Total
from fl_core.text import duration
from reports import numbers
from reports.sections.section import Results, Section
from reports.tables import UNKNOWN, PageTable, TableEntry

NOTE = (
    "Median over the runs of all scenarios; in brackets the least and the greatest, where they differ. Sent "
    "are updates, received are models and what comes with them. Wall time depends on the machine and on how "
    "jobs were computed."
)
COLUMN_NOTES = {  # sentences added to the note, by heading of a column
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
SENT_TO_TARGET = "uploads_to_target"
# Heading → column in the table of runs, and the function that formats its numbers
COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "Updates": (UPDATES, numbers.count),
    "Not finite": (Total.NON_FINITE, numbers.count),
    "Misread": (Total.MISREAD, numbers.count),
    "Local steps": (Total.LOCAL_STEPS, numbers.count),
    "Sent": (Name.UPLOADS, numbers.size),
    "Received": (Name.DOWNLOADS, numbers.size),
    "Sent to target": (SENT_TO_TARGET, numbers.size),
    "Energy": (ENERGY, numbers.energy),
    "Energy to target": (Clock.ENERGY.to_target, numbers.energy),
    "Server keeps": (Total.KEPT_BY_SERVER, numbers.size),
    "Clients keep": (Total.KEPT_BY_CLIENTS, numbers.size),
    "Wall time": (Total.WALL_SECONDS, duration),
}


def section(results: Results) -> Section | None:
    """Return the section with a table per problem; costs hardly depend on partition and delay."""
    runs = results.runs
    ended = runs[[Status(status).terminated for status in runs["status"]]]
    if ended.empty:
        return None
    sent = {
        run.key: run.time_to_target(Name.UPLOADS, run.target)
        for run in results.suite.runs
        if run.target is not None and run.files.curve
    }
    ended = ended.assign(**{SENT_TO_TARGET: ended["key"].map(sent)})
    problems = list(ended.groupby("problem", sort=False))
    tables = [table(str(problem), rows) for problem, rows in problems]
    blocks = [
        {"title": costs.name if len(tables) > 1 else "", "table": costs, "runs": len(rows)}
        for costs, (_, rows) in zip(tables, problems, strict=True)
    ]
    headings = {heading for costs in tables for heading in costs.headings}
    note = " ".join([NOTE, *(text for heading, text in COLUMN_NOTES.items() if heading in headings)])
    return Section("cost", "Cost", "cost.html.j2", note, {"blocks": blocks}, tables=tables)


def table(problem: str, rows: pd.DataFrame) -> PageTable:
    """Return a table of a problem: a line per strategy for printing, a row of numbers per ended run."""
    columns_by_heading = {
        heading: (column, write)
        for heading, (column, write) in COLUMNS.items()
        if column in rows and rows[column].notna().any()
    }
    strategies = sorted(rows.groupby("strategy"), key=lambda group: str(group[0]).casefold())
    lines = [
        (
            TableEntry(str(strategy)),
            *(entry(runs[column], write) for column, write in columns_by_heading.values()),
        )
        for strategy, runs in strategies
    ]
    columns = ["scenario", "strategy", "seed", *(column for column, _ in columns_by_heading.values()), "key"]
    return PageTable(problem or "problem", rows[columns], ["Strategy", *columns_by_heading], lines)


def entry(values: Sequence[float] | pd.Series, write: Callable[[float], str]) -> TableEntry:
    """Return median and range; ∞ counts, unknown values do not."""
    numbers_known = [float(value) for value in values if not isnan(value)]
    if not numbers_known:
        return UNKNOWN
    middle = float(np.median(numbers_known))
    low, high = write(min(numbers_known)), write(max(numbers_known))
    return TableEntry(write(middle), f"({low} to {high})" if low != high else "", middle)
