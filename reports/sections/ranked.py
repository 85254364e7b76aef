"""The headline: every strategy in every scenario at a glance, then one table per scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from reports.downloads import file_name, link
from reports.records.measures import Measure
from reports.records.records import RecordedScenario
from reports.records.summary import Row, best, frame
from reports.sections.section import Results, Section, Table
from reports.statistics.ranking import STALLED, Ranking, RankingEntry, seeds, spread_text


@dataclass(frozen=True, slots=True)
class Glance:
    """One strategy in one scenario: its mean, and its place between the worst (0) and the best (1)."""

    text: str
    detail: str
    best: bool = False
    place: float = 0.0
    open: bool = False  # not shown to be worse than the best


def section(results: Results) -> Section:
    """Overview and tables."""
    rankings, compared = results.rankings(), results.differences()
    glance = at_a_glance(results) if len(rankings) > 1 else None
    numbers = frame(results.scenarios)
    shows = {
        "glance": glance,
        "cards": [
            (found, [seeds(line.row) for line in found.lines], of)
            for found, of in zip(rankings, compared, strict=True)
        ],
        "file": file_name(results.suite.name, "ranking"),
        "download": link(numbers),
    }
    tables = [_table(found, rows) for found, (_, rows) in zip(rankings, results.scenarios, strict=True)]
    overview = [_overview_table(glance, numbers)] if glance else []
    note = _note(rankings, any(one.open for of in compared for one in of))
    return Section("ranking", "Ranking", "ranking.html.j2", note, shows, tables=[*overview, *tables])


def _table(found: Ranking, rows: list[Row]) -> Table:
    headings = ["Strategy", *(column.title for column in found.columns), "Seeds"]
    lines = [
        (RankingEntry(line.row.strategy), *line.entries, RankingEntry(seeds(line.row)))
        for line in found.lines
    ]
    if any(entry.text for entry in found.pooled):
        lines.append((RankingEntry("Trained centrally"), *found.pooled, RankingEntry("")))
    return Table(found.scenario.label, frame([(found.scenario, rows)]), headings, lines)


def _overview_table(glance: dict[str, Any], numbers: pd.DataFrame) -> Table:
    headings = ["Scenario", *(strategy for _, strategy in glance["strategies"])]
    lines = [
        (RankingEntry(label), *(RankingEntry(one.text, one.detail, best=one.best) for one in glances))
        for label, glances, _ in glance["lines"]
    ]
    return Table("overview", numbers, headings, lines)


def _note(rankings: Sequence[Ranking], some_open: bool) -> str:
    lines = [line for found in rankings for line in found.lines]
    first = {found.scenario.columns[0].in_text for found in rankings}
    by = f"final {first.pop()}" if len(first) == 1 else "the first column"
    parts = [f"Strategies are ranked by {by}."] if len(lines) > len(rankings) else []
    if any(len(line.row.cell.done) > 1 for line in lines):
        median = (
            " Updates and time to a target: median." if any(one.scenario.target for one in rankings) else ""
        )
        parts.append(f"Final values: mean ± standard deviation over seeds.{median} Best in bold.")
    if some_open:
        parts.append("≈: not shown to be worse than the best; see “Behind the best”.")
    if any(found.unmet for found in rankings):
        parts.append("∞: the median seed never met the target; beside it, how many seeds did.")
    if any(line.row.diverged for line in lines):
        parts.append("Strategies with diverged runs come last; their means are those of the other seeds.")
    if any(line.row.stalled for line in lines):
        parts.append(STALLED)
    return " ".join(parts)


def at_a_glance(results: Results) -> dict[str, Any]:
    """One line per scenario, one column per strategy; strategies by their mean rank."""
    rankings = results.rankings()
    places: dict[str, list[int]] = {}
    for _, rows in results.scenarios:
        for rank, row in enumerate(rows):
            places.setdefault(row.strategy, []).append(rank)
    order = sorted(results.suite.strategies, key=lambda strategy: float(np.mean(places[strategy])))
    ranks = {scenario.columns[0] for scenario, _ in results.scenarios}
    return {
        "title": _glance_title(ranks.pop()) if len(ranks) == 1 else "Final value of each scenario’s metric",
        "strategies": [(results.suite.strategies.index(strategy), strategy) for strategy in order],
        "lines": [
            (
                found.scenario.label,
                _glances(found.scenario, rows, order, {one.row.strategy for one in of if one.open}),
                found.pooled[0],
            )
            for found, (_, rows), of in zip(rankings, results.scenarios, results.differences(), strict=True)
        ],
        "pooled": any(found.pooled[0].text for found in rankings),
    }


def _glance_title(ranks: Measure) -> str:
    return f"Final {ranks.in_text}, mean ± standard deviation over seeds{' (%)' if ranks.share else ''}"


def _glances(
    scenario: RecordedScenario, rows: list[Row], order: list[str], left_open: set[str]
) -> list[Glance]:
    ranks = scenario.columns[0]
    best_text = ranks.text(best(rows, ranks.name, ranks.higher))
    means = {row.strategy: row.final[ranks.name].mean for row in rows}
    known = [mean for mean in means.values() if np.isfinite(mean)]
    worst, room = (
        (min(known) if ranks.higher else max(known), max(known) - min(known)) if known else (0.0, 0.0)
    )
    found = {}
    for row in rows:
        mean = means[row.strategy]
        text, detail = spread_text(row.final[ranks.name], ranks)
        if row.diverged:
            detail = f"{row.diverged} diverged"
        elif row.stalled:
            detail = f"{row.stalled} stalled"
        place = abs(mean - worst) / room if room and np.isfinite(mean) else 0.0
        leads = not row.diverged and text == best_text
        found[row.strategy] = Glance(text, detail, leads, round(place, 3), row.strategy in left_open)
    return [found.get(strategy, Glance("", "not run")) for strategy in order]
