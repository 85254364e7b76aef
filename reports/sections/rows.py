"""Figures with one row per strategy, its name at the left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reports.figures import svg
from reports.records.records import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 520
TOP, BOTTOM, RIGHT = 8, 44, 16
LETTER, LEADING = 7.2, 12.5  # pixels, about
LONGEST = 22  # letters per line


def draw(cells: Sequence[Cell], row: float, paint: Callable[[Axes], None], description: str) -> svg.Drawing:
    """Axes with a row for each of the cells, `row` pixels high: rows are 0, 1, … from the top."""
    letters = max(len(line) for cell in cells for line in svg.two_lines(cell.strategy, LONGEST).split("\n"))
    margins = (18 + LETTER * letters, RIGHT, TOP, BOTTOM)
    return svg.figure((WIDTH, TOP + BOTTOM + row * len(cells)), margins, paint, description)


def paint_names(axes: Axes, cells: Sequence[Cell]) -> None:
    """Names at the rows; faint vertical lines instead of horizontal ones."""
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.set_yticks([])
    axes.grid(visible=True, axis="x")
    for y, cell in enumerate(cells):
        lines = svg.two_lines(cell.strategy, LONGEST).split("\n")
        for at, line in enumerate(lines):
            axes.annotate(
                line,
                (0, y),
                (-10, LEADING * ((len(lines) - 1) / 2 - at)),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                horizontalalignment="right",
                verticalalignment="center_baseline",
            )
