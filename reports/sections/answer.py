"""The answer: who leads, how sure that is, and the curves of the leaders; the first thing on the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from fl_core.schema import Clock
from fl_core.text import many
from reports import numbers
from reports.downloads import download
from reports.figures import look, svg
from reports.records.measures import Measure
from reports.records.records import Cell, RecordedScenario
from reports.sections.behind import seeds_text
from reports.sections.curves import Plot, scale
from reports.sections.rows import draw, paint_names
from reports.sections.section import Results, Section, Table
from reports.statistics.bands import band, over_scenarios
from reports.statistics.ranking import RankingEntry
from reports.statistics.standings import Standing, Standings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 31
SHOWN = 10  # strategies in the first figure
CURVES = 4  # in colour beside it


def section(results: Results) -> Section | None:
    """Standings, and beside them learning curves; None where fewer than two strategies can be compared."""
    found = results.standings
    if found is None:
        return None
    standing = _draw(results, found)
    plot = _leaders(results, found)
    shows = {
        "standing": standing,
        "title": _title(results, found),
        "caption": _caption(found),
        "curves": plot,
        "runs": len(results.suite.runs),
        "table": _table(results, found),
        "download": download(results.suite.name, "standings", frame(found)),
    }
    figures = [("standings", standing), *([("leaders", plot["figure"])] if plot else [])]
    tables = [_table(results, found)]
    return Section("answer", "Who leads", "answer.html.j2", "", shows, figures, tables)


def _title(results: Results, found: Standings) -> str:
    if not found.by_rank:
        return f"Final {_measure(results).in_text}"
    return f"Mean rank over {many(found.scenarios, 'scenario')}"


def _measure(results: Results) -> Measure:
    return results.scenarios[0][0].columns[0]


def _caption(found: Standings) -> str:
    """What is drawn, and what separates."""
    more = len(found.lines) - SHOWN
    text = f"The first {SHOWN} of {len(found.lines)}. " if more > 0 else ""
    if found.seeds < 2:
        return f"{text}One seed, hence no interval."
    scope = " Scenarios are these, and not a sample of others." if found.by_rank else ""
    return (
        f"{text}Mean over {many(found.seeds, 'seed')} with its own interval of 95 %. Filled: separated from "
        f"the leader in paired differences (Holm, 5 %). Open: not separated.{scope}"
    )


def _table(results: Results, found: Standings) -> Table:
    score = "Mean rank" if found.by_rank else _measure(results).heading
    headings = ["Strategy", score, "Behind the leader", "p (Holm)", "Separated from the leader"]
    lines = [
        (
            RankingEntry(one.strategy),
            _entry(results, found, one),
            *_behind(results, found, one),
        )
        for one in found.lines
    ]
    return Table("standings", frame(found), headings, lines)


def _behind(results: Results, found: Standings, one: Standing) -> tuple[RankingEntry, ...]:
    if one.behind is None:
        leads = RankingEntry("leads") if one is found.leader else RankingEntry(numbers.MISSING)
        return RankingEntry(""), RankingEntry(""), leads
    effect = one.behind.effect
    mean, low, high = (_text(results, found, value) for value in (effect.mean, effect.low, effect.high))
    needed = seeds_text(one.behind.needed)
    verdict = RankingEntry("no", f"{needed} would" if needed else "") if one.open else RankingEntry("yes")
    p = RankingEntry(numbers.number(one.behind.p, 2), value=one.behind.p)
    return RankingEntry(mean, f"[{low}, {high}]", effect.mean), p, verdict


def _entry(results: Results, found: Standings, one: Standing) -> RankingEntry:
    low, high = (_text(results, found, value) for value in (one.score.low, one.score.high))
    interval = f"[{low}, {high}]" if one.score.n > 1 else ""
    return RankingEntry(_text(results, found, one.score.mean), interval, one.score.mean)


def _text(results: Results, found: Standings, value: float) -> str:
    return numbers.minus(f"{value:.1f}") if found.by_rank else _measure(results).text(value)


def frame(found: Standings) -> pd.DataFrame:
    """One row per strategy; differences to the leader are positive where it is behind.

    Intervals of scores hold by themselves, those of differences together.
    """
    return pd.DataFrame(
        {
            "strategy": one.strategy,
            "score": "mean rank" if found.by_rank else "final value",
            "mean": one.score.mean,
            "low": one.score.low,
            "high": one.score.high,
            "seeds": one.score.n,
            "behind": one.behind.effect.mean if one.behind else None,
            "behind low": one.behind.effect.low if one.behind else None,
            "behind high": one.behind.effect.high if one.behind else None,
            "p holm": one.behind.p if one.behind else None,
            "separated": one.behind.worse if one.behind else None,
            "seeds that would separate": one.behind.needed if one.behind else None,
        }
        for one in found.lines
    )


def _draw(results: Results, found: Standings) -> svg.Drawing:
    lines = found.lines[:SHOWN]
    cells = [Cell(one.strategy, results.index[one.strategy], ()) for one in lines]
    said = {cell.index: _said(results, found, one) for cell, one in zip(cells, lines, strict=True)}
    about = f"{_title(results, found)}: {'; '.join(said.values())}"
    paint = partial(_paint, results=results, found=found, lines=lines, cells=cells)
    return draw(cells, ROW, paint, about, said)


def _said(results: Results, found: Standings, one: Standing) -> str:
    entry = _entry(results, found, one)
    how = {True: ", not separated from the leader", False: ""}[one.open]
    return f"{one.strategy} {entry.text} {entry.detail}".rstrip() + how


def _paint(
    axes: Axes, results: Results, found: Standings, lines: Sequence[Standing], cells: Sequence[Cell]
) -> None:
    means = [one.score.mean for one in lines]
    ends = [end for one in lines if one.score.n > 1 for end in (one.score.low, one.score.high)]
    if found.by_rank:
        left, right = 1.0, float(len(found.lines))
    else:
        reach = (max(means) - min(means)) or abs(means[0]) or 1.0
        left = max(min([*means, *ends]), min(means) - reach)
        right = min(max([*means, *ends]), max(means) + reach)
    room = 0.04 * (right - left) or 0.5
    axes.set_xlim(left - room, right + room)
    edges = (left, right) if found.by_rank else (left - room, right + room)
    for y, (one, cell) in enumerate(zip(lines, cells, strict=True)):
        style: dict[str, Any] = {"color": svg.series(cell.index), "gid": svg.belongs(cell.index)}
        if one.score.n > 1:
            low, high = one.score.low, one.score.high
            if found.by_rank:  # there is no rank beyond
                low, high = max(low, left), min(high, right)
            svg.interval(axes, y, (low, high), edges, style)
        mark, size = ("D", 7.5) if one is found.leader else ("o", 8)
        face = svg.PAPER if one.open else svg.series(cell.index)
        axes.plot(
            [one.score.mean], [y], mark, markersize=size, markeredgewidth=1.8, markerfacecolor=face, **style
        )
    measure = _measure(results)
    axes.xaxis.set_major_formatter(svg.tick_text(share=not found.by_rank and measure.share))
    axes.locator_params(axis="x", nbins=6, integer=found.by_rank)
    axes.set_xlabel("Mean rank (1 is best)" if found.by_rank else measure.heading)
    paint_names(axes, cells)


def _leaders(results: Results, found: Standings) -> dict[str, Any] | None:
    """Learning curves of the first few over the scenarios of one problem, the others in grey."""
    scenarios = _alike([scenario for scenario, _ in results.scenarios])
    first, measure = scenarios[0], scenarios[0].columns[0]
    clock = first.cells[0].runs[0].budget_clock or Clock.UPDATES
    by_strategy = {
        name: [cell for one in scenarios for cell in one.cells if cell.strategy == name]
        for name in found.order
    }
    if len(scenarios) == 1:
        bands = [band(cells[0], measure.name, clock) for cells in by_strategy.values() if cells]
    else:
        bands = [over_scenarios(cells, measure.name, clock) for cells in by_strategy.values() if cells]
    bands = [one for one in bands if one.n]
    if not bands:
        return None
    leading = found.order[:CURVES]
    shown = [
        replace(one, cell=replace(one.cell, index=look.QUIET + one.cell.index))
        if one.cell.strategy not in leading and not look.quiet(one.cell.index)
        else one
        for one in bands
    ]
    label = first.label if len(scenarios) == 1 else f"mean of {len(scenarios)} scenarios"
    place = replace(first, label=label, cells=tuple(one.cell for one in shown))
    axis = scale(measure, [place], shown)
    colour = [(one.cell.index, one.cell.strategy) for one in shown if one.cell.strategy in leading]
    seeds = min(one.n for one in bands)
    over = f"Mean of {many(len(scenarios), 'scenario')}" if len(scenarios) > 1 else first.label
    band_text = f"; band: least to greatest of {many(seeds, 'seed')}" if seeds > 1 else ""
    others = len(shown) - len(colour)
    grey = f" Grey: the {f'{others} others' if others > 1 else 'other'}." if others else ""
    return {
        "title": "Learning curves of the leaders" if others else "Learning curves",
        "figure": Plot(place, measure, clock, shown, axis).draw(),
        "legend": colour,
        "caption": f"{over}{band_text}.{grey}",
    }


def _alike(scenarios: Sequence[RecordedScenario]) -> list[RecordedScenario]:
    """Those of the problem and metric that most have in common, the first of equals."""
    groups: dict[tuple[str, str], list[RecordedScenario]] = {}
    for one in scenarios:
        groups.setdefault((one.problem, one.columns[0].name), []).append(one)
    return max(groups.values(), key=len)
