"""Participation: which clients the updates came from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.records.records import Cell, RecordedRun, RecordedScenario
from reports.records.steps import Array
from reports.sections.section import Card, Results, Section, figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE, MARGINS = (520, 280), (46, 14, 30, 44)
MOST = 100  # points per line; of more clients, neighbours in speed are averaged
TALL = 8  # ratio from which on shares are shown on a log scale


def shares(cell: Cell) -> Array:
    """Share of all updates that came from the k-th fastest client [n], mean over seeds."""
    found = [_of_run(run) for run in cell.runs if run.files.participation.sum()]
    same = [one for one in found if len(one) == len(found[0])]
    return np.mean(same, axis=0) if same else np.zeros(0)


def _of_run(run: RecordedRun) -> Array:
    counts, table = run.files.participation, run.files.clients
    slowness = np.zeros(len(counts))
    slowness[table["client"].to_numpy(int)] = table["mean_time"].to_numpy(float)
    return counts[np.argsort(slowness, kind="stable")] / counts.sum()


def section(results: Results) -> Section | None:
    """One card per scenario."""
    found = [
        (scenario, [(cell, its) for cell in scenario.cells if len(its := shares(cell))])
        for scenario, _ in results.scenarios
    ]
    cards = [_card(scenario, lines) for scenario, lines in found if lines]
    if not cards:
        return None
    note = f"Share of all updates that came from each client, the fastest first{results.mean_over_seeds}."
    if any((its == 0).any() for _, lines in found for _, its in lines):
        note += " At the lower edge: clients without any update."
    return Section("participation", "Participation", "cards.html.j2", note, {"cards": cards}, figures(cards))


def _card(scenario: RecordedScenario, lines: Sequence[tuple[Cell, Array]]) -> Card:
    description = f"Share of updates by client and strategy, {scenario.label}"
    legend = tuple((cell.index, cell.strategy) for cell, _ in lines)
    figure = svg.figure(SIZE, MARGINS, partial(_paint, lines=lines), description, legend)
    return Card(scenario.label, figure, legend=legend, cells=scenario.cells)


def _paint(axes: Axes, lines: Sequence[tuple[Cell, Array]]) -> None:
    n = max(len(found) for _, found in lines)
    everything = np.concatenate([found for _, found in lines])
    least, most = float(everything[everything > 0].min()), float(everything.max())
    scale = Scale(least / 1.6, most * 1.3, "log") if most / least > TALL else Scale(0.0, most * 1.1)
    for cell, found in lines:
        _paint_line(axes, cell, scale.clip(found))
    axes.axhline(1 / n, color=svg.MUTED, linewidth=0.8)
    svg.write(axes, "equal parts", (1, 1 / n), side="right", above=True)
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(share=True))
    axes.set_xlim(0.5, n + 0.5)
    axes.locator_params(axis="x", integer=True, nbins=8)
    axes.set_xlabel("Clients, from the fastest to the slowest")
    svg.heading(axes, "Share of updates (%)", scale, MARGINS[0])


def _paint_line(axes: Axes, cell: Cell, share: Array) -> None:
    groups = np.array_split(np.arange(len(share)), min(len(share), MOST))
    x = np.array([group.mean() + 1 for group in groups])
    y = np.array([share[group].mean() for group in groups])
    style: dict[str, Any] = {"color": svg.series(cell.index), "gid": svg.belongs(cell.index)}
    axes.plot(x, y, linestyle=svg.line_style(cell.index), linewidth=1.5, **style)
    every = max(1, len(x) // 6)
    at = np.arange(cell.index % every, len(x), every)
    axes.plot(x[at], y[at], look.marker(cell.index), markersize=5, markeredgewidth=0, **style)
