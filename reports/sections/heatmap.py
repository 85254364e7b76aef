"""Heatmaps of every strategy: heterogeneity of the data against delay."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import floor, isnan, nan
from typing import Any

import pandas as pd

from fl_core.schema import JOINT
from fl_core.text import natural
from reports.figures import look, svg
from reports.numbers import Measure
from reports.records.cells import Cell
from reports.records.records import RecordedScenario
from reports.sections.section import Results, Section
from reports.tables import PageTable, TableEntry, download

SIDE, LETTER, LONGEST, LEADING = 34, 7.6, 22, 13.5  # pixels, pixels, letters, pixels
LEVELS = len(look.LIGHT_AMOUNTS)

Place = tuple[str, str]  # partition and delay


@dataclass(frozen=True, slots=True, eq=False)
class Heatmaps:
    """Scenarios of a problem in a grid of heterogeneity and delay."""

    problem: str
    measure: Measure
    partitions: tuple[str, ...]
    delays: tuple[str, ...]
    means: Mapping[str, Mapping[Place, Cell]]  # by strategy and place

    @property
    def cells(self) -> list[Cell]:
        """A cell of each strategy."""
        return [next(iter(cells.values())) for cells in self.means.values()]

    @property
    def places(self) -> list[Place]:
        """All combinations of a partition and a delay."""
        return list(product(self.partitions, self.delays))

    def value(self, strategy: str, place: Place) -> float:
        """Return the mean final value over seeds; NaN if a seed diverged or no run exists."""
        cell = self.means[strategy].get(place)
        return nan if cell is None or cell.diverged else cell.final[self.measure.name].mean

    def text(self, strategy: str, place: Place) -> str:
        """Return the value as text; empty without a value."""
        value = self.value(strategy, place)
        return "" if isnan(value) else self.measure.text(value)

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest value of all strategies, the ends of a common scale of colours."""
        values = [self.value(strategy, place) for strategy in self.means for place in self.places]
        finite = [value for value in values if not isnan(value)] or [0.0]
        return min(finite), max(finite)

    @property
    def column(self) -> float:
        """Width of a column in pixels, with room for the longest word."""
        longest = max(len(word) for name in self.partitions for word in name.split())
        return max(56.0, 180.0 / len(self.partitions), LETTER * (longest + 1))

    @property
    def headings(self) -> list[str]:
        """The names of the columns, broken between words into as many lines as needed."""
        width = int(self.column / LETTER)
        return ["\n".join(textwrap.wrap(name, width, break_long_words=False)) for name in self.partitions]

    def extremes(self, strategy: str) -> str:
        """Return the strategy's worst and best place in words."""
        values = {place: value for place in self.places if not isnan(value := self.value(strategy, place))}
        if not values:
            return "no value"
        low, high = (
            f"{self.measure.with_unit(values[place])} with {place[0]} under {place[1]}"
            for place in (min(values, key=values.__getitem__), max(values, key=values.__getitem__))
        )
        return f"from {low} to {high}"

    def leads(self, strategy: str, place: Place) -> bool:
        """Return whether no strategy has a better value at a place, as printed."""
        values = [value for other in self.means if not isnan(value := self.value(other, place))]
        if self.measure.higher is None or len(values) < 2:
            return False
        top = max(values) if self.measure.higher else min(values)
        return self.text(strategy, place) == self.measure.text(top)


def heatmaps(scenarios: Iterable[RecordedScenario]) -> list[Heatmaps]:
    """Return the full grids of several partitions and delays, by problem and metric."""
    by_problem: dict[tuple[str, Measure], list[RecordedScenario]] = {}
    for scenario in scenarios:
        by_problem.setdefault((scenario.problem, scenario.columns[0]), []).append(scenario)
    grids = []
    for (problem, metric), group in by_problem.items():
        places = {_place(scenario): scenario.cells for scenario in group}
        partitions, delays = (tuple(sorted(set(names), key=natural)) for names in zip(*places, strict=True))
        complete = len(places) == len(group) == len(partitions) * len(delays)
        if not complete or len(partitions) < 2 or len(delays) < 2 or not all(partitions):
            continue
        means: dict[str, dict[Place, Cell]] = {}
        for place, cells in places.items():
            for cell in cells:
                means.setdefault(cell.strategy, {})[place] = cell
        grids.append(Heatmaps(problem, metric, partitions, delays, means))
    return grids


def _place(scenario: RecordedScenario) -> Place:
    """Return the partition and the rest of the label: durations, availability, arrangement."""
    run = scenario.runs[0]
    data, rest = scenario.conditions[:2], scenario.conditions[2:]
    if run.partition and data == (scenario.problem, run.partition) and rest:
        return run.partition, JOINT.join(rest)
    return run.partition, run.timing


