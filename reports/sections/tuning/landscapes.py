"""Landscapes of tuning: objectives of a strategy's trials over its local and server rates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures import look, svg
from reports.records.studies import RecordedStudy, Trial
from reports.sections.tuning.objectives import Amounts, heading, vertical
from reports.sections.tuning.parameter_axes import axes_of, name_choices, place, rank, scale_axis, title
from reports.statistics.sensitivity import is_near

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE, MARGINS = (360, 300), (46, 14, 40, 44)


def landscape(study: RecordedStudy, index: int, amounts: Amounts) -> svg.Drawing:
    """Cells for a grid of both rates, points for samples of them, a curve where there is one rate."""
    across, up = axes_of(study)
    about = f"{study.measure.title} over {across.name}{f' and {up.name}' if up else ''}, {study.strategy}"
    if up is None:
        paint = partial(_paint_curve, study=study, index=index, amounts=amounts)
    elif across.choices and up.choices:
        paint = partial(_paint_cells, study=study, amounts=amounts)
    else:
        paint = partial(_paint_points, study=study, amounts=amounts)
    left = MARGINS[0] + (30 if up and not up.ordered else 0)
    return svg.figure(SIZE, (left, *MARGINS[1:]), paint, f"{about}, {study.scenario}")


def _paint_points(axes: Axes, study: RecordedStudy, amounts: Amounts) -> None:
    across, up = axes_of(study)
    assert up is not None
    places = {trial.id: (place(across, trial), place(up, trial)) for trial in study.judged}
    complete = [one for one in study.judged if one.complete and not one.diverged]
    complete.sort(key=lambda one: _sign(study) * one.worth)  # the best above the others
    near = [study.best is not None and is_near(one, study.best) for one in complete]
    if complete:
        across_at, up_at = zip(*(places[one.id] for one in complete), strict=True)
        axes.scatter(
            across_at,
            up_at,
            s=70,
            c=[amounts.colour(one.worth)[0] for one in complete],
            edgecolors=[svg.INK if one else svg.MUTED for one in near],
            linewidths=[1.4 if one else 0.5 for one in near],
            zorder=2,
        )
    for trial in study.judged:
        if trial.diverged:
            axes.plot(*places[trial.id], "x", color=svg.INK, markersize=6.5, markeredgewidth=1.6)
        elif not trial.complete:
            axes.plot(*places[trial.id], "v", markerfacecolor="none", markeredgecolor=svg.MUTED, markersize=5)
        _mark(axes, places[trial.id], trial, study)
    scale_axis(axes, across, "x")
    scale_axis(axes, up, "y")
    axes.grid(visible=True, axis="both")
    axes.set_xlabel(title(across))
    heading(axes, title(up), amounts, MARGINS[0])


def _paint_curve(axes: Axes, study: RecordedStudy, index: int, amounts: Amounts) -> None:
    across, measure = axes_of(study)[0], study.measure
    scale = vertical(measure, [amounts.scale.low, amounts.scale.high])
    complete = sorted((one for one in study.judged if one.complete), key=lambda one: place(across, one))
    if len(study.space) == 1 and across.ordered:
        values = scale.clip(np.array([one.worth for one in complete]))
        axes.plot([place(across, one) for one in complete], values, color=svg.series(index), linewidth=1.5)
    for trial in complete:
        at = place(across, trial), float(scale.clip(np.array([trial.worth]))[0])
        marker, size, width = ("x", 6.5, 1.6) if trial.diverged else (look.marker(index), 5, 0)
        colour = svg.INK if trial.diverged else svg.series(index)
        axes.plot(*at, marker, color=colour, markersize=size, markeredgewidth=width, clip_on=False)
        _mark(axes, at, trial, study)
    scale_axis(axes, across, "x")
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(measure.share))
    axes.set_xlabel(title(across))
    svg.heading(axes, measure.heading, scale, MARGINS[0])


def _paint_cells(axes: Axes, study: RecordedStudy, amounts: Amounts) -> None:
    """The best trial of each cell, where other parameters give it several."""
    from matplotlib.patches import Rectangle

    across, up = axes_of(study)
    assert up is not None
    cells: dict[tuple[int, int], Trial] = {}
    for trial in sorted(study.judged, key=lambda one: _sign(study) * one.worth):
        cells[rank(across, trial), rank(up, trial)] = trial
    for (x, y), trial in cells.items():
        if trial.diverged or not trial.complete:
            axes.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, fill=False, edgecolor=svg.RULE))
            marker = "x" if trial.diverged else "v"
            axes.plot(x, y, marker, color=svg.INK, markersize=6.5, markeredgewidth=1.6, fillstyle="none")
            continue
        colour, ink = amounts.colour(trial.worth)
        axes.add_patch(Rectangle((x - 0.485, y - 0.475), 0.97, 0.95, facecolor=colour, linewidth=0))
        weight = "bold" if trial is study.best else "normal"
        size: dict[str, Any] = {"fontsize": svg.SMALL} if len(across.choices) > 5 else {}
        text = study.measure.text(trial.worth)
        axes.text(x, y, text, color=ink, ha="center", va="center_baseline", weight=weight, **size)
        if trial is study.best:
            axes.add_patch(
                Rectangle((x - 0.47, y - 0.46), 0.94, 0.92, fill=False, edgecolor=svg.INK, linewidth=1.6)
            )
    name_choices(axes, across, "x")
    name_choices(axes, up, "y")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xlabel(title(across, cells=True))
    heading(axes, title(up, cells=True), amounts, MARGINS[0])


def _mark(axes: Axes, at: tuple[float, float], trial: Trial, study: RecordedStudy) -> None:
    """A square around the suite's and the paper's own values, a star on the best."""
    if trial.origin == "paper":
        axes.plot(*at, "s", markerfacecolor="none", markeredgecolor=svg.INK, markersize=14, clip_on=False)
    if trial is study.best:
        style: dict[str, Any] = {"markeredgecolor": svg.INK, "markeredgewidth": 1.2, "zorder": 4}
        axes.plot(*at, "*", color=svg.PAPER, markersize=15, clip_on=False, **style)


def _sign(study: RecordedStudy) -> int:
    return 1 if study.measure.higher else -1
