"""Fairness: the final model's performance on every client, and on the worst client."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fl_core.schema import Name
from reports.figures import svg
from reports.numbers import Measure
from reports.records.cells import Array, Cell
from reports.records.records import RecordedScenario
from reports.sections.rows import draw
from reports.sections.section import Card, Results, Section, cards_section, mean_over

MOST = 80  # strokes per row; of more clients, that many quantiles are drawn


@dataclass(frozen=True, slots=True, eq=False)
class Clients:
    """Clients of a strategy at the end of runs."""

    cell: Cell
    values: Array  # [clients · seeds], sorted
    mean: float  # weighted by importance, over seeds
    worst: float  # of each seed, over seeds
    n: int  # seeds


def clients(cell: Cell, metric: Measure) -> Clients | None:
    """Return the metric or loss of every client, over ended seeds; None without any."""
    tables = [run.files.clients for run in cell.finite if metric.short in run.files.clients]
    columns = [(table[metric.short].astype(float), table[Name.IMPORTANCE]) for table in tables]
    finite = [(values[np.isfinite(values)], weights[np.isfinite(values)]) for values, weights in columns]
    weighted = [(values, weights) for values, weights in finite if weights.any()]
    if not weighted:
        return None
    means = [np.average(values, weights=weights) for values, weights in weighted]
    worst = [metric.worst(values) for values, _ in weighted]
    every = np.sort(np.concatenate([values for values, _ in weighted]))
    return Clients(cell, every, float(np.mean(means)), float(np.mean(worst)), len(weighted))


def section(results: Results) -> Section | None:
    """Return the section with a card per scenario; None if no client was evaluated."""
    cards, shown = [], []
    for scenario in results.scenarios:
        metric = compared_by(scenario)
        foremost = [cell for cell in scenario.cells if cell.strategy in results.foremost]
        if rows := [row for cell in foremost if (row := clients(cell, metric))]:
            drawing, place = _draw(scenario, metric, rows), scenario.place
            cards.append(Card(scenario.label, {None: drawing}, places=[place], runs=len(scenario.runs)))
            shown += rows
    if not shown:
        return None
    strokes = "one client of one seed"
    if any(len(row.values) > MOST for row in shown):
        strokes += f" (of more than {MOST}, as many quantiles)"
    note = (
        f"Stroke: {strokes}. Filled mark: mean over clients, weighted by importance. "
        f"Open mark: the worst client{mean_over([row.n for row in shown])}.{results.only_foremost}"
    )
    return cards_section("fairness", "Fairness over clients", note, [("", cards)])


def compared_by(scenario: RecordedScenario) -> Measure:
    """Return the metric for comparing clients: the scenario's if recorded by client, otherwise loss."""
    own = scenario.metric
    recorded = any(own.short in run.files.clients for run in scenario.runs)
    return (
        own.judged_on() if recorded and own.higher is not None else Measure(Name.LOSS, "Loss", higher=False)
    )


def _draw(scenario: RecordedScenario, metric: Measure, rows: Sequence[Clients]) -> svg.Drawing:
    worst = {row.cell: metric.with_unit(row.worst) for row in rows}
    texts = [(cell, f"{cell.strategy}: worst client {text}") for cell, text in worst.items()]
    best = (max if metric.higher else min)(rows, key=lambda row: row.worst)
    description = (
        f"Final {metric.in_text} of every client by strategy, {scenario.label}: the worst client is best off "
        f"with {best.cell.strategy}, {worst[best.cell]}"
    )
    return draw(texts, partial(_paint, metric=metric, rows=rows), description)


def _paint(axes: svg.Axes, metric: Measure, rows: Sequence[Clients]) -> None:
    for y, row in enumerate(rows):
        index, style = row.cell.index, svg.style(row.cell.index)
        values = row.values
        if len(values) > MOST:
            values = np.quantile(values, np.linspace(0, 1, MOST))
        svg.strokes(axes, index, values, y)
        axes.plot([row.worst, row.mean], [y, y], linewidth=1.4, **style)
        svg.dot(axes, index, (row.mean, y), 7)
        svg.dot(axes, index, (row.worst, y), 7, edge=1.6, hollow=True)
    lows, highs = [row.values[0] for row in rows], [row.values[-1] for row in rows]
    room = 0.04 * (max(highs) - min(lows)) or 0.05
    axes.set_xlim(min(lows) - room, max(highs) + room)
    svg.across(axes, replace(metric, title=f"{metric.title} at the end").heading, share=metric.share)