def section(results: Results) -> Section | None:
    """Return the section with a block per grid and a heatmap per strategy; None without a grid."""
    grids = heatmaps(results.scenarios)
    if not grids:
        return None
    blocks: list[dict[str, Any]] = [
        {
            "title": grid.problem if len(grids) > 1 else "",
            "cards": [
                (cell, _draw(grid, cell.strategy)) for cell in grid.cells if cell.strategy in results.foremost
            ],
            "runs": sum(len(cell.runs) for cells in grid.means.values() for cell in cells.values()),
        }
        for grid in grids
    ]
    numbers = pd.concat([frame(grid) for grid in grids])
    metrics = {grid.measure for grid in grids}
    quantity = f"Final {grids[0].measure.in_text}" if len(metrics) == 1 else "Final value"
    unit = " (%)" if all(metric.share for metric in metrics) else ""
    note = (
        f"Number and colour: {quantity[0].lower()}{quantity[1:]}{unit}{results.mean_over_seeds}. Rows: "
        "delay. Columns: how the data are split. All strategies share a scale: a stronger colour is more. "
        f"In bold: the best strategy of that place.{results.only_foremost}"
    )
    if any(isnan(grid.value(name, place)) for grid in grids for name in grid.means for place in grid.places):
        note += " Empty: a seed diverged, or no run has ended."
    figures = [
        (f"{grid.problem} {cell.strategy}", drawing)
        for grid, block in zip(grids, blocks, strict=True)
        for cell, drawing in block["cards"]
    ]
    tables = [
        PageTable("all", numbers),
        *(_table(grid, cell.strategy) for grid in grids for cell in grid.cells),
    ]
    link = download("Heatmaps", results.suite.name, "heatmaps", numbers)
    title, shows = "Heterogeneity and delay", {"blocks": blocks}
    return Section("grid", title, "heat.html.j2", note, shows, figures, tables, [link])


def frame(grid: Heatmaps) -> pd.DataFrame:
    """Return a table with a row per strategy and place."""
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


def _table(grid: Heatmaps, strategy: str) -> PageTable:
    lines = [
        (TableEntry(delay), *(TableEntry(grid.text(strategy, (name, delay))) for name in grid.partitions))
        for delay in grid.delays
    ]
    numbers = frame(grid)
    rows = numbers[numbers.strategy == strategy]
    return PageTable(f"{grid.problem} {strategy}", rows, [strategy, *grid.partitions], lines)


def level(value: float, low: float, high: float) -> int:
    """Return the index of a value's colour."""
    return min(LEVELS - 1, floor(LEVELS * (value - low) / (high - low))) if high > low else LEVELS // 2


def _draw(grid: Heatmaps, strategy: str) -> svg.Drawing:
    margin = 12 + LETTER * max(len(line) for delay in grid.delays for line in _row_name(delay))
    bottom = 16 + LEADING * max(name.count("\n") + 1 for name in grid.headings)
    size = (margin + grid.column * len(grid.partitions), 2 + SIDE * len(grid.delays) + bottom)
    about = f"{grid.measure.title} by delay and partition, {strategy}: {grid.extremes(strategy)}"
    return svg.Drawing(partial(_paint, grid=grid, strategy=strategy), about, size, (margin, 2, 2, bottom))


def _row_name(delay: str) -> list[str]:
    return svg.two_lines(delay, LONGEST).split("\n")


def _paint(axes: svg.Axes, grid: Heatmaps, strategy: str) -> None:
    low, high = grid.range
    for delay, partition in product(grid.delays, grid.partitions):
        place = partition, delay
        x, y = grid.partitions.index(partition) + 0.5, grid.delays.index(delay) + 0.5
        value = grid.value(strategy, place)
        if isnan(value):
            svg.tile(axes, x, y, 0.02, fill=False, edgecolor=svg.RULE)
            continue
        colour, ink = svg.amount(level(value, low, high))
        svg.tile(axes, x, y, facecolor=colour, linewidth=0)
        weight = "bold" if grid.leads(strategy, place) else "normal"
        text = grid.text(strategy, place)
        axes.text(x, y, text, color=ink, ha="center", va="center_baseline", weight=weight)
    axes.set_xlim(0, len(grid.partitions))
    axes.set_ylim(len(grid.delays), 0)
    svg.only_tiles(axes)
    axes.set_xticks([x + 0.5 for x in range(len(grid.partitions))], grid.headings)
    axes.set_yticks([])
    for y, delay in enumerate(grid.delays):
        svg.row_name(axes, y + 0.5, _row_name(delay))
