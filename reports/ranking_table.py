"""The ranking table of a scenario, best first: columns, notes, rows for programs; the standings of a suite.

Standings are by mean rank or final value. The page and the terminal show both.

Fixed: the order of strategies. Free: columns and remarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan

import pandas as pd

from fl_core.recorded_names import Clock, Status
from reports import numbers
from reports.comparisons import Gap, behind, differences
from reports.numbers import Measure
from reports.records.records import RecordedScenario
from reports.records.seed_summaries import Cell, Reach, Spread
from reports.statistical_inference import Effect, paired_effect
from reports.tables import TableEntry

STALLED = "Stalled: no step would follow any more; its last model counts."
NO_SURROGATE = (
    "No surrogate loss where no formula says how often each client takes part (asyncfl list errata X-3)."
)
NOTHING = TableEntry("")


@dataclass(frozen=True, slots=True)
class Ranking:
    """Table of a scenario: a line per strategy, best first, and an entry per column."""

    scenario: RecordedScenario
    columns: tuple[tuple[str, str], ...]  # title, explanation
    lines: Sequence[tuple[Cell, Sequence[TableEntry]]]
    pooled: tuple[TableEntry, ...]  # the centralised baseline; entries are empty where it has no value

    @property
    def detailed(self) -> list[bool]:
        """Flags for the columns: True if any entry of the column has a detail."""
        rows = [*(entries for _, entries in self.lines), self.pooled]
        return [any(entry.detail for entry in column) for column in zip(*rows, strict=True)]

    @property
    def unmet(self) -> bool:
        """True if the median seed of any strategy never met the target."""
        return any(entry.text == numbers.INFINITE for _, entries in self.lines for entry in entries)

    @property
    def missed_again(self) -> str:
        """Sentence on strategies with most seeds missing a met target later; empty without any."""
        names = ", ".join(cell.strategy for cell, _ in self.lines if cell.misses_again)
        return f"{names}: most seeds miss the target again later." if names else ""


def ranking(scenario: RecordedScenario) -> Ranking:
    """Return the table of a scenario."""
    cells = scenario.ranked
    columns: list[tuple[tuple[str, str], list[TableEntry]]] = []

    def add(title: str, about: str, entries: list[TableEntry], higher: bool | None = None) -> None:
        columns.append(((title, about), _marked(cells, entries, higher)))

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
        unit = scenario.runs[0].time_unit
        time_to = f"Time to {target}{f' ({unit})' if unit else ''}"
        add(time_to, f"{scenario.axis_title(Clock.TIME)} {met}", times, higher=False)
    staleness = [cell.staleness for cell in cells]
    means = [TableEntry(numbers.number(mean, 3), value=mean) for mean, _ in staleness]
    maxima = [TableEntry(numbers.count(greatest), value=greatest) for _, greatest in staleness]
    about = "Server iterations between sending a version and using the update made from it"
    add("Mean staleness", about, means)
    add("Max", "The greatest staleness of all updates of all seeds", maxima)
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
    """Return the mean and '± std' with equal decimals; the latter is empty without a deviation."""
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
    """Return a final value, mean ± standard deviation."""
    return TableEntry(*spread_text(spread, metric), spread.mean)


def _reach(reach: Reach, write: Callable[[float], str]) -> TableEntry:
    """Return the median time to a target, with the number of seeds that met it unless all did."""
    fraction = f"{reach.reached}\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}{reach.of}"
    return TableEntry(write(reach.median), "" if reach.reached == reach.of else fraction, reach.median)


def _marked(cells: Sequence[Cell], entries: list[TableEntry], higher: bool | None) -> list[TableEntry]:
    """Return the entries, the best and equally printed entries marked; a single entry is not marked."""
    eligible = [entry for entry, cell in zip(entries, cells, strict=True) if not cell.diverged]
    finite = [entry for entry in eligible if abs(entry.value) < inf]
    if higher is None or len(entries) < 2 or not finite:
        return entries
    top = (max if higher else min)(finite, key=lambda entry: entry.value).text
    return [
        replace(entry, best=not cell.diverged and entry.text == top)
        for entry, cell in zip(entries, cells, strict=True)
    ]


def ranking_frame(scenarios: Sequence[RecordedScenario]) -> pd.DataFrame:
    """Return all rows as a table for reading by other programs; ∞ is written as inf."""
    return pd.DataFrame([_record(scenario, cell) for scenario in scenarios for cell in scenario.ranked])


def _record(scenario: RecordedScenario, cell: Cell) -> dict[str, object]:
    """Return the row of a strategy in a scenario, for other programs."""
    record: dict[str, object] = {
        "scenario": scenario.label,
        "strategy": cell.strategy,
        "seeds": len(cell.runs),
        "done": len(cell.having(Status.DONE)),
        "diverged": cell.diverged,
        "stalled": cell.stalled,
    }
    for name, spread in cell.final.items():
        record |= {f"{name} mean": spread.mean, f"{name} std": spread.std}
    if scenario.target is not None:
        updates = cell.reach(Clock.UPDATES)
        record |= {
            "target": scenario.target,
            "reached": updates.reached,
            "updates to target": updates.median,
            "time to target": cell.reach(Clock.TIME).median,
        }
    mean, greatest = cell.staleness
    return record | {"staleness mean": mean, "staleness max": greatest}


def note_on_tables(rankings: Sequence[Ranking], compared: bool) -> str:
    """Return the sentences that explain the tables, as far as they apply."""
    cells = [cell for ranking in rankings for cell in ranking.scenario.cells]
    first = {ranking.scenario.columns[0].in_text for ranking in rankings}
    by = f"final {first.pop()}" if len(first) == 1 else "the first column"
    target = any(ranking.scenario.target for ranking in rankings)
    median = f" Updates and time to a target: median.{_steps(rankings)}" if target else ""
    sentences = {
        f"Strategies are ranked by {by}.": len(cells) > len(rankings),
        f"Final values: mean ± standard deviation over seeds.{median} Best in bold.": any(
            len(cell.finite) > 1 for cell in cells
        ),
        "Not separated: the seeds do not show that the best of the scenario is better; beside it, about "
        "how many would. That is not the same as equal: see “Behind the best”.": compared,
        "∞: the median seed never met the target; beside it, how many seeds did.": any(
            ranking.unmet for ranking in rankings
        ),
        "Strategies with diverged runs come last; their means are those of the other seeds.": any(
            cell.diverged for cell in cells
        ),
        STALLED: any(cell.stalled for cell in cells),
        NO_SURROGATE: any(ranking.scenario.lacks_surrogate for ranking in rankings),
    }
    return " ".join(sentence for sentence, applies in sentences.items() if applies)


def _steps(rankings: Sequence[Ranking]) -> str:
    """Return a sentence on the distance of evaluations, which limits the precision of times to target."""
    scenarios = [ranking.scenario for ranking in rankings if ranking.scenario.target]
    all_steps = [scenario.evaluation_step(Clock.TIME) for scenario in scenarios]
    if not (steps := [step for step in all_steps if not isnan(step)]):
        return ""
    low, high = (numbers.moment(step) for step in (min(steps), max(steps)))
    unit = scenarios[0].runs[0].time_unit or "units of time"
    apart = low if low == high else f"{low} to {high}"
    return f" Evaluations are {apart} {unit} apart: a target was met up to that much earlier."


@dataclass(frozen=True, slots=True)
class StrategyStanding:
    """Standing of a strategy in a suite."""

    strategy: str
    score: Effect  # mean rank (1 is best) or mean final value over seeds, with a 95 % interval
    gap: Gap | None = None  # to the leader, on the same scale; None for the leader, or if unpaired

    @property
    def open(self) -> bool:
        """True if the strategy was compared and is not separated from the leader."""
        return self.gap is not None and not self.gap.worse


@dataclass(frozen=True, slots=True)
class Standings:
    """Strategies common to all scenarios, leader first.

    With several scenarios each seed gives every strategy a mean rank over scenarios: in a scenario,
    strategies are ranked by their final values under this seed; ties share the mean rank, and diverged runs
    share the last ranks. The interval is for the mean over seeds; scenarios are not seen as a sample.
    """

    lines: tuple[StrategyStanding, ...]
    scenarios: int
    seeds: int  # seeds common to all strategies and scenarios
    by_rank: bool

    @property
    def leader(self) -> StrategyStanding:
        """The first strategy."""
        return self.lines[0]

    @property
    def order(self) -> list[str]:
        """The strategies, the leader first."""
        return [line.strategy for line in self.lines]

    @property
    def open(self) -> list[StrategyStanding]:
        """Strategies not separated from the leader, nearest first."""
        return [line for line in self.lines if line.open]


def standings(scenarios: Sequence[RecordedScenario]) -> Standings | None:
    """Return the standings; None with fewer than two comparable strategies."""
    if not scenarios:
        return None
    return _by_value(scenarios[0]) if len(scenarios) == 1 else _by_rank(scenarios)


def _by_value(scenario: RecordedScenario) -> Standings | None:
    """Return the standings in a single scenario by mean final value; without diverged strategies."""
    gaps = differences(scenario)
    lines = []
    for cell in scenario.ranked:
        finals = [run.final(scenario.columns[0].name) for run in cell.finite]
        values = [value for value in finals if not isnan(value)]
        if values and not cell.diverged:
            lines.append(StrategyStanding(cell.strategy, paired_effect(values), gaps.get(cell.strategy)))
    if len(lines) < 2:
        return None
    return Standings(tuple(lines), 1, min(line.score.n for line in lines), by_rank=False)


def _by_rank(scenarios: Sequence[RecordedScenario]) -> Standings | None:
    """Return the standings by mean rank of strategies common to all scenarios, over seeds ended by all."""
    rows = [row for scenario in scenarios for row in _worth(scenario)]
    worth = pd.DataFrame(rows, columns=["strategy", "scenario", "seed", "worth"]).dropna()
    by_seed = worth.pivot(index=["strategy", "scenario"], columns="seed", values="worth")
    common = [
        cell.strategy
        for cell in scenarios[0].cells
        if sum(by_seed.index.get_level_values("strategy") == cell.strategy) == len(scenarios)
    ]
    if len(common) < 2 or (by_seed := by_seed.loc[common].dropna(axis="columns")).empty:
        return None
    # Ties share the mean rank
    ranks = by_seed.groupby("scenario").rank(ascending=False).groupby("strategy").mean().loc[common]
    of_strategies = {str(name): row.to_numpy() for name, row in ranks.iterrows()}
    names = sorted(of_strategies, key=lambda name: float(of_strategies[name].mean()))
    several = len(by_seed.columns) > 1
    gaps = behind({name: dict(enumerate(of_strategies[name])) for name in names}) if several else {}
    lines = tuple(
        StrategyStanding(name, paired_effect(list(of_strategies[name])), gaps.get(name)) for name in names
    )
    return Standings(lines, len(scenarios), len(by_seed.columns), by_rank=True)


def _worth(scenario: RecordedScenario) -> Iterator[tuple[str, str, int, float]]:
    """Yield strategy, scenario, seed and final value of ended runs: more is better, −∞ if diverged."""
    metric = scenario.columns[0]
    sign = 1 if metric.higher else -1
    for cell in scenario.cells:
        for run in cell.runs:
            if run.status.terminated:
                worth = -inf if run.status is Status.DIVERGED else sign * run.final(metric.name)
                yield cell.strategy, scenario.label, run.seed, worth
