"""Landscapes of tuning: objectives of a strategy's trials over its local and server rates."""

from functools import partial
from math import log10
from typing import Any, Literal

import numpy as np

from benchmarks.tracking.run_result import TrialResult
from reports.figures import look, svg
from reports.records.space import Parameter, is_number
from reports.records.studies import RecordedStudy, is_near
from reports.sections.trial_objectives import Amounts, heading, vertical

SIZE, MARGINS = (360, 300), (46, 14, 40, 44)
LOCAL, SERVER = ("local_lr", "c"), "server_lr"
TITLES = {"local_lr": "Local rate", "c": "Factor c of the local rate", "server_lr": "Server rate"}
ROOM = 0.05  # of an axis, beyond each end of a range
RATIO = 10  # ratio from which on a list of positive numbers is shown on a log scale
LETTERS = 16  # letters of a name at an axis


def landscape(study: RecordedStudy, index: int, amounts: Amounts) -> svg.Drawing:
    """Return cells for a grid of both rates, points for samples of them, a curve where there is one rate.

    Args:
        study: The trials.
        index: The strategy's colour, where there is a curve.
        amounts: The colours of objectives.
    """
    across, up = axes_of(study)
    about = f"{study.measure.title} over {across.name}{f' and {up.name}' if up else ''}, {study.strategy}"
    if up is None:
        paint = partial(_paint_curve, study=study, across=across, index=index, amounts=amounts)
    else:
        draw = _paint_cells if across.choices and up.choices else _paint_points
        paint = partial(draw, study=study, across=across, up=up, amounts=amounts)
    left = MARGINS[0] + (30 if up and not up.ordered else 0)
    return svg.Drawing(paint, f"{about}, {study.scenario}", SIZE, (left, *MARGINS[1:]))


def axes_of(study: RecordedStudy) -> tuple[Parameter, Parameter | None]:
    """Return the horizontal axis, the local rate if searched, and the vertical, the server rate or none."""
    by_name = {parameter.name: parameter for parameter in study.space}
    across = by_name[next((name for name in LOCAL if name in by_name), next(iter(by_name)))]
    up = by_name.get(SERVER)
    return across, None if up is across else up


def _paint_points(
    axes: svg.Axes, study: RecordedStudy, across: Parameter, up: Parameter, amounts: Amounts
) -> None:
    places = {trial.id: (place(across, trial), place(up, trial)) for trial in study.judged}
    complete = [trial for trial in _best_last(study) if trial.complete and not trial.diverged]
    near = [study.best is not None and is_near(trial, study.best) for trial in complete]
    if complete:
        x, y = zip(*(places[trial.id] for trial in complete), strict=True)
        axes.scatter(
            x,
            y,
            s=70,
            c=[amounts.colour(trial.worth)[0] for trial in complete],
            edgecolors=[svg.INK if ringed else svg.MUTED for ringed in near],
            linewidths=[1.4 if ringed else 0.5 for ringed in near],
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


def _paint_curve(
    axes: svg.Axes, study: RecordedStudy, across: Parameter, index: int, amounts: Amounts
) -> None:
    measure = study.measure
    scale = vertical(measure, [amounts.scale.low, amounts.scale.high])
    complete = sorted((trial for trial in study.judged if trial.complete), key=partial(place, across))
    x = [place(across, trial) for trial in complete]
    y = scale.clip(np.array([trial.worth for trial in complete]))
    if len(study.space) == 1 and across.ordered:
        axes.plot(x, y, color=svg.series(index), linewidth=1.5)
    for trial, *point in zip(complete, x, y, strict=True):
        marker, size, width = ("x", 6.5, 1.6) if trial.diverged else (look.marker(index), 5, 0)
        colour = svg.INK if trial.diverged else svg.series(index)
        axes.plot(*point, marker, color=colour, markersize=size, markeredgewidth=width, clip_on=False)
        _mark(axes, (point[0], point[1]), trial, study)
    scale_axis(axes, across, "x")
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(measure.share))
    axes.set_xlabel(title(across))
    svg.heading(axes, measure.heading, scale, MARGINS[0])


