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

SIDE, LETTER, LONGEST, LEADING = 34, 7.6, 22, 13.5  # pixels, pixels, letters, pixels
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
        f"{what}{unit}{results.mean_over_seeds}: delay, down, against how the data are split, across. "
        "All strategies share one scale of colours; darker is more on white, lighter is more on black. "
        "In bold: the best strategy of that place."
    )
    if any(isnan(grid.value(name, at)) for grid in found for name in grid.means for at in grid.places):
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
            "partition": partition,
            "delay": delay,
            "mean": grid.value(strategy, (partition, delay)),
        }
        for strategy in grid.means
        for partition, delay in grid.places
    )


def _table(grid: Grid, cell: Cell) -> Table:
    numbers = frame(grid)
    lines = [
        (
            RankingEntry(delay),
            *(RankingEntry(_text(grid, grid.value(cell.strategy, (one, delay)))) for one in grid.partitions),
        )
        for delay in grid.delays
    ]
    of = numbers[numbers.strategy == cell.strategy]
    return Table(f"{grid.problem} {cell.strategy}", of, [cell.strategy, *grid.partitions], lines)


def _text(grid: Grid, value: float) -> str:
    return "" if isnan(value) else grid.measure.text(value)


def level(value: float, low: float, high: float) -> int:
    """The index of a value's colour."""
    return min(LEVELS - 1, floor(LEVELS * (value - low) / (high - low))) if high > low else LEVELS // 2


def _draw(grid: Grid, strategy: str) -> svg.Drawing:
    names = [line for one in grid.delays for line in svg.two_lines(one, LONGEST).split("\n")]
    left = 12 + LETTER * max(map(len, names))
    width = left + _column(grid) * len(grid.partitions)
    bottom = 16 + LEADING * max(len(_broken(one, grid).split("\n")) for one in grid.partitions)
    size = (width, 2 + SIDE * len(grid.delays) + bottom)
    about = f"{grid.measure.title} by delay and partition, {strategy}: {_extremes(grid, strategy)}"
    return svg.figure(size, (left, 2, 2, bottom), partial(_paint, grid=grid, strategy=strategy), about)


def _extremes(grid: Grid, strategy: str) -> str:
    """Its best and its worst place in words."""
    values = {at: value for at in grid.places if not isnan(value := grid.value(strategy, at))}
    if not values:
        return "no value"
    unit = " %" if grid.measure.share else ""
    low, high = (
        f"{_text(grid, values[at])}{unit} with {at[0]} under {at[1]}"
        for at in (min(values, key=values.__getitem__), max(values, key=values.__getitem__))
    )
    return f"from {low} to {high}"


def _column(grid: Grid) -> float:
    """Width of a column: its longest word has room."""
    longest = max(len(word) for one in grid.partitions for word in one.split())
    return max(56.0, 180.0 / len(grid.partitions), LETTER * (longest + 1))


def _broken(label: str, grid: Grid) -> str:
    """A column label, broken between words into as many lines as needed."""
    import textwrap

    return "\n".join(textwrap.wrap(label, int(_column(grid) / LETTER), break_long_words=False))


def _paint(axes: Axes, grid: Grid, strategy: str) -> None:
    from matplotlib.patches import Rectangle

    low, high = grid.range
    for y, delay in enumerate(grid.delays):
        for x, partition in enumerate(grid.partitions):
            value = grid.value(strategy, (partition, delay))
            if isnan(value):
                axes.add_patch(Rectangle((x + 0.02, y + 0.03), 0.96, 0.94, fill=False, edgecolor=svg.RULE))
                continue
            colour, ink = svg.amount(level(value, low, high))
            axes.add_patch(Rectangle((x + 0.015, y + 0.025), 0.97, 0.95, facecolor=colour, linewidth=0))
            text = _text(grid, value)
            weight = "bold" if _leads(grid, strategy, (partition, delay)) else "normal"
            axes.text(x + 0.5, y + 0.5, text, color=ink, ha="center", va="center_baseline", weight=weight)
    axes.set_xlim(0, len(grid.partitions))
    axes.set_ylim(len(grid.delays), 0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks(
        [x + 0.5 for x in range(len(grid.partitions))], [_broken(one, grid) for one in grid.partitions]
    )
    axes.set_yticks([])
    for y, delay in enumerate(grid.delays):
        svg.row_name(axes, y + 0.5, svg.two_lines(delay, LONGEST).split("\n"))


def _leads(grid: Grid, strategy: str, at: tuple[str, str]) -> bool:
    """Whether no strategy has a better value there, as printed."""
    values = [value for one in grid.means if not isnan(value := grid.value(one, at))]
    if grid.measure.higher is None or len(values) < 2:
        return False
    top = max(values) if grid.measure.higher else min(values)
    return _text(grid, grid.value(strategy, at)) == _text(grid, top)
