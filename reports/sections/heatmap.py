"""Heatmaps of every strategy: heterogeneity of the data against delay."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from math import floor, isnan, nan

import pandas as pd

from fl_core.schema import JOINT
from fl_core.text import natural
from reports.figures import look, svg
from reports.numbers import Measure
from reports.records.records import RecordedScenario
from reports.sections.section import Results, Section
from reports.tables import PageTable, TableEntry, download

SIDE, LETTER, LONGEST, LEADING = 34, 7.6, 22, 13.5  # pixels, pixels, letters, pixels
LEVELS = len(look.LIGHT_AMOUNTS)

Grid = tuple[Sequence[RecordedScenario], pd.DataFrame]  # scenarios, and a row per strategy and place


def grids(scenarios: Iterable[RecordedScenario]) -> list[Grid]:
    """Return the full grids of several partitions and delays, by problem and metric.

    `mean` is the mean final value over seeds; NaN if a seed diverged or no run exists.
    """
    by_problem: dict[tuple[str, Measure], list[RecordedScenario]] = {}
    for scenario in scenarios:
        by_problem.setdefault((scenario.problem, scenario.columns[0]), []).append(scenario)
    full: list[Grid] = []
    for (problem, metric), group in by_problem.items():
        places = {_place(scenario): scenario for scenario in group}
        partitions, delays = (sorted(set(names), key=natural) for names in zip(*places, strict=True))
        complete = len(places) == len(group) == len(partitions) * len(delays)
        if not complete or len(partitions) < 2 or len(delays) < 2 or not all(partitions):
            continue
        means = {
            (cell.strategy, *place): nan if cell.diverged else cell.final[metric.name].mean
            for place, scenario in places.items()
            for cell in scenario.cells
        }
        rows = [
            (problem, metric.name, strategy, partition, delay, means.get((strategy, partition, delay), nan))
            for strategy in dict.fromkeys(strategy for strategy, _, _ in means)
            for partition, delay in product(partitions, delays)
        ]
        names = ["problem", "metric", "strategy", "partition", "delay", "mean"]
        full.append((group, pd.DataFrame(rows, columns=names)))
    return full


def _place(scenario: RecordedScenario) -> tuple[str, str]:
    """Return the partition and the rest of the label: durations, availability, arrangement."""
    run = scenario.runs[0]
    data, rest = scenario.conditions[:2], scenario.conditions[2:]
    if run.partition and data == (scenario.problem, run.partition) and rest:
        return run.partition, JOINT.join(rest)
    return run.partition, run.timing


def section(results: Results) -> Section | None:
    """Return the section with a block per grid and a heatmap per strategy; None without a grid."""
    full = grids(results.scenarios)
    if not full:
        return None
    blocks, figures, tables = [], [], []
    for scenarios, table in full:
        problem, measure = scenarios[0].problem, scenarios[0].columns[0]
        strategies = list(table["strategy"].unique())
        drawings = {name: _draw(table, measure, name) for name in strategies if name in results.foremost}
        blocks.append(
            {
                "title": problem if len(full) > 1 else "",
                "cards": [(results.index[name], name, drawing) for name, drawing in drawings.items()],
                "runs": sum(len(scenario.runs) for scenario in scenarios),
            }
        )
        figures += [(f"{problem} {name}", drawing) for name, drawing in drawings.items()]
        tables += [_table(table, measure, name) for name in strategies]
    numbers = pd.concat([table for _, table in full])
    metrics = {scenarios[0].columns[0] for scenarios, _ in full}
    quantity = f"Final {full[0][0][0].columns[0].in_text}" if len(metrics) == 1 else "Final value"
    unit = " (%)" if all(metric.share for metric in metrics) else ""
    note = (
        f"Number and colour: {quantity[0].lower()}{quantity[1:]}{unit}{results.mean_over_seeds}. Rows: "
        "delay. Columns: how the data are split. All strategies share a scale: a stronger colour is more. "
        f"In bold: the best strategy of that place.{results.only_foremost}"
    )
    if numbers["mean"].isna().any():
        note += " Empty: a seed diverged, or no run has ended."
    link = download("Heatmaps", results.suite.name, "heatmaps", numbers)
    title, shows = "Heterogeneity and delay", {"blocks": blocks}
    return Section(
        "grid", title, "heat.html.j2", note, shows, figures, [PageTable("all", numbers), *tables], [link]
    )


def _matrix(table: pd.DataFrame, column: str = "mean") -> pd.DataFrame:
    """Return the values of a strategy with a row per delay and a column per partition."""
    delays, partitions = table["delay"].unique(), table["partition"].unique()
    return table.pivot(index="delay", columns="partition", values=column).loc[delays, partitions]


def _table(table: pd.DataFrame, measure: Measure, strategy: str) -> PageTable:
    rows = table[table["strategy"] == strategy]
    texts = _matrix(rows).map(partial(_text, measure=measure))
    lines = [(TableEntry(str(delay)), *map(TableEntry, texts.loc[delay])) for delay in texts.index]
    name = f"{table['problem'][0]} {strategy}"
    return PageTable(name, rows, [strategy, *texts.columns], lines)


def _text(value: float, measure: Measure) -> str:
    """Return the value as text; empty without a value."""
    return "" if isnan(value) else measure.text(value)


def level(value: float, low: float, high: float) -> int:
    """Return the index of a value's colour."""
    return min(LEVELS - 1, floor(LEVELS * (value - low) / (high - low))) if high > low else LEVELS // 2


