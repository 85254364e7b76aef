"""Behind the best: paired differences over seeds, and which of them are more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from fl_core.text import many
from reports import numbers
from reports.downloads import download
from reports.figures import svg
from reports.records.measures import Measure
from reports.records.records import RecordedScenario
from reports.sections.rows import draw, paint_names
from reports.sections.section import Card, Results, Section, Table, figures
from reports.statistics.differences import Difference
from reports.statistics.ranking import RankingEntry

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 30
FEW = 5  # seeds; with fewer, the page notes how little they can show
MANY = 1000  # seeds; more are impractical
ROOM = 2.2  # times the largest difference of a seed, beyond which intervals are cut


def section(results: Results) -> Section | None:
    """One card per scenario."""
    found = [
        (scenario, of) for (scenario, _), of in zip(results.scenarios, results.differences, strict=True) if of
    ]
    if not found:
        return None
    cards = [
        Card(
            scenario.label,
            _draw(scenario, of),
            _caption(of),
            places=[results.place(scenario)],
            runs=len(scenario.runs),
        )
        for scenario, of in found
    ]
    table = frame(found)
    shows = {
        "cards": cards,
        "download": download(results.suite.name, "differences", table),
        "what": "Differences",
    }
    tables = [Table("all", table), *(_table(scenario, of) for scenario, of in found)]
    return Section("behind", "Behind the best", "cards.html.j2", _note(found), shows, figures(cards), tables)


def _note(found: Sequence[tuple[RecordedScenario, Sequence[Difference]]]) -> str:
    n = [one.effect.n for _, of in found for one in of if one.effect]
    over = many(max(n), "seed") if min(n) == max(n) else f"{min(n)} to {max(n)} seeds"
    text = (
        f"Paired differences to the best strategy of the scenario over {over}; strokes are single seeds. "
        "Intervals hold together at 95 % within a scenario (Bonferroni); an arrow: it goes on. Filled: "
        "separated from the best (paired t-test at 5 %, Holm’s adjustment within the scenario, which may "
        "show a difference where the interval does not). Open: not separated, which is not the same as equal."
    )
    if max(n) < FEW:
        text += (
            f" {numbers.spelt(max(n)).capitalize()} seeds show only large and steady differences; and the "
            "best is chosen by the same seeds, so that among close strategies luck decides who leads."
        )
    return text


def _caption(of: Sequence[Difference]) -> str:
    """The undecided comparisons, and what would decide the closest one."""
    best, *others = of
    compared = [one for one in others if one.effect]
    left = [one for one in compared if one.open]
    if not left:
        every = f"all of {len(compared)} others" if len(compared) > 1 else compared[0].row.strategy
        return f"{best.row.strategy} is separated from {every}."
    if len(compared) == 1:
        whom = compared[0].row.strategy
    else:
        n = len(compared)
        whom = f"any of {n} others" if len(left) == n else f"{len(left)} of {n} others"
    return f"{best.row.strategy} is not separated from {whom}." + _would(left[0])


def _would(nearest: Difference) -> str:
    """How many seeds would separate it."""
    seeds = seeds_text(nearest.needed)
    return f" {seeds[0].upper()}{seeds[1:]} would separate it from {nearest.row.strategy}." if seeds else ""


def seeds_text(needed: int | None) -> str:
    """The seeds that would decide, as the noun of a sentence; empty where none would."""
    if needed is None:
        return ""
    return f"about {numbers.rough(needed)} seeds" if needed <= MANY else f"more than {MANY:,} seeds"


def text(one: Difference, of: Measure) -> RankingEntry:
    """A difference and its interval, in percentage points where the metric is a share."""
    if one.effect is None:
        return RankingEntry("")
    mean, low, high = (
        numbers.percent(value) if of.share else numbers.number(value, 3)
        for value in (one.effect.mean, one.effect.low, one.effect.high)
    )
    return RankingEntry(mean, f"[{low}, {high}]" if one.effect.n > 1 else "", one.effect.mean)


def _table(scenario: RecordedScenario, of: Sequence[Difference]) -> Table:
    ranks = scenario.columns[0]
    lines = [
        (
            RankingEntry(one.row.strategy),
            text(one, ranks) if one.effect else RankingEntry("best" if one is of[0] else numbers.MISSING),
            RankingEntry(numbers.number(one.p, 2) if one.effect else ""),
            RankingEntry("" if one.effect is None else "yes" if one.worse else "no"),
            RankingEntry("" if one.needed is None else f"{one.needed:,}"),
        )
        for one in of
    ]
    unit = " (points)" if ranks.share else ""
    headings = ["Strategy", f"Behind in {ranks.in_text}{unit}", "p (Holm)", "Separated", "Seeds that would"]
    return Table(scenario.label, frame([(scenario, of)]), headings, lines)


def frame(found: Sequence[tuple[RecordedScenario, Sequence[Difference]]]) -> pd.DataFrame:
    """One row per comparison; differences are positive where the strategy is worse than the best.

    Intervals hold together within a scenario.
    """
    return pd.DataFrame(
        {
            "scenario": scenario.label,
            "metric": scenario.columns[0].name,
            "best": of[0].row.strategy,
            "strategy": one.row.strategy,
            "behind": one.effect.mean,
            "low": one.effect.low,
            "high": one.effect.high,
            "p": one.effect.p,
            "p holm": one.p,
            "seeds": one.effect.n,
            "worse": one.worse,
            "seeds that would separate": one.needed,
        }
        for scenario, of in found
        for one in of
        if one.effect
    )


def _draw(scenario: RecordedScenario, of: Sequence[Difference]) -> svg.Drawing:
    ranks = scenario.columns[0]
    description = f"How far strategies stay behind {of[0].row.strategy}, {scenario.label}: {_caption(of)}"
    said = {one.row.cell.index: _said(one, ranks, best=one is of[0]) for one in of}
    cells = [one.row.cell for one in of]
    return draw(cells, ROW, partial(_paint, of=of, ranks=ranks), description, said)


def _said(one: Difference, ranks: Measure, *, best: bool) -> str:
    """A difference in words."""
    if one.effect is None:
        return f"{one.row.strategy}: {'the best' if best else 'not compared'}"
    entry = text(one, ranks)
    unit = " points" if ranks.share else ""
    verdict = "not separated" if one.open else "separated"
    return f"{one.row.strategy}: {entry.text}{unit} behind {entry.detail}, {verdict}"


def _paint(axes: Axes, of: Sequence[Difference], ranks: Measure) -> None:
    seen = [value for one in of for value in one.values]
    reach = max((abs(value) for value in seen), default=0.0) or 1.0
    ends = [end for one in of if one.effect for end in (one.effect.low, one.effect.high)]
    low = max(min([0.0, *seen, *ends]), min([0.0, *seen]) - ROOM * reach / 2)
    high = min(max([0.0, *seen, *ends]), max([0.0, *seen]) + ROOM * reach / 2)
    room = 0.05 * (high - low) or reach
    axes.set_xlim(low - room, high + room)
    axes.axvline(0, color=svg.MUTED, linewidth=0.8)
    for y, one in enumerate(of):
        _paint_row(axes, y, one, (low - room, high + room))
    axes.xaxis.set_major_formatter(svg.tick_text(share=ranks.share))
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(f"Behind the best in {ranks.in_text}{' (points)' if ranks.share else ''}")
    paint_names(axes, [one.row.cell for one in of])


def _paint_row(axes: Axes, y: int, one: Difference, ends: tuple[float, float]) -> None:
    index = one.row.cell.index
    style: dict[str, Any] = {"color": svg.series(index), "gid": svg.belongs(index)}
    for value in one.values:
        axes.plot([value, value], [y - 0.24, y + 0.24], linewidth=1.1, alpha=0.45, **style)
    if one.effect is None:
        if y == 0:  # the best itself; others without an effect diverged
            axes.plot([0], [y], "D", markersize=7, markeredgewidth=0, **style)
        return
    if one.effect.n > 1:
        svg.interval(axes, y, (one.effect.low, one.effect.high), ends, style)
    face = svg.series(index) if one.worse else svg.PAPER
    axes.plot([one.effect.mean], [y], "o", markersize=8, markeredgewidth=1.8, markerfacecolor=face, **style)
