"""The headline: every strategy in every scenario at a glance, then one table per scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from fl_core.text import many
from reports.downloads import download
from reports.figures import look
from reports.numbers import MISSING
from reports.records.measures import Measure
from reports.records.records import RecordedScenario
from reports.records.summary import Row, best, frame
from reports.sections.behind import seeds_text
from reports.sections.section import Results, Section, Table
from reports.statistics.differences import Difference
from reports.statistics.ranking import NO_SURROGATE, STALLED, Ranking, RankingEntry, seeds, spread_text

AGAINST = "Against the best"


@dataclass(frozen=True, slots=True)
class Glance:
    """One strategy in one scenario: its mean, and its place between the worst (0) and the best (1)."""

    text: str
    detail: str
    best: bool = False
    place: float = 0.0
    apart: str = ""  # whether it is separated from the best, in words; empty where that is unknown


@dataclass(frozen=True, slots=True)
class Block:
    """The table of one scenario."""

    found: Ranking
    seeds: list[str]
    against: list[RankingEntry]  # the best of the scenario; empty where nothing is compared
    finding: str  # in a sentence
    place: int


def section(results: Results) -> Section:
    """Overview and tables."""
    rankings, compared = results.rankings, results.differences
    glance = at_a_glance(results) if len(rankings) > 1 else None
    numbers = frame(results.scenarios)
    blocks = [
        Block(
            found,
            [seeds(line.row) for line in found.lines],
            against(of),
            _finding(found, of),
            results.place(found.scenario),
        )
        for found, of in zip(rankings, compared, strict=True)
    ]
    shows = {
        "glance": glance,
        "blocks": blocks,
        "download": download(results.suite.name, "ranking", numbers),
    }
    tables = [_table(block, rows) for block, (_, rows) in zip(blocks, results.scenarios, strict=True)]
    overview = [_overview_table(glance, numbers)] if glance else []
    note = _note(rankings, any(block.against for block in blocks))
    return Section("ranking", "Ranking", "ranking.html.j2", note, shows, tables=[*overview, *tables])


def against(of: Sequence[Difference]) -> list[RankingEntry]:
    """For each line of a scenario, whether it is separated from the best, and how many seeds would do so."""
    return [_against(one, best=at == 0) for at, one in enumerate(of)]


def _against(one: Difference, *, best: bool) -> RankingEntry:
    if one.effect is None:
        return RankingEntry("best" if best else MISSING, value=-1 if best else nan)
    if one.worse:
        return RankingEntry("separated", value=0)
    needed = seeds_text(one.needed)
    return RankingEntry("not separated", f"{needed} would" if needed else "", one.needed or inf)


def _finding(found: Ranking, of: Sequence[Difference]) -> str:
    """Who leads a scenario, and from how many it is separated."""
    best = found.lines[0]
    entry = best.entries[0]
    unit = " %" if found.scenario.columns[0].share else ""
    if best.row.diverged or isnan(best.row.final[found.scenario.columns[0].name].mean):
        return ""
    text = f"{best.row.strategy} {entry.text}{unit}"
    compared = [one for one in of if one.effect]
    if not compared:
        return text
    apart, of_all = sum(one.worse for one in compared), many(len(compared), "other")
    return (
        f"{text}, {f'separated from {apart} of {of_all}' if apart else f'not separated from any of {of_all}'}"
    )


def _table(block: Block, rows: list[Row]) -> Table:
    found = block.found
    extra = [AGAINST] if block.against else []
    headings = ["Strategy", *(column.title for column in found.columns), *extra, "Seeds"]
    lines = [
        (
            RankingEntry(line.row.strategy),
            *line.entries,
            *block.against[at : at + 1],
            RankingEntry(block.seeds[at]),
        )
        for at, line in enumerate(found.lines)
    ]
    if any(entry.text for entry in found.pooled):
        empty = [RankingEntry("")] * (1 + len(extra))
        lines.append((RankingEntry("Trained centrally"), *found.pooled, *empty))
    return Table(found.scenario.label, frame([(found.scenario, rows)]), headings, lines)


def _overview_table(glance: dict[str, Any], numbers: pd.DataFrame) -> Table:
    headings = ["Scenario", *(strategy for _, strategy in glance["strategies"])]
    lines = [
        (RankingEntry(label), *(RankingEntry(one.text, one.detail, best=one.best) for one in glances))
        for label, glances, _ in glance["lines"]
    ]
    return Table("overview", numbers, headings, lines)


def _note(rankings: Sequence[Ranking], compared: bool) -> str:
    lines = [line for found in rankings for line in found.lines]
    first = {found.scenario.columns[0].in_text for found in rankings}
    by = f"final {first.pop()}" if len(first) == 1 else "the first column"
    parts = [f"Strategies are ranked by {by}."] if len(lines) > len(rankings) else []
    if any(len(line.row.cell.finite) > 1 for line in lines):
        median = (
            " Updates and time to a target: median." if any(one.scenario.target for one in rankings) else ""
        )
        parts.append(f"Final values: mean ± standard deviation over seeds.{median} Best in bold.")
    if compared:
        parts.append(
            "Not separated: the seeds do not show that the best of the scenario is better; beside it, about "
            "how many would. That is not the same as equal: see “Behind the best”."
        )
    if any(found.unmet for found in rankings):
        parts.append("∞: the median seed never met the target; beside it, how many seeds did.")
    if any(line.row.diverged for line in lines):
        parts.append("Strategies with diverged runs come last; their means are those of the other seeds.")
    if any(line.row.stalled for line in lines):
        parts.append(STALLED)
    if any(found.scenario.lacks_surrogate for found in rankings):
        parts.append(NO_SURROGATE)
    return " ".join(parts)


def at_a_glance(results: Results) -> dict[str, Any]:
    """One line per scenario, one column per strategy, in the order of the standings."""
    order = results.order
    ranks = {scenario.columns[0] for scenario, _ in results.scenarios}
    return {
        "title": _glance_title(ranks.pop()) if len(ranks) == 1 else "Final value of each scenario’s metric",
        "strategies": [(results.index[strategy], strategy) for strategy in order],
        "lines": [
            (
                found.scenario.label,
                _glances(found.scenario, rows, order, of),
                found.pooled[0],
            )
            for found, (_, rows), of in zip(
                results.rankings, results.scenarios, results.differences, strict=True
            )
        ],
        "pooled": any(found.pooled[0].text for found in results.rankings),
        "compared": any(results.differences),
        "down": len(order) > len(look.LIGHT),  # many strategies: one a row
    }


def _glance_title(ranks: Measure) -> str:
    return f"Final {ranks.in_text}, mean ± standard deviation over seeds{' (%)' if ranks.share else ''}"


def _glances(
    scenario: RecordedScenario, rows: list[Row], order: list[str], of: Sequence[Difference]
) -> list[Glance]:
    apart = {one.row.strategy: "separated" if one.worse else "not separated" for one in of if one.effect}
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
        found[row.strategy] = Glance(text, detail, leads, round(place, 3), apart.get(row.strategy, ""))
    return [found.get(strategy, Glance("", "not run")) for strategy in order]