def best(table: pd.DataFrame, measure: Measure) -> pd.Series[bool]:
    """Return whether no strategy has a better value at the place of a row, as printed."""
    at_place = table.groupby(["partition", "delay"])["mean"]
    top = at_place.transform("max" if measure.higher else "min")
    same = table["mean"].map(measure.text) == top.map(measure.text)
    compared = table["mean"].notna() & (at_place.transform("count") > 1)
    return same & compared & (measure.higher is not None)


def _draw(table: pd.DataFrame, measure: Measure, strategy: str) -> svg.Drawing:
    rows = table.assign(best=best(table, measure))[table["strategy"] == strategy]
    means = _matrix(rows)
    width, headings = _columns(means)
    margin = 12 + LETTER * max(len(line) for delay in means.index for line in _row_name(delay))
    bottom = 16 + LEADING * max(name.count("\n") + 1 for name in headings)
    size = (margin + width * len(means.columns), 2 + SIDE * len(means) + bottom)
    about = f"{measure.title} by delay and partition, {strategy}: {_extremes(rows, measure)}"
    scale = (table["mean"].min(), table["mean"].max())
    bold = _matrix(rows, "best")
    paint = partial(_paint, means=means, bold=bold, measure=measure, scale=scale)
    return svg.Drawing(paint, about, size, (margin, 2, 2, bottom))


def _columns(means: pd.DataFrame) -> tuple[float, list[str]]:
    """Return the width of a column in pixels, with room for the longest word, and the broken names."""
    longest = max(len(word) for name in means.columns for word in name.split())
    width = max(56.0, 180.0 / len(means.columns), LETTER * (longest + 1))
    letters = int(width / LETTER)
    return width, ["\n".join(textwrap.wrap(name, letters, break_long_words=False)) for name in means.columns]


def _extremes(rows: pd.DataFrame, measure: Measure) -> str:
    """Return a strategy's worst and best place in words."""
    if rows["mean"].isna().all():
        return "no value"
    low, high = (
        f"{measure.with_unit(row['mean'])} with {row['partition']} under {row['delay']}"
        for row in (rows.iloc[rows["mean"].argmin()], rows.iloc[rows["mean"].argmax()])
    )
    return f"from {low} to {high}"


def _row_name(delay: str) -> list[str]:
    return svg.two_lines(delay, LONGEST).split("\n")


def _paint(
    axes: svg.Axes,
    means: pd.DataFrame,
    bold: pd.DataFrame,
    measure: Measure,
    scale: tuple[float, float],
) -> None:
    for (row, delay), (column, partition) in product(enumerate(means.index), enumerate(means.columns)):
        x, y, value = column + 0.5, row + 0.5, float(means.loc[delay, partition])
        if isnan(value):
            svg.tile(axes, x, y, 0.02, fill=False, edgecolor=svg.RULE)
            continue
        colour, ink = svg.amount(level(value, *scale))
        svg.tile(axes, x, y, facecolor=colour, linewidth=0)
        weight = "bold" if bold.loc[delay, partition] else "normal"
        axes.text(x, y, measure.text(value), color=ink, ha="center", va="center_baseline", weight=weight)
    axes.set_xlim(0, len(means.columns))
    axes.set_ylim(len(means), 0)
    svg.only_tiles(axes)
    axes.set_xticks([column + 0.5 for column in range(len(means.columns))], _columns(means)[1])
    axes.set_yticks([])
    for row, delay in enumerate(means.index):
        svg.row_name(axes, row + 0.5, _row_name(delay))
