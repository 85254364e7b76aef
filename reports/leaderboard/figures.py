"""Figures of the leaderboard: a heat map of all populations, and the leaders' learning curves.

`page` and `findings` beside this module save them next to their pages.

Fixed: docs/leaderboard-*.svg, byte for byte, until they are written anew. Free: the look.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from reports import numbers
from reports.figures import styles, svg
from reports.leaderboard.board_tables import numbers as values_of
from reports.leaderboard.scores import REFERENCE, PopulationScores, board_order
from reports.records.seed_summaries import common_grid, value_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CURVES = 5  # leaders whose learning curves are drawn beside the reference


def heat_map(scores: Mapping[str, PopulationScores], names: Mapping[str, str]) -> svg.Drawing:
    """Return a heat map with a tile for each entry in each population, darker for faster entries.

    Args:
        scores: Population → scores.
        names: Population → name for readers.
    """
    entries = board_order(scores)
    values = np.array(
        [
            [
                population.sooner(name) if name in population.entries else np.nan
                for population in scores.values()
            ]
            for name in entries
        ]
    )

    def paint(axes: Axes) -> None:
        from matplotlib.patches import Rectangle

        levels = np.clip(np.nan_to_num(np.log2(np.maximum(values, 0.25))) + 2, 0, 5)
        for row in range(len(entries)):
            for column in range(len(scores)):
                fill, ink = svg.amount(int(levels[row, column]))
                axes.add_patch(Rectangle((column - 0.485, row - 0.475), 0.97, 0.95, facecolor=fill))
                value = values[row, column]
                text = "" if isnan(value) else "never" if value == 0 else numbers.tick(float(f"{value:.2g}"))
                axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=9)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.set_xticks(range(len(scores)), [names[name] for name in scores])
        axes.set_yticks(range(len(entries)), entries)
        axes.set_xlim(-0.5, len(scores) - 0.5)
        axes.set_ylim(len(entries) - 0.5, -0.5)
        axes.xaxis.tick_top()

    description = f"How many times as fast as {REFERENCE} each of {len(entries)} entries meets the target"
    return svg.Drawing(paint, description, (560, 60 + 22 * len(entries)), (190, 12, 30, 12))


def curves(population: PopulationScores, scale: str, also: str = REFERENCE) -> svg.Drawing:
    """Return the median learning curve of the first entries and of the reference in a scenario.

    The median is over studies and seeds. A line across is the target.

    Args:
        population: The scores of a population.
        scale: The scenario.
        also: Another entry to draw.
    """
    leaders = [name for name in population.order() if name != REFERENCE][:MAX_CURVES]
    drawn = dict.fromkeys([*leaders, also, REFERENCE])
    colours = {name: styles.OWN if name == REFERENCE else at for at, name in enumerate(drawn)}

    def paint(axes: Axes) -> None:
        for name, index in colours.items():
            runs = population.final_runs(name)
            runs = runs[runs["scale"] == scale]
            times = [values_of(cell) for cell in runs["times"]]
            grid = common_grid(times)
            values = [
                value_at(grid, time, values_of(cell))
                for time, cell in zip(times, runs["values"], strict=True)
            ]
            median = np.median(np.nan_to_num(values), axis=0)  # diverged runs count as 0
            axes.plot(grid, median, linestyle=svg.line_style(index), linewidth=1.8, **svg.style(index))
            svg.markers(axes, index, grid, median, range(4 + index % 6, len(grid), 24))
        goal = population.goals[scale]
        axes.axhline(goal.target, color=svg.MUTED, linewidth=0.8)
        axes.annotate("target", (1, goal.target), xycoords=("axes fraction", "data"), ha="right", va="bottom")
        axes.set_ylim(goal.target - 0.25, min(1.0, goal.target + 0.05))
        axes.yaxis.set_major_formatter(svg.tick_text(share=True))
        axes.set_xlabel(f"Virtual time, {scale}")
        axes.set_ylabel(f"{goal.metric} (%)")

    description = f"Median learning curves of {', '.join(colours)} in {scale}"
    legend = [(index, name) for name, index in colours.items()]
    return svg.Drawing(paint, description, (520, 340), (56, 12, 12, 44), legend)
