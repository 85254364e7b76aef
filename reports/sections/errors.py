"""Error decomposition of a strategy's updates, measured on the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fl_core.schema import ITERATION, Name
from reports import numbers
from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.records.cells import Array, Cell
from reports.records.records import RecordedScenario
from reports.sections.section import Results, Section, legend
from reports.tables import UNKNOWN, PageTable, TableEntry, download

SIZE, MARGINS = (270, 225), (48, 10, 30, 44)
POINTS = 60  # points per line; of more iterations, neighbours are averaged
DEEP = 1e6  # relative to the greatest value, the level of rounding

SYMBOLS = {
    Name.NOISE: "A",
    Name.BIAS: "B",
    Name.DELAY: "C",
    Name.GRADIENT: "‖∇F‖²",
}  # of diagnostics' columns
TERMS = {
    Name.NOISE: "A · sampling noise",
    Name.BIAS: "B · participation bias",
    Name.DELAY: "C · delay",
    Name.GRADIENT: "‖∇F‖²",
}
NOTE = (
    "Each update u of the server departs from the gradient of the present model by u − ∇F = A + B + C. "
    "A is the noise of mini-batches; B is bias, since some clients weigh more in the update than in the "
    "objective; C is delay, since gradients belong to older models. Shown are squared lengths as they were "
    "measured on these runs, with full-batch gradients of all clients, on a log scale"
)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorLine:
    """A term of a strategy over server iterations, mean over seeds."""

    cell: Cell
    iteration: Array
    value: Array
    mean: float  # over the whole run


Lines = Mapping[str, Sequence[ErrorLine]]  # by term


def line(cell: Cell, term: str) -> ErrorLine | None:
    """Return a term of a strategy, over the runs with a record of the term; None without any."""
    recorded = [run.files.diagnostics for run in cell.runs if term in run.files.diagnostics]
    tables = [pd.DataFrame({name: columns[name] for name in (ITERATION, term)}) for columns in recorded]
    rows = [rows for table in tables if len(rows := table.dropna())]
    if not rows:
        return None
    means = pd.concat(rows).groupby(ITERATION)[term].mean()
    parts = np.array_split(np.arange(len(means)), min(len(means), POINTS))
    iteration, value = (
        np.array([column[part].mean() for part in parts])
        for column in (means.index.to_numpy(float), means.to_numpy(float))
    )
    return ErrorLine(cell, iteration, value, float(np.mean([table[term].mean() for table in rows])))


def section(results: Results) -> Section | None:
    """Return the section with a row of panels per scenario: A, B, C and, if recorded, the gradient."""
    cards: list[dict[str, Any]] = []
    figures, measured = [], []
    for scenario in results.scenarios:
        curves = {term: [curve for cell in scenario.cells if (curve := line(cell, term))] for term in TERMS}
        terms = {term: lines for term, lines in curves.items() if lines}
        if not terms:
            continue
        measured.append((scenario, terms))
        errors = {term: lines for term, lines in terms.items() if term != Name.GRADIENT}
        scale = _scale([curve for lines in errors.values() for curve in lines])
        panels = [
            _draw(scenario, term, lines, scale if term in errors else _scale(lines))
            for term, lines in terms.items()
        ]
        figures += [
            (f"{scenario.label} {SYMBOLS[term]}", panel) for term, panel in zip(terms, panels, strict=True)
        ]
        strategies = {curve.cell.strategy for lines in terms.values() for curve in lines}
        cells = [cell for cell in scenario.cells if cell.strategy in strategies]
        card = {
            "scenario": scenario.label,
            "panels": panels,
            "legend": legend(cells),
            "caption": _caption(scenario, errors, scale),
            "table": _table(scenario, cells, terms),
            "place": scenario.place,
            "runs": sum(len(cell.runs) for cell in cells),
        }
        cards.append(card)
    if not cards:
        return None
    table = frame(measured)
    note = f"{NOTE}{results.mean_over_seeds}. Averages over the whole run are below each figure."
    tables = [PageTable("all", table), *(card["table"] for card in cards)]
    link = download("Averages", results.suite.name, "errors", table)
    title, shows = "Error decomposition", {"cards": cards}
    return Section("errors", title, "errors.html.j2", note, shows, figures, tables, [link])


def _caption(scenario: RecordedScenario, errors: Lines, scale: Scale) -> str:
    """Return the strategies missing from a panel, with the reason."""
    parts = []
    for term, lines in errors.items():
        if nil := [curve.cell.strategy for curve in lines if not (curve.value > scale.low).any()]:
            parts.append(f"{SYMBOLS[term]} vanishes for {', '.join(nil)}.")
    measured = {curve.cell.strategy for curve in errors.get(Name.NOISE, [])}
    if measured and (
        unmeasured := [cell.strategy for cell in scenario.cells if cell.strategy not in measured]
    ):
        parts.append(
            f"Not measured, since their steps are not linear in the updates: {', '.join(unmeasured)}."
        )
    return " ".join(parts)


def _table(scenario: RecordedScenario, cells: Sequence[Cell], terms: Lines) -> PageTable:
    """Return means over the whole run; the least of each column in bold."""
    columns = []
    for lines in terms.values():
        texts = {curve.cell.strategy: numbers.number(curve.mean, 3) for curve in lines}
        lowest = min(lines, key=lambda curve: curve.mean).cell.strategy
        columns.append(
            {
                curve.cell.strategy: TableEntry(
                    text := texts[curve.cell.strategy],
                    "",
                    curve.mean,
                    len(lines) > 1 and text == texts[lowest],
                )
                for curve in lines
            }
        )
    rows = [
        (TableEntry(cell.strategy), *(column.get(cell.strategy, UNKNOWN) for column in columns))
        for cell in cells
    ]
    headings = ["Strategy", *(TERMS[term] for term in terms)]
    return PageTable(scenario.label, frame([(scenario, terms)]), headings, rows)


def frame(measured: Sequence[tuple[RecordedScenario, Lines]]) -> pd.DataFrame:
    """Return a table with a row per strategy and term: the mean over the whole run and seeds."""
    return pd.DataFrame(
        {"scenario": scenario.label, "strategy": curve.cell.strategy, "term": term, "mean": curve.mean}
        for scenario, terms in measured
        for term, lines in terms.items()
        for curve in lines
    )


def _scale(lines: Sequence[ErrorLine]) -> Scale:
    """Return a vertical axis with room for all values above rounding."""
    values = np.concatenate([np.zeros(0), *(curve.value for curve in lines)])
    largest = float(values[np.isfinite(values)].max(initial=0.0))
    if not largest:
        return Scale(0.1, 1.0, "log")
    return Scale(float(values[values > largest / DEEP].min()) / 1.5, largest * 1.5, "log")


def _draw(scenario: RecordedScenario, term: str, lines: Sequence[ErrorLine], scale: Scale) -> svg.Drawing:
    about = f"{TERMS[term]} over server iterations by strategy, {scenario.label}"
    paint = partial(_paint, term=term, lines=lines, scale=scale)
    return svg.Drawing(paint, about, SIZE, MARGINS, legend([curve.cell for curve in lines]))


def _paint(axes: svg.Axes, term: str, lines: Sequence[ErrorLine], scale: Scale) -> None:
    for curve in lines:
        index = curve.cell.index
        value = np.where(curve.value > scale.low, curve.value, np.nan)
        dash = svg.line_style(index)
        axes.plot(curve.iteration, value, linestyle=dash, linewidth=look.width(index), **svg.style(index))
        if look.quiet(index):
            continue
        spacing = max(1, len(value) // 4)
        svg.markers(axes, index, curve.iteration, value, np.arange(index % spacing, len(value), spacing))
    svg.clock_axis(axes, "Server iterations", [curve.iteration for curve in lines], room=1.02)
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(share=False))
    svg.heading(axes, TERMS[term], Scale(0, 1), MARGINS[0])