def _paint_cells(
    axes: svg.Axes, study: RecordedStudy, across: Parameter, up: Parameter, amounts: Amounts
) -> None:
    """Draw the best trial of each cell, where other parameters give it several."""
    cells = {(rank(across, trial), rank(up, trial)): trial for trial in _best_last(study)}
    for (x, y), trial in cells.items():
        if trial.diverged or not trial.complete:
            svg.tile(axes, x, y, 0.02, fill=False, edgecolor=svg.RULE)
            marker = "x" if trial.diverged else "v"
            axes.plot(x, y, marker, color=svg.INK, markersize=6.5, markeredgewidth=1.6, fillstyle="none")
            continue
        colour, ink = amounts.colour(trial.worth)
        svg.tile(axes, x, y, facecolor=colour, linewidth=0)
        weight = "bold" if trial is study.best else "normal"
        size: dict[str, Any] = {"fontsize": svg.SMALL} if len(across.choices) > 5 else {}
        text = study.measure.text(trial.worth)
        axes.text(x, y, text, color=ink, ha="center", va="center_baseline", weight=weight, **size)
        if trial is study.best:
            svg.tile(axes, x, y, 0.03, fill=False, edgecolor=svg.INK, linewidth=1.6)
    name_choices(axes, across, "x")
    name_choices(axes, up, "y")
    svg.only_tiles(axes)
    axes.set_xlabel(TITLES.get(across.name, across.name))
    heading(axes, TITLES.get(up.name, up.name), amounts, MARGINS[0])


def _mark(axes: svg.Axes, at: tuple[float, float], trial: TrialResult, study: RecordedStudy) -> None:
    """Draw a square around the suite's and the paper's own values, a star on the best."""
    if trial.origin == "paper":
        axes.plot(*at, "s", markerfacecolor="none", markeredgecolor=svg.INK, markersize=14, clip_on=False)
    if trial is study.best:
        style: dict[str, Any] = {"markeredgecolor": svg.INK, "markeredgewidth": 1.2, "zorder": 4}
        axes.plot(*at, "*", color=svg.PAPER, markersize=15, clip_on=False, **style)


def _best_last(study: RecordedStudy) -> list[TrialResult]:
    """Return the judged trials, the best above the others."""
    sign = 1 if study.measure.higher else -1
    return sorted(study.judged, key=lambda trial: sign * trial.worth)


# -- axes of searched parameters: ranges and numbers to scale, names side by side --


def place(parameter: Parameter, trial: TrialResult) -> float:
    """Return where a trial lies on the axis of a parameter; names lie at their ranks."""
    return float(trial.parameters[parameter.name]) if parameter.ordered else rank(parameter, trial)


def rank(parameter: Parameter, trial: TrialResult) -> int:
    """Return the index of a trial's choice."""
    return parameter.choices.index(trial.parameters[parameter.name])


def title(parameter: Parameter) -> str:
    """Return the title of an axis with its scale."""
    return TITLES.get(parameter.name, parameter.name) + (" · log scale" if _in_logs(parameter) else "")


def scale_axis(axes: svg.Axes, parameter: Parameter, which: Literal["x", "y"]) -> None:
    """Show the whole space, with a small margin."""
    from matplotlib.ticker import LogLocator, NullLocator

    if not parameter.ordered:
        name_choices(axes, parameter, which)
        return
    low, high = _ends(parameter)
    axis = axes.xaxis if which == "x" else axes.yaxis
    if _in_logs(parameter):
        room = (high / low) ** ROOM
        axes.set(**{f"{which}scale": "log", f"{which}lim": (low / room, high * room)})
        few = log10(high / low) < 2.5
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        axis.set_minor_locator(NullLocator())
    else:
        room = ROOM * (high - low) or abs(low) or 1.0
        axes.set(**{f"{which}lim": (low - room, high + room)})
        axes.locator_params(axis=which, nbins=6)
    axis.set_major_formatter(svg.tick_text(share=False))


def name_choices(axes: svg.Axes, parameter: Parameter, which: Literal["x", "y"]) -> None:
    """Write values at their ranks."""
    number = svg.tick_text(share=False)
    texts = [number(float(value), 0) if is_number(value) else str(value) for value in parameter.choices]
    (axes.xaxis if which == "x" else axes.yaxis).set_ticks(
        range(len(texts)), [svg.two_lines(text, LETTERS) for text in texts]
    )
    axes.set(**{f"{which}lim": (-0.5, len(texts) - 0.5)})


def _ends(parameter: Parameter) -> tuple[float, float]:
    if parameter.choices:
        return float(parameter.choices[0]), float(parameter.choices[-1])
    return parameter.low, parameter.high


def _in_logs(parameter: Parameter) -> bool:
    if not parameter.ordered or not parameter.choices:
        return parameter.log
    low, high = _ends(parameter)
    return low > 0 and high / low >= RATIO
