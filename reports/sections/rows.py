"""Figures with one row per strategy, its name at the left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from reports.figures import svg
from reports.records.records import Cell
from reports.records.steps import Array
from reports.sections.section import Card, Results, once, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[tuple[Cell, Array]]  # strategies, and what is drawn of each

WIDTH = svg.SIZE[0]
TOP, BOTTOM, RIGHT = 8, 44, 16
LETTER = 7.6  # pixels, about
LONGEST = 19  # letters per line
MANY = 10  # rows; more are lower, and names have one line
LOW = 0.76  # height of a row among many


def cards(
    results: Results,
    of: Callable[[Cell], Array],
    paint: Callable[[Rows, Axes], None],
    *,
    row: float,
    about: str,
    words: Callable[[Array], str],
) -> list[Card]:
    """A figure for all scenarios with the same numbers: a row for each strategy of which `of` finds some.

    `about` says what is drawn, and `words` what a strategy's numbers show, for those who do not see them.
    """
    found = [
        (scenario, [(cell, numbers) for cell in scenario.cells if len(numbers := of(cell))])
        for scenario, _ in results.scenarios
    ]
    drawn = []
    for scenarios, rows in once([one for one in found if one[1]], _content):
        title, where = together(scenarios)
        said = {cell.index: f"{cell.strategy}: {words(numbers)}" for cell, numbers in rows}
        description = f"{about}, {title}: {'; '.join(said.values())}"
        figure = draw([cell for cell, _ in rows], row, partial(paint, rows), description, said)
        places = [results.place(one) for one in scenarios]
        drawn.append(Card(title, figure, where, places=places, runs=sum(len(one.runs) for one in scenarios)))
    return drawn


def _content(rows: Rows) -> tuple[tuple[str, bytes], ...]:
    return tuple((cell.strategy, numbers.tobytes()) for cell, numbers in rows)


def draw(
    cells: Sequence[Cell],
    row: float,
    paint: Callable[[Axes], None],
    description: str,
    said: Mapping[int, str] | None = None,
) -> svg.Drawing:
    """Axes with a row for each of the cells, `row` pixels high: rows are 0, 1, … from the top."""
    letters = max(len(line) for cell in cells for line in _lines(cell, cells))
    margins = (18 + LETTER * letters, RIGHT, TOP, BOTTOM)
    height = row * len(cells) * (LOW if len(cells) > MANY else 1)
    return svg.figure((WIDTH, TOP + BOTTOM + height), margins, paint, description, said=said)


def _lines(cell: Cell, cells: Sequence[Cell]) -> list[str]:
    """A name on up to two lines; among many rows a long one loses its middle."""
    name = cell.strategy
    if len(cells) <= MANY or len(name) <= LONGEST:
        return svg.two_lines(name, LONGEST).split("\n")
    return [f"{name[: LONGEST - 9].rstrip()}…{name[-8:].lstrip()}"]


def paint_names(axes: Axes, cells: Sequence[Cell]) -> None:
    """Names at the rows; faint vertical lines instead of horizontal ones."""
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.set_yticks([])
    axes.grid(visible=True, axis="x")
    for y, cell in enumerate(cells):
        svg.row_name(axes, y, _lines(cell, cells))
