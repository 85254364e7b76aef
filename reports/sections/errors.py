"""Why a strategy wins: the decomposition of its updates' error, measured on the run itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fl_core.schema import ITERATION, Name
from reports import numbers
from reports.downloads import download
from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.records.records import Cell, RecordedScenario
from reports.records.steps import Array
from reports.sections.section import Results, Section, Table
from reports.statistics.ranking import RankingEntry

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE, MARGINS = (270, 225), (48, 10, 30, 44)
POINTS = 60  # points per line; of more iterations, neighbours are averaged
WIDE = 12  # ratio between the ends of two strategies from which on iterations are shown on a log scale
DEEP = 1e6  # relative to the greatest value, the level of rounding

TERMS = {  # columns of diagnostics
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
    """One term of one strategy over server iterations, mean over seeds."""

    cell: Cell
    iteration: Array
    value: Array
    mean: float  # over the whole run


def line(cell: Cell, term: str) -> ErrorLine | None:
    """Of the runs that recorded it; None if none did."""
    tables = [run.files.diagnostics for run in cell.runs if term in run.files.diagnostics]
    rows = [table[[ITERATION, term]].dropna() for table in tables]
    if not any(len(table) for table in rows):
        return None
    means = pd.concat(rows).groupby(ITERATION)[term].mean()
    parts = np.array_split(np.arange(len(means)), min(len(means), POINTS))
    iteration, value = means.index.to_numpy(float), means.to_numpy(float)
    return ErrorLine(
        cell,
        np.array([iteration[part].mean() for part in parts]),
        np.array([value[part].mean() for part in parts]),
        float(np.mean([table[term].mean() for table in rows if len(table)])),
    )


def lines(scenario: RecordedScenario, term: str) -> list[ErrorLine]:
    """Of every strategy that recorded the term."""
    return [found for cell in scenario.cells if (found := line(cell, term))]


def section(results: Results) -> Section | None:
    """One row of panels per scenario: A, B, C and, where it was recorded, the gradient."""
    cards: list[dict[str, Any]] = []
    figures, found = [], []
    for scenario, _ in results.scenarios:
        terms = {term: of for term in TERMS if (of := lines(scenario, term))}
        if not terms:
            continue
        found.append((scenario, terms))
        errors = {term: of for term, of in terms.items() if term != Name.GRADIENT}
        scale = _scale([one for of in errors.values() for one in of])
        panels = []
        for term, of in terms.items():
            own = _scale(of) if term == Name.GRADIENT else scale
            drawing = _draw(scenario, term, of, own)
            panels.append(drawing)
            figures.append((f"{scenario.label} {TERMS[term].partition(' ')[0]}", drawing))
        cells = [
            cell for cell in scenario.cells if any(one.cell is cell for of in terms.values() for one in of)
        ]
        cards.append(
            {
                "scenario": scenario.label,
                "panels": panels,
                "legend": [(cell.index, cell.strategy) for cell in cells],
                "caption": _caption(scenario, errors, scale),
                "table": _table(scenario, terms),
                "place": results.place(scenario),
                "runs": sum(len(cell.runs) for cell in cells),
            }
        )
    if not cards:
        return None
    table = frame(found)
    shows = {"cards": cards, "download": download(results.suite.name, "errors", table)}
    note = f"{NOTE}{results.mean_over_seeds}. Averages over the whole run are below each figure."
    tables = [Table("all", table), *(card["table"] for card in cards)]
    return Section("errors", "Error decomposition", "errors.html.j2", note, shows, figures, tables)


def _caption(scenario: RecordedScenario, errors: dict[str, list[ErrorLine]], scale: Scale) -> str:
    """Which strategies are missing from a panel, and why."""
    parts = []
    for term, of in errors.items():
        if nil := [one.cell.strategy for one in of if not (one.value > scale.low).any()]:
            parts.append(f"{TERMS[term].partition(' ·')[0]} vanishes for {', '.join(nil)}.")
    measured = {one.cell.strategy for one in errors.get(Name.NOISE, [])}
    if measured and (left := [cell.strategy for cell in scenario.cells if cell.strategy not in measured]):
        parts.append(f"Not measured, since their steps are not linear in the updates: {', '.join(left)}.")
    return " ".join(parts)


def _table(scenario: RecordedScenario, terms: dict[str, list[ErrorLine]]) -> Table:
    """Means over the whole run; the least of each column in bold."""
    columns = {term: {one.cell.strategy: one.mean for one in of} for term, of in terms.items()}
    least = {term: min(of.values()) for term, of in columns.items()}

    def entry(term: str, strategy: str) -> RankingEntry:
        value = columns[term].get(strategy, float("nan"))
        best = (
            not isnan(value)
            and len(columns[term]) > 1
            and numbers.number(value, 3) == numbers.number(least[term], 3)
        )
        return RankingEntry(numbers.number(value, 3), "", value, best)

    measured = [cell for cell in scenario.cells if any(cell.strategy in of for of in columns.values())]
    rows = [
        (RankingEntry(cell.strategy), *(entry(term, cell.strategy) for term in columns)) for cell in measured
    ]
    return Table(
        scenario.label,
        frame([(scenario, terms)]),
        ["Strategy", *(TERMS[term] for term in columns)],
        rows,
    )


def frame(found: Sequence[tuple[RecordedScenario, dict[str, list[ErrorLine]]]]) -> pd.DataFrame:
    """One row per strategy and term: the mean over the whole run and seeds."""
    return pd.DataFrame(
        {"scenario": scenario.label, "strategy": one.cell.strategy, "term": term, "mean": one.mean}
        for scenario, terms in found
        for term, of in terms.items()
        for one in of
    )


def _scale(of: Sequence[ErrorLine]) -> Scale:
    """Room for everything that is more than rounding."""
    values = np.concatenate([np.zeros(0), *(one.value for one in of)])
    most = float(values[np.isfinite(values)].max(initial=0.0))
    if not most:
        return Scale(0.1, 1.0, "log")
    return Scale(float(values[values > most / DEEP].min()) / 1.5, most * 1.5, "log")


def _draw(scenario: RecordedScenario, term: str, of: Sequence[ErrorLine], scale: Scale) -> svg.Drawing:
    about = f"{TERMS[term]} over server iterations by strategy, {scenario.label}"
    legend = [(one.cell.index, one.cell.strategy) for one in of]
    return svg.figure(SIZE, MARGINS, partial(_paint, term=term, of=of, scale=scale), about, legend)


def _paint(axes: Axes, term: str, of: Sequence[ErrorLine], scale: Scale) -> None:
    for one in of:
        _paint_line(axes, one, scale)
    ends = [float(one.iteration[-1]) for one in of]
    log = min(ends) > 0 and max(ends) / min(ends) >= WIDE
    if log:
        first = min(float(one.iteration[one.iteration > 0][0]) for one in of)
        axes.set_xscale("log", nonpositive="mask")
        axes.set_xlim(first / 1.15, max(ends) * 1.15)
    else:
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlim(0, max(*ends, 1) * 1.02)
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(share=False))
    axes.xaxis.set_major_formatter(svg.tick_text(share=False))
    axes.xaxis.set_minor_formatter(svg.no_text)
    axes.set_xlabel("Server iterations" + (" · log scale" if log else ""))
    svg.heading(axes, TERMS[term], Scale(0, 1), MARGINS[0])


def _paint_line(axes: Axes, one: ErrorLine, scale: Scale) -> None:
    index = one.cell.index
    style: dict[str, Any] = {"color": svg.series(index), "gid": svg.belongs(index)}
    value = np.where(one.value > scale.low, one.value, np.nan)
    axes.plot(one.iteration, value, linestyle=svg.line_style(index), linewidth=1.5, **style)
    every = max(1, len(value) // 4)
    at = np.arange(index % every, len(value), every)
    axes.plot(one.iteration[at], value[at], look.marker(index), markersize=5, markeredgewidth=0, **style)
