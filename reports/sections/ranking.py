"""Headline: every strategy in every scenario at a glance, then a table per scenario."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from fl_core.schema import Clock, Status
from fl_core.text import many
from reports import numbers
from reports.comparisons import Difference
from reports.rankings import NO_SURROGATE, NOTHING, STALLED, Ranking, spread_text
from reports.records.cells import Cell
from reports.records.records import RecordedScenario
from reports.sections.paired_differences import seeds_text
from reports.sections.section import Results, Section
from reports.tables import UNKNOWN, PageTable, TableEntry, download


@dataclass(frozen=True, slots=True)
class Glance:
    """A strategy in a scenario: the mean, and the place between the worst (0) and the best (1)."""

    text: str
    detail: str
    best: bool = False
    place: float = 0.0
    value: float = nan
    apart: str = ""  # whether it is separated from the best, in words; empty where that is unknown


@dataclass(frozen=True, slots=True)
class RankingBlock:
    """Table of a scenario, with the comparison to the best and a finding."""

    ranking: Ranking
    against: list[TableEntry]  # the best of the scenario; empty where nothing is compared
    finding: str  # in a sentence

    @property
    def against_title(self) -> str:
        """Heading of the comparison with the best, with the measure."""
        return f"Against the best in {self.ranking.scenario.columns[0].in_text}"

    def table(self) -> PageTable:
        """Return the table as files."""
        extra = [self.against_title] if self.against else []
        headings = ["Strategy", *(column.title for column in self.ranking.columns), *extra, "Seeds"]
        lines = [
            (TableEntry(cell.strategy), *entries, *self.against[at : at + 1], TableEntry(cell.seeds))
            for at, (cell, entries) in enumerate(self.ranking.lines)
        ]
        if any(entry.text for entry in self.ranking.pooled):
            empty = [NOTHING] * (1 + len(extra))
            lines.append((TableEntry("Trained centrally"), *self.ranking.pooled, *empty))
        scenario = self.ranking.scenario
        return PageTable(scenario.label, frame([scenario]), headings, lines)


def section(results: Results) -> Section:
    """Return the section with the overview of several scenarios and a table for each."""
    rankings = results.rankings
    glance = at_a_glance(results) if len(rankings) > 1 else None
    numbers = frame(results.scenarios)
    blocks = [
        RankingBlock(ranking, against(differences), _finding(ranking, differences))
        for ranking, differences in zip(rankings, results.differences.values(), strict=True)
    ]
    tables = [block.table() for block in blocks]
    if glance:
        tables.insert(0, _overview_table(glance, numbers))
    note = _note(rankings, any(block.against for block in blocks))
    link = download("All tables", results.suite.name, "ranking", numbers)
    shows = {"glance": glance, "blocks": blocks}
    return Section("ranking", "Ranking", "ranking.html.j2", note, shows, tables=tables, downloads=[link])


def frame(scenarios: Sequence[RecordedScenario]) -> pd.DataFrame:
    """Return all rows as a table for reading by other programs; ∞ is written as inf."""
    return pd.DataFrame([_record(scenario, cell) for scenario in scenarios for cell in scenario.ranked])


def _record(scenario: RecordedScenario, cell: Cell) -> dict[str, object]:
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


def against(differences: Sequence[Difference]) -> list[TableEntry]:
    """Return an entry per line of a scenario: separated from the best or not, and the seeds needed."""
    entries = []
    for at, difference in enumerate(differences):
        if difference.gap is None:
            entries.append(UNKNOWN if at else TableEntry("best", value=-1))
        elif difference.gap.worse:
            entries.append(TableEntry("separated", value=0))
        else:
            needed = seeds_text(difference.gap)
            would = f"{needed} would" if needed else ""
            entries.append(TableEntry("not separated", would, difference.gap.needed or inf))
    return entries


def _finding(ranking: Ranking, differences: Sequence[Difference]) -> str:
    """Return the leader of a scenario, and the number of separated strategies."""
    (leader, entries), metric = ranking.lines[0], ranking.scenario.columns[0]
    if leader.diverged or isnan(leader.final[metric.name].mean):
        return ""
    text = f"{leader.strategy} {entries[0].text}{' %' if metric.share else ''} in {metric.in_text}"
    gaps = [difference.gap for difference in differences if difference.gap]
    if not gaps:
        return text
    apart, rest = sum(gap.worse for gap in gaps), many(len(gaps), "other")
    return f"{text}, {f'separated from {apart} of' if apart else 'not separated from any of'} {rest}"


def _overview_table(glance: dict[str, Any], numbers: pd.DataFrame) -> PageTable:
    headings = ["Scenario", *(strategy for _, strategy in glance["strategies"])]
    lines = [
        (TableEntry(label), *(TableEntry(glance.text, glance.detail, best=glance.best) for glance in glances))
        for label, glances, _ in glance["lines"]
    ]
    return PageTable("overview", numbers, headings, lines)


def _note(rankings: Sequence[Ranking], compared: bool) -> str:
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
    """Return in words how far evaluations are apart, and thus how exact times to target are."""
    scenarios = [ranking.scenario for ranking in rankings if ranking.scenario.target]
    all_steps = [scenario.evaluation_step(Clock.TIME) for scenario in scenarios]
    if not (steps := [step for step in all_steps if not isnan(step)]):
        return ""
    low, high = (numbers.moment(step) for step in (min(steps), max(steps)))
    unit = scenarios[0].runs[0].time_unit or "units of time"
    apart = low if low == high else f"{low} to {high}"
    return f" Evaluations are {apart} {unit} apart: a target was met up to that much earlier."


def at_a_glance(results: Results) -> dict[str, Any]:
    """Return a line per scenario and a column per strategy, in the order of the standings."""
    order = results.order
    ranks = {scenario.columns[0] for scenario in results.scenarios}
    title = "Final value of each scenario’s metric"
    if len(ranks) == 1:
        metric = ranks.pop()
        unit = " (%)" if metric.share else ""
        title = f"Final {metric.in_text}, mean ± standard deviation over seeds{unit}"
    parts = zip(results.differences.items(), results.rankings, strict=True)
    lines = [
        (scenario.label, _glances(scenario, order, differences), ranking.pooled[0])
        for (scenario, differences), ranking in parts
    ]
    return {
        "title": title,
        "strategies": [(results.index[strategy], strategy) for strategy in order],
        "lines": lines,
        "pooled": any(pooled.text for _, _, pooled in lines),
        "compared": any(results.differences.values()),
        "down": len(order) > len(lines),  # strategies one a row: the longer side has no end on a phone
    }


def _glances(scenario: RecordedScenario, order: list[str], differences: Sequence[Difference]) -> list[Glance]:
    apart = {
        difference.strategy: "not separated" if difference.open else "separated"
        for difference in differences
        if difference.gap
    }
    metric = scenario.columns[0]
    means = {cell.strategy: cell.final[metric.name].mean for cell in scenario.cells}
    finished = [means[cell.strategy] for cell in scenario.cells if not cell.diverged]
    top = (max if metric.higher else min)((mean for mean in finished if not isnan(mean)), default=nan)
    finite = [mean for mean in means.values() if np.isfinite(mean)] or [0.0]
    worst, room = min(finite) if metric.higher else max(finite), max(finite) - min(finite)
    glances = {}
    for cell in scenario.cells:
        mean = means[cell.strategy]
        text, detail = spread_text(cell.final[metric.name], metric)
        if cell.diverged:
            detail = f"{cell.diverged} diverged"
        elif cell.stalled:
            detail = f"{cell.stalled} stalled"
        place = abs(mean - worst) / room if room and np.isfinite(mean) else 0.0
        leads = metric.higher is not None and not cell.diverged and text == metric.text(top)
        glances[cell.strategy] = Glance(
            text, detail, leads, round(place, 3), mean, apart.get(cell.strategy, "")
        )
    return [glances.get(strategy, Glance("", "not run")) for strategy in order]
