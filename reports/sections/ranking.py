"""The ranking of a scenario as a table of text, for the terminal and the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan

from fl_core.schema import Clock
from reports import numbers
from reports.records.cells import Cell, Reach, Spread
from reports.records.measures import Measure
from reports.records.records import RecordedScenario
from reports.tables import TableEntry

STALLED = "Stalled: no step would follow any more; its last model counts."
NO_SURROGATE = (
    "No surrogate loss where no formula says how often each client takes part (asyncfl list errata X-3)."
)
NOTHING = TableEntry("")


@dataclass(frozen=True, slots=True)
class RankingColumn:
    """The content of a column, and the direction of its best values."""

    title: str
    about: str = ""
    higher: bool | None = None  # better; None where neither is


@dataclass(frozen=True, slots=True)
class Ranking:
    """A table: one line per strategy, best first; one entry per column."""

    scenario: RecordedScenario
    columns: tuple[RankingColumn, ...]
    lines: Sequence[tuple[Cell, Sequence[TableEntry]]]
    pooled: tuple[TableEntry, ...]  # the centralised baseline; entries are empty where it has no value

    @property
    def detailed(self) -> list[bool]:
        """For each column, whether any of its entries has a detail."""
        rows = [*(entries for _, entries in self.lines), self.pooled]
        return [any(entry.detail for entry in column) for column in zip(*rows, strict=True)]

    @property
    def unmet(self) -> bool:
        """Whether some median seed never met the target."""
        return any(entry.text == numbers.INFINITE for _, entries in self.lines for entry in entries)

    @property
    def missed_again(self) -> str:
        """Whose seeds do not stay at the target that they met, in a sentence; empty if all do."""
        names = ", ".join(cell.strategy for cell, _ in self.lines if cell.misses_again)
        return f"{names}: most seeds miss the target again later." if names else ""


def ranking(scenario: RecordedScenario) -> Ranking:
    """Return the table of a scenario."""
    cells = scenario.ranked
    columns: list[tuple[RankingColumn, list[TableEntry]]] = []

    def add(title: str, about: str, entries: list[TableEntry], higher: bool | None = None) -> None:
        columns.append((RankingColumn(title, about, higher), _marked(cells, entries, higher)))

    for metric in scenario.columns:
        about = f"{metric.title} at the end, mean ± standard deviation over seeds"
        entries = [_final(cell.final[metric.name], metric) for cell in cells]
        add(metric.heading, about, entries, metric.higher)
    if scenario.target is not None:
        target = scenario.metric.round_text(scenario.target)
        updates = [_reach(cell.reach(Clock.UPDATES), numbers.count) for cell in cells]
        times = [_reach(cell.reach(Clock.TIME), numbers.moment) for cell in cells]
        met = "until the target was first met, median over seeds"
        add(f"Updates to {target}", f"Client updates {met}", updates, higher=False)
        add(f"Time to {target}", f"Virtual time {met}", times, higher=False)
    staleness = [cell.staleness for cell in cells]
    means = [TableEntry(numbers.number(mean, 3), value=mean) for mean, _ in staleness]
    most = [TableEntry(numbers.count(greatest), value=greatest) for _, greatest in staleness]
    about = "Server iterations between sending a version and using the update made from it"
    add("Mean staleness", about, means)
    add("Max", "The greatest staleness of all updates of all seeds", most)
    pooled = [
        _final(Spread.of(values), metric) if (values := scenario.pooled.get(metric.name)) else NOTHING
        for metric in scenario.columns
    ]
    return Ranking(
        scenario,
        tuple(column for column, _ in columns),
        [(cell, [entries[at] for _, entries in columns]) for at, cell in enumerate(cells)],
        (*pooled, *[NOTHING] * (len(columns) - len(pooled))),
    )


def spread_text(spread: Spread, metric: Measure) -> tuple[str, str]:
    """Return the mean, and '± std' where there is one; with as many decimals for both."""
    if isnan(spread.mean):
        return numbers.MISSING, ""
    text = metric.text(spread.mean)
    if isnan(spread.std):
        return text, ""
    std = metric.text(spread.std)
    if metric.share:
        return text, f"± {std}"
    decimals = len(text.partition(".")[2])
    small = "e" in text or ("." in text and spread.std < 0.5 * 10**-decimals) or "e" in std
    return text, f"± {numbers.number(spread.std, 2)}" if small else f"± {spread.std:,.{decimals}f}"


def _final(spread: Spread, metric: Measure) -> TableEntry:
    return TableEntry(*spread_text(spread, metric), spread.mean)


def _reach(reach: Reach, write: Callable[[float], str]) -> TableEntry:
    some = f"{reach.reached}\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}{reach.of}"
    return TableEntry(write(reach.median), "" if reach.reached == reach.of else some, reach.median)


def _marked(cells: Sequence[Cell], entries: list[TableEntry], higher: bool | None) -> list[TableEntry]:
    """Return the entries, marked the best and all equal to it as printed; a single line needs no mark."""
    eligible = [entry for entry, cell in zip(entries, cells, strict=True) if not cell.diverged]
    known = [entry for entry in eligible if abs(entry.value) < inf]
    if higher is None or len(entries) < 2 or not known:
        return entries
    top = (max if higher else min)(known, key=lambda entry: entry.value).text
    return [
        replace(entry, best=not cell.diverged and entry.text == top)
        for entry, cell in zip(entries, cells, strict=True)
    ]
