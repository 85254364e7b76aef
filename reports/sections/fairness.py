"""Fairness: the final model's performance on every client, and on the worst one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fl_core.schema import Name
from reports.figures import svg
from reports.records.measures import Measure
from reports.records.records import Cell, RecordedScenario
from reports.records.steps import Array
from reports.sections.rows import draw, paint_names
from reports.sections.section import Card, Results, Section, figures, mean_over

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 30
MOST = 80  # strokes per row; of more clients, that many quantiles are drawn


@dataclass(frozen=True, slots=True, eq=False)
class Clients:
    """The clients of one strategy at the end of its runs."""

    cell: Cell
    values: Array  # [clients · seeds], sorted
    mean: float  # weighted by importance, over seeds
    worst: float  # of each seed, over seeds
    n: int  # seeds


def clients(cell: Cell, of: Measure) -> Clients | None:
    """The metric or loss of every client, over the seeds that ended; None if there is none."""
    recorded = [run.files.clients for run in cell.finite if of.short in run.files.clients]
    finite = [table[np.isfinite(table[of.short])] for table in recorded]
    tables = [table for table in finite if table[Name.IMPORTANCE].any()]
    if not tables:
        return None
    columns = [table[of.short].to_numpy(float) for table in tables]
    means = [
        np.average(column, weights=table[Name.IMPORTANCE])
        for column, table in zip(columns, tables, strict=True)
    ]
    worst = [of.worst(column) for column in columns]
    return Clients(
        cell, np.sort(np.concatenate(columns)), float(np.mean(means)), float(np.mean(worst)), len(tables)
    )


def section(results: Results) -> Section | None:
    """One card per scenario."""
    found = [(scenario, compared_by(scenario)) for scenario, _ in results.scenarios]
    tables = [
        (scenario, of, [row for cell in scenario.cells if (row := clients(cell, of))])
        for scenario, of in found
    ]
    cards = [
        Card(
            scenario.label,
            _draw(scenario, of, rows),
            places=[results.place(scenario)],
            runs=len(scenario.runs),
        )
        for scenario, of, rows in tables
        if rows
    ]
    everything = [row for _, _, rows in tables for row in rows]
    if not everything:
        return None
    strokes = "one client of one seed"
    if any(len(row.values) > MOST for row in everything):
        strokes += f" (of more than {MOST}, as many quantiles)"
    note = (
        f"Each stroke: {strokes}. Filled mark: mean over clients, by importance. "
        f"Open mark: the worst client{mean_over([row.n for row in everything])}."
    )
    return Section(
        "fairness", "Fairness over clients", "cards.html.j2", note, {"cards": cards}, figures(cards)
    )


def compared_by(scenario: RecordedScenario) -> Measure:
    """The metric that compares clients: the ranking metric where each has a value of it, else their loss."""
    own = scenario.metric
    recorded = any(own.short in run.files.clients for run in scenario.runs)
    plain = replace(own, title=own.title.removeprefix("Test ").capitalize())
    return plain if recorded and own.higher is not None else Measure(Name.LOSS, "Loss", higher=False)


def _draw(scenario: RecordedScenario, of: Measure, rows: Sequence[Clients]) -> svg.Drawing:
    unit = " %" if of.share else ""
    said = {row.cell.index: f"{row.cell.strategy}: worst client {of.text(row.worst)}{unit}" for row in rows}
    best = (max if of.higher else min)(rows, key=lambda row: row.worst)
    description = (
        f"Final {of.in_text} of every client by strategy, {scenario.label}: the worst client is best off "
        f"with {best.cell.strategy}, {of.text(best.worst)}{unit}"
    )
    return draw([row.cell for row in rows], ROW, partial(_paint, of=of, rows=rows), description, said)


def _paint(axes: Axes, of: Measure, rows: Sequence[Clients]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for y, row in enumerate(rows):
        style: dict[str, Any] = {"color": svg.series(row.cell.index), "gid": svg.belongs(row.cell.index)}
        shown = row.values
        if len(shown) > MOST:
            shown = np.quantile(shown, np.linspace(0, 1, MOST))
        ends = np.stack([np.repeat(shown, 2), np.tile([y - 0.26, y + 0.26], len(shown))], axis=1)
        path = Path(ends, [Path.MOVETO, Path.LINETO] * len(shown))
        axes.add_patch(PathPatch(path, fill=False, linewidth=1.1, alpha=0.45, **style))
        axes.plot([row.worst, row.mean], [y, y], linewidth=1.4, **style)
        axes.plot([row.mean], [y], "o", markersize=7, markeredgewidth=0, **style)
        axes.plot(
            [row.worst], [y], "o", markersize=7, markeredgewidth=1.6, markerfacecolor=svg.PAPER, **style
        )
    lows, highs = [row.values[0] for row in rows], [row.values[-1] for row in rows]
    room = 0.04 * (max(highs) - min(lows)) or 0.05
    axes.set_xlim(min(lows) - room, max(highs) + room)
    axes.xaxis.set_major_formatter(svg.tick_text(share=of.share))
    axes.set_xlabel(replace(of, title=f"{of.title} at the end").heading)
    paint_names(axes, [row.cell for row in rows])
