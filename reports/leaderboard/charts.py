"""Figures of the leaderboard: speed-ups with both intervals, time against bytes, budget curves, profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.colours import slots
from reports import numbers
from reports.figures import look, svg
from reports.figures.names import name_points
from reports.leaderboard.costs import Array
from reports.leaderboard.profiles import LATEST, profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, ROW, LETTER = 520, 24, 6.4  # pixels; a figure is read on a phone, too
LONGEST = 34  # letters of a name on a line
LEADERS = 8  # strategies whose curves are drawn; more cannot be told apart
FACTORS = "Sooner than tuned {} (times)"


def colours(order: Sequence[str], reference: str) -> dict[str, int]:
    """Return strategy → colour, in all figures: leaders' own, ink for the reference; others are grey.

    Args:
        order: All strategies, the first first.
        reference: The strategy whose times are the unit.
    """
    return slots(order[:LEADERS]) | {reference: look.OWN}


def speedup_figure(table: pd.DataFrame, reference: str, shown: Mapping[str, int]) -> svg.Drawing:
    """Return a line for each strategy: speed-up, interval over seeds (thick) and over scenarios (thin).

    A hollow dot is shown to be behind the first.
    """
    names = [svg.two_lines(name, LONGEST) for name in table.index]
    left = 12 + LETTER * max(len(line) for name in names for line in name.splitlines())

    def paint(axes: Axes) -> None:
        for place, (name, row) in enumerate(zip(table.index, table.to_dict("records"), strict=True)):
            colour = svg.series(shown.get(name, look.QUIET))
            for over, width in (("scenarios", 1.0), ("seeds", 3.4)):
                ends = [row[f"{over}_low"], row[f"{over}_high"]]
                axes.plot(ends, [place, place], color=colour, linewidth=width, solid_capstyle="butt")
            inside = svg.PAPER if row["behind"] else colour
            axes.plot(row["speedup"], place, "o", color=colour, markersize=6, markerfacecolor=inside)
        axes.axvline(1, color=svg.MUTED, linewidth=0.8)
        axes.set_xscale("log")
        _plain(axes, "x")
        axes.set_yticks(range(len(table)), names, linespacing=0.95)
        axes.set_ylim(len(table) - 0.4, -0.6)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(FACTORS.format(reference))

    said = f"Speed-ups of {len(table)} strategies over {reference}; {table.index[0]} has the greatest"
    return svg.Drawing(paint, said, (WIDTH, 60 + ROW * len(table)), (left, 12, 8, 44))


def cost_figure(table: pd.DataFrame, reference: str, shown: Mapping[str, int]) -> svg.Drawing:
    """Return speed-up against bytes, both as multiples of the reference's; leaders are named."""
    known = table.dropna(subset=["bytes", "speedup"])
    names = {at: str(name) for at, name in enumerate(known.index) if name in shown}

    def paint(axes: Axes) -> None:
        for name, row in zip(known.index, known.to_dict("records"), strict=True):
            colour = svg.series(shown.get(name, look.QUIET))
            axes.plot(row["bytes"], row["speedup"], "o", color=colour, markersize=6, markeredgewidth=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plain(axes, "x")
        _plain(axes, "y")
        axes.set_xlabel(f"Bytes uploaded to the target, as a multiple of {reference}’s")
        axes.set_ylabel(FACTORS.format(reference))
        name_points(axes, known["bytes"].to_numpy(), known["speedup"].to_numpy(), names)

    said = f"Speed-up against bytes of {len(known)} strategies"
    return svg.Drawing(paint, said, (WIDTH, 380), (56, 16, 12, 44))


def budget_figure(
    strategies: Sequence[str], curves: Array, reference: str, shown: Mapping[str, int]
) -> svg.Drawing:
    """Return the expected speed-up of the best of k random points, of the leaders and the reference."""

    def paint(axes: Axes) -> None:
        points = np.arange(1, curves.shape[1] + 1)
        for name, index in shown.items():
            axes.plot(points, curves[strategies.index(name)], markevery=8, **_line(index))
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        _plain(axes, "x")
        _plain(axes, "y")
        axes.set_xlabel("Points tried")
        axes.set_ylabel(FACTORS.format(reference))

    said = "Expected speed-up of the best of k random points of the design"
    return svg.Drawing(paint, said, (WIDTH, 360), (56, 12, 12, 44), _key(shown))


def profile_figure(ratios: pd.DataFrame, shown: Mapping[str, int]) -> svg.Drawing:
    """Return the share of scenarios with the target met, by factor of the best time.

    Args:
        ratios: Times to target as multiples of the fastest strategy's, [scenario, strategy].
        shown: The strategies that are drawn, with their colours.
    """

    def paint(axes: Axes) -> None:
        for strategy, index in shown.items():
            factors, shares = profile(ratios[strategy])
            x, y = [*factors, LATEST], [*shares, shares[-1]]
            axes.step(x, y, where="post", **_line(index))
        axes.set_xlim(1, LATEST)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("Time to target, as a multiple of the fastest strategy’s")
        axes.set_ylabel("Scenarios whose target is met (%)")
        axes.yaxis.set_major_formatter(svg.tick_text(share=True))

    said = f"Performance profiles of {', '.join(shown)}"
    return svg.Drawing(paint, said, (WIDTH, 360), (56, 12, 12, 44), _key(shown))


def _line(index: int) -> dict[str, Any]:
    return {
        "color": svg.series(index),
        "linestyle": svg.line_style(index),
        "linewidth": 1.8,
        "marker": look.marker(index),
        "markersize": 5,
        "markeredgewidth": 0,
    }


def _key(shown: Mapping[str, int]) -> list[tuple[int, str]]:
    return [(index, name) for name, index in shown.items()]


def _plain(axes: Axes, which: str) -> None:
    """Write the ticks of a logarithmic axis as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: numbers.tick(value)))
    axis.set_minor_formatter(NullFormatter())
