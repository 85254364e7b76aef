"""The ranking of a scenario as a table of text, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isnan

from reports import numbers
from reports.records.measures import Measure
from reports.records.records import RecordedScenario
from reports.records.summary import Reach, Row, Spread

STALLED = "Stalled: waiting for clients that left permanently; its last model counts."
NO_SURROGATE = (
    "No surrogate loss where no formula says how often each client takes part (asyncfl errata X-3)."
)


@dataclass(frozen=True, slots=True)
class Column:
    """The content of a column, and the direction of its best values."""

    title: str
    about: str = ""
    higher: bool | None = None  # better; None where neither is


@dataclass(frozen=True, slots=True)
class RankingEntry:
    """One number of the table."""

    text: str
    detail: str = ""  # beside it in muted type: its spread, or its number of seeds
    value: float = inf  # to sort by
    best: bool = False


@dataclass(frozen=True, slots=True)
class RankingLine:
    """One strategy."""

    row: Row
    entries: tuple[RankingEntry, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """A table: one line per strategy, best first; one entry per column."""

    scenario: RecordedScenario
    columns: tuple[Column, ...]
    lines: tuple[RankingLine, ...]
    pooled: tuple[RankingEntry, ...]  # the centralised baseline; entries are empty where it has no value

    @property
    def detailed(self) -> list[bool]:
        """For each column, whether any of its entries has a detail."""
        rows = [*(line.entries for line in self.lines), self.pooled]
        return [any(entry.detail for entry in column) for column in zip(*rows, strict=True)]

    @property
    def unmet(self) -> bool:
        """Whether some median seed never met the target."""
        return any(entry.text == numbers.INFINITE for line in self.lines for entry in line.entries)


def ranking(scenario: RecordedScenario, rows: Sequence[Row]) -> Ranking:
    """The table of a scenario from its summarised rows."""
    columns = [
        Column(one.heading, f"{one.title} at the end, mean ± standard deviation over seeds", one.higher)
        for one in scenario.columns
    ]
    entries = [[_final(row.final[one.name], one) for row in rows] for one in scenario.columns]
    if scenario.target is not None:
        target = scenario.metric.round_text(scenario.target)
        columns += [
            Column(
                f"Updates to {target}", "Client updates until the target was met, median over seeds", False
            ),
            Column(f"Time to {target}", "Virtual time until the target was met, median over seeds", False),
        ]
        entries += [
            [_reach(row.updates_to_target, numbers.count) for row in rows],
            [_reach(row.time_to_target, lambda time: numbers.number(time, 3)) for row in rows],
        ]
    columns += [
        Column(
            "Mean staleness", "Server iterations between sending a version and using the update made from it"
        ),
        Column("Max", "The greatest staleness of all updates of all seeds"),
    ]
    entries += [
        [RankingEntry(numbers.number(row.mean_staleness, 3), value=row.mean_staleness) for row in rows],
        [RankingEntry(numbers.count(row.max_staleness), value=row.max_staleness) for row in rows],
    ]
    eligible = [not row.diverged for row in rows]
    marked = [_mark(column, of, eligible) for column, of in zip(columns, entries, strict=True)]
    lines = [RankingLine(row, tuple(of[at] for of in marked)) for at, row in enumerate(rows)]
    pooled = [_pooled(scenario, one) for one in scenario.columns]
    nothing = [RankingEntry("")] * (len(columns) - len(pooled))
    return Ranking(scenario, tuple(columns), tuple(lines), (*pooled, *nothing))


def _pooled(scenario: RecordedScenario, of: Measure) -> RankingEntry:
    values = scenario.pooled.get(of.name, ())
    return _final(Spread.of(values), of) if values else RankingEntry("")


def seeds(row: Row) -> str:
    """The number of runs of a line: '3', or '3 (1 diverged)'."""
    counts = {
        "diverged": row.diverged,
        "stalled": row.stalled,
        "unfinished": row.unfinished,
        "unreadable": row.unreadable,
    }
    exceptions = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    return f"{len(row.cell.runs)} ({exceptions})" if exceptions else str(len(row.cell.runs))


def spread_text(spread: Spread, of: Measure) -> tuple[str, str]:
    """The mean, and '± std' where there is one; with as many decimals for both."""
    if isnan(spread.mean):
        return numbers.MISSING, ""
    text = of.text(spread.mean)
    if isnan(spread.std):
        return text, ""
    if of.share:
        return text, f"± {of.text(spread.std)}"
    decimals = len(text.partition(".")[2])
    small = "e" in text or ("." in text and spread.std < 0.5 * 10**-decimals) or "e" in of.text(spread.std)
    return text, f"± {numbers.number(spread.std, 2)}" if small else f"± {spread.std:,.{decimals}f}"


def _final(spread: Spread, of: Measure) -> RankingEntry:
    text, detail = spread_text(spread, of)
    return RankingEntry(text, detail, spread.mean)


def _reach(reach: Reach, write: Callable[[float], str]) -> RankingEntry:
    detail = (
        ""
        if reach.reached == reach.of
        else f"{reach.reached}\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}{reach.of}"
    )
    return RankingEntry(write(reach.median), detail, reach.median)


def _mark(column: Column, entries: list[RankingEntry], eligible: list[bool]) -> list[RankingEntry]:
    """The entries with the best marked, and those equal to it as printed; a single line needs no mark."""
    known = [one for one, may in zip(entries, eligible, strict=True) if may and abs(one.value) < inf]
    if column.higher is None or len(entries) < 2 or not known:
        return entries
    top = (max if column.higher else min)(known, key=lambda one: one.value)
    return [
        RankingEntry(entry.text, entry.detail, entry.value, best=may and entry.text == top.text)
        for entry, may in zip(entries, eligible, strict=True)
    ]
