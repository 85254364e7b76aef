"""Axes of searched parameters: ranges and numbers to scale, names side by side."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any, Literal

from reports.figures import svg
from reports.records.space import Parameter
from reports.records.studies import RecordedStudy, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOCAL, SERVER = ("local_lr", "c"), "server_lr"
TITLES = {"local_lr": "Local rate", "c": "Factor c of the local rate", "server_lr": "Server rate"}
ROOM = 0.05  # of an axis, beyond each end of a range
RATIO = 10  # ratio from which on a list of positive numbers is shown on a log scale
LETTERS = 16  # letters of a name at an axis

Which = Literal["x", "y"]


def axes_of(study: RecordedStudy) -> tuple[Parameter, Parameter | None]:
    """The horizontal axis, the local rate if it was searched, and the vertical: the server rate, or none."""
    by_name = {one.name: one for one in study.space}
    names = [*(name for name in LOCAL if name in by_name), *by_name]
    across = by_name[names[0]]
    up = by_name.get(SERVER)
    return across, None if up is across else up


def place(parameter: Parameter, trial: Trial) -> float:
    """Where a trial lies on the axis of a parameter; names lie at their ranks."""
    value = trial.parameters[parameter.name]
    return float(value) if parameter.ordered else rank(parameter, trial)


def rank(parameter: Parameter, trial: Trial) -> int:
    """The index of a trial's choice."""
    return parameter.choices.index(trial.parameters[parameter.name])


def title(parameter: Parameter, *, cells: bool = False) -> str:
    """The title of an axis; without a scale for cells."""
    text = TITLES.get(parameter.name, parameter.name)
    return f"{text} · log scale" if not cells and _in_logs(parameter) else text


def scale_axis(axes: Axes, parameter: Parameter, which: Which) -> None:
    """The whole space, with a small margin."""
    from matplotlib.ticker import LogLocator, NullLocator

    if not parameter.ordered:
        name_choices(axes, parameter, which)
        return
    low, high = _ends(parameter)
    axis = axes.xaxis if which == "x" else axes.yaxis
    set_limits: Any = axes.set_xlim if which == "x" else axes.set_ylim
    if _in_logs(parameter):
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        room = (high / low) ** ROOM
        set_limits(low / room, high * room)
        few = log10(high / low) < 2.5
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        axis.set_minor_locator(NullLocator())
    else:
        room = ROOM * (high - low) or abs(low) or 1.0
        set_limits(low - room, high + room)
        axes.locator_params(axis=which, nbins=6)
    axis.set_major_formatter(svg.tick_text(share=False))


def name_choices(axes: Axes, parameter: Parameter, which: Which) -> None:
    """Values at their ranks."""
    names = [svg.two_lines(_text(one), LETTERS) for one in parameter.choices]
    set_ticks = axes.set_xticks if which == "x" else axes.set_yticks
    set_limits: Any = axes.set_xlim if which == "x" else axes.set_ylim
    set_ticks(range(len(names)), names)
    set_limits(-0.5, len(names) - 0.5)


def _ends(parameter: Parameter) -> tuple[float, float]:
    if parameter.choices:
        return float(parameter.choices[0]), float(parameter.choices[-1])
    return parameter.low, parameter.high


def _in_logs(parameter: Parameter) -> bool:
    if not parameter.ordered or not parameter.choices:
        return parameter.log
    low, high = _ends(parameter)
    return low > 0 and high / low >= RATIO


def _text(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return svg.tick_text(share=False)(float(value), 0) if number else str(value)  # type: ignore[arg-type]
