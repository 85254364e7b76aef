"""Heatmaps: heterogeneity of the data against delay, one per strategy."""

from __future__ import annotations

from functools import partial
from math import floor, isnan
from typing import TYPE_CHECKING, Any

import pandas as pd

from reports.downloads import download
from reports.figures import look, svg
from reports.figures.grids import Grid, grids
from reports.records.records import Cell
from reports.sections.section import Results, Section, Table
from reports.statistics.ranking import RankingEntry

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE, LETTER, LONGEST, LEADING = 34, 7.6, 13, 13.5  # pixels, pixels, letters, pixels
LEVELS = len(look.LIGHT_AMOUNTS)


def section(results: Results) -> Section | None:
    """One block per grid, in it one heatmap per strategy."""
    found = grids(results.scenarios)
    if not found:
        return None
    blocks: list[dict[str, Any]] = [
        {
            "title": grid.problem if len(found) > 1 else "",
            "cards": [(cell, _draw(grid, cell.strategy)) for cell in grid.cells],
            "runs": sum(len(cell.runs) for cell in grid.cells),
        }
        for grid in found
    ]
    numbers = pd.concat([frame(grid) for grid in found])
    shows = {
        "blocks": blocks,
        "download": download(results.suite.name, "heatmaps", numbers),
    }
    names = {grid.measure for grid in found}
    what = f"Final {names.pop().in_text}" if len(names) == 1 else "Final value"
    unit = " (%)" if all(grid.measure.share for grid in found) else ""
    note = (
        f"{what}{unit}{results.mean_over_seeds}: how the data are split, down, against delay, across. "
        "All strategies share one scale of colours; darker is more on white, lighter is more on black. "
        "In bold: the best strategy of that place."
    )
    if any(
        isnan(grid.value(s, (d, a)))
        for grid in found
        for s in grid.means
        for d in grid.down
        for a in grid.across
    ):
        note += " Empty: a seed diverged, or no run has ended."
    figures = [
        (f"{grid.problem} {cell.strategy}", drawing)
        for grid, block in zip(found, blocks, strict=True)
        for cell, drawing in block["cards"]
    ]
    tables = [_table(grid, cell) for grid in found for cell in grid.cells]
    return Section(
        "grid",
        "Heterogeneity and delay",
        "heat.html.j2",
        note,
        shows,
        figures,
        [Table("all", numbers), *tables],
    )


def frame(grid: Grid) -> pd.DataFrame:
    """One row per strategy and place."""
    return pd.DataFrame(
        {
            "problem": grid.problem,
            "metric": grid.measure.name,
            "strategy": strategy,
            "partition": down,
            "delay": across,
            "mean": grid.value(strategy, (down, across)),
        }
        for strategy in grid.means
        for down in grid.down
        for across in grid.across
    )


def _table(grid: Grid, cell: Cell) -> Table:
    numbers = frame(grid)
    lines = [
        (
            RankingEntry(down),
            *(RankingEntry(_text(grid, grid.value(cell.strategy, (down, across)))) for across in grid.across),
        )
        for down in grid.down
    ]
    of = numbers[numbers.strategy == cell.strategy]
    return Table(f"{grid.problem} {cell.strategy}", of, [cell.strategy, *grid.across], lines)


def _text(grid: Grid, value: float) -> str:
    return "" if isnan(value) else grid.measure.text(value)


def level(value: float, low: float, high: float) -> int:
    """The index of a value's colour."""
    return min(LEVELS - 1, floor(LEVELS * (value - low) / (high - low))) if high > low else LEVELS // 2


def _draw(grid: Grid, strategy: str) -> svg.Drawing:
    names = [line for one in grid.down for line in svg.two_lines(one, LONGEST).split("\n")]
    left = 12 + LETTER * max(map(len, names))
    width = left + _room(grid)
    bottom = 16 + LEADING * max(len(_broken(one, grid).split("\n")) for one in grid.across)
    size = (width, 2 + SIDE * len(grid.down) + bottom)
    about = f"{grid.measure.title} by partition and delay, {strategy}: {_extremes(grid, strategy)}"
    return svg.figure(size, (left, 2, 2, bottom), partial(_paint, grid=grid, strategy=strategy), about)


def _extremes(grid: Grid, strategy: str) -> str:
    """Its best and its worst place in words."""
    values = {
        (down, across): value
        for down in grid.down
        for across in grid.across
        if not isnan(value := grid.value(strategy, (down, across)))
    }
    if not values:
        return "no value"
    unit = " %" if grid.measure.share else ""
    low, high = (
        f"{_text(grid, values[at])}{unit} with {at[0]} under {at[1]}"
        for at in (min(values, key=values.__getitem__), max(values, key=values.__getitem__))
    )
    return f"from {low} to {high}"


def _room(grid: Grid) -> float:
    """Width of all cells."""
    return max(260.0, 50.0 * len(grid.across))


def _broken(label: str, grid: Grid) -> str:
    """A column label, broken into as many lines as needed."""
    import textwrap

    room = _room(grid) / len(grid.across) / LETTER
    return "\n".join(textwrap.wrap(label, max(6, int(room))))


def _paint(axes: Axes, grid: Grid, strategy: str) -> None:
    from matplotlib.patches import Rectangle

    low, high = grid.range
    for y, down in enumerate(grid.down):
        for x, across in enumerate(grid.across):
            value = grid.value(strategy, (down, across))
            if isnan(value):
                axes.add_patch(Rectangle((x + 0.02, y + 0.03), 0.96, 0.94, fill=False, edgecolor=svg.RULE))
                continue
            colour, ink = svg.amount(level(value, low, high))
            axes.add_patch(Rectangle((x + 0.015, y + 0.025), 0.97, 0.95, facecolor=colour, linewidth=0))
            text = _text(grid, value)
            weight = "bold" if _leads(grid, strategy, (down, across)) else "normal"
            axes.text(x + 0.5, y + 0.5, text, color=ink, ha="center", va="center_baseline", weight=weight)
    axes.set_xlim(0, len(grid.across))
    axes.set_ylim(len(grid.down), 0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks([x + 0.5 for x in range(len(grid.across))], [_broken(one, grid) for one in grid.across])
    axes.set_yticks(
        [y + 0.5 for y in range(len(grid.down))], [svg.two_lines(one, LONGEST) for one in grid.down]
    )


def _leads(grid: Grid, strategy: str, at: tuple[str, str]) -> bool:
    """Whether no strategy has a better value there, as printed."""
    values = [value for one in grid.means if not isnan(value := grid.value(one, at))]
    if grid.measure.higher is None or len(values) < 2:
        return False
    top = max(values) if grid.measure.higher else min(values)
    return _text(grid, grid.value(strategy, at)) == _text(grid, top)
