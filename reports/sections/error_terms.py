"""Section on the error decomposition of a strategy's updates, for runs with `diagnostics: {errors: …}`.

`reports/page.py` calls `section`. The terms are measured in `fl_core/diagnostics/error_terms.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fl_core.recorded_names import ITERATION, Name
from reports import numbers
from reports.figures import styles, svg
from reports.figures.axis_scale import Scale
from reports.records.records import RecordedScenario
from reports.records.seed_summaries import Array, Cell
from reports.sections.section import Results, Section, legend
from reports.tables import UNKNOWN, PageTable, TableEntry, download

SIZE, MARGINS = (270, 225), (48, 10, 30, 44)
POINTS = 60  # points per line; of more iterations, neighbours are averaged
ROUNDING_RATIO = 1e6  # smaller values, relative to the largest, are rounding errors

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


Lines = Mapping[str, Mapping[str, tuple[Array, Array]]]  # term → strategy → server iterations and means


def error_terms(cells: Sequence[Cell]) -> pd.DataFrame:
    """Return a table with a row for each measured term of a server iteration of a run."""
    parts = [
        pd.DataFrame({"strategy": cell.strategy, "seed": run.seed, **run.files.diagnostics})
        for cell in cells
        for run in cell.runs
        if run.files.diagnostics
    ]
    labels = ["strategy", "seed", ITERATION]
    table = pd.concat(parts) if parts else pd.DataFrame(columns=labels)
    return table.melt(labels, [term for term in TERMS if term in table], "term").dropna()


def run_means(terms: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a row per term and strategy: the mean over the whole run, then over seeds."""
    by_run = terms.groupby(["term", "strategy", "seed"], sort=False)["value"].mean()
    return by_run.groupby(["term", "strategy"], sort=False).mean().rename("mean").reset_index()


def lines(terms: pd.DataFrame) -> Lines:
    """Return the means over seeds by server iteration; of long runs, neighbours are averaged."""
    of_terms: dict[str, dict[str, tuple[Array, Array]]] = {}
    for (term, strategy), rows in terms.groupby(["term", "strategy"], sort=False):
        means = rows.groupby(ITERATION)["value"].mean()
        parts = np.array_split(np.arange(len(means)), min(len(means), POINTS))
        columns = means.index.to_numpy(float), means.to_numpy(float)
        iteration, value = (np.array([column[part].mean() for part in parts]) for column in columns)
        of_terms.setdefault(str(term), {})[str(strategy)] = iteration, value
    return of_terms


def section(results: Results) -> Section | None:
    """Return the section with a row of panels per scenario: A, B, C and, if recorded, the gradient."""
    cards: list[dict[str, Any]] = []
    figures, tables = [], []
    for scenario in results.scenarios:
        measured = error_terms(scenario.cells)
        if measured.empty:
            continue
        means, terms = run_means(measured), lines(measured)
        means.insert(0, "scenario", scenario.label)
        errors = {term: curves for term, curves in terms.items() if term != Name.GRADIENT}
        scale = _scale([value for curves in errors.values() for _, value in curves.values()])
        panels = {
            term: _draw(
                scenario,
                term,
                curves,
                scale if term in errors else _scale([value for _, value in curves.values()]),
            )
            for term, curves in terms.items()
        }
        figures += [(f"{scenario.label} {SYMBOLS[term]}", panel) for term, panel in panels.items()]
        cells = [cell for cell in scenario.cells if cell.strategy in set(means["strategy"])]
        tables.append(_table(scenario.label, cells, means))
        card = {
            "scenario": scenario.label,
            "panels": list(panels.values()),
            "legend": legend(cells),
            "caption": _caption(scenario, errors, scale),
            "table": tables[-1],
            "place": scenario.place,
            "runs": sum(len(cell.runs) for cell in cells),
        }
        cards.append(card)
    if not cards:
        return None
    table = pd.concat([of_scenario.numbers for of_scenario in tables])
    note = f"{NOTE}{results.mean_over_seeds}. Averages over the whole run are below each figure."
    link = download("Averages", results.suite.name, "errors", table)
    title, shows = "Error decomposition", {"cards": cards}
    return Section(
        "errors", title, "errors.html.j2", note, shows, figures, [PageTable("all", table), *tables], [link]
    )


def _caption(scenario: RecordedScenario, errors: Lines, scale: Scale) -> str:
    """Return the strategies missing from a panel, with the reason."""
    parts = []
    for term, curves in errors.items():
        if nil := [strategy for strategy, (_, value) in curves.items() if not (value > scale.low).any()]:
            parts.append(f"{SYMBOLS[term]} vanishes for {', '.join(nil)}.")
    measured = errors.get(Name.NOISE, {})
    unmeasured = [cell.strategy for cell in scenario.cells if cell.strategy not in measured]
    if measured and unmeasured:
        parts.append(
            f"Not measured, since their steps are not linear in the updates: {', '.join(unmeasured)}."
        )
    return " ".join(parts)


def _table(label: str, cells: Sequence[Cell], means: pd.DataFrame) -> PageTable:
    """Return the table of means over the whole run; the smallest of each column in bold."""
    columns = {}
    for term, rows in means.groupby("term", sort=False):
        values = dict(zip(rows["strategy"], rows["mean"], strict=True))
        minimum = numbers.number(min(values.values()), 3) if len(values) > 1 else None
        columns[str(term)] = {
            strategy: TableEntry(text, "", mean, text == minimum)
            for strategy, mean in values.items()
            for text in [numbers.number(mean, 3)]
        }
    entries = [
        (TableEntry(cell.strategy), *(column.get(cell.strategy, UNKNOWN) for column in columns.values()))
        for cell in cells
    ]
    table = means[["scenario", "strategy", "term", "mean"]]
    return PageTable(label, table, ["Strategy", *(TERMS[term] for term in columns)], entries)


def _scale(curves: Sequence[Array]) -> Scale:
    """Return a vertical axis with room for all values above rounding."""
    values = np.concatenate([np.zeros(0), *curves])
    largest = float(values[np.isfinite(values)].max(initial=0.0))
    if not largest:
        return Scale(0.1, 1.0, "log")
    return Scale(float(values[values > largest / ROUNDING_RATIO].min()) / 1.5, largest * 1.5, "log")


def _draw(
    scenario: RecordedScenario, term: str, curves: Mapping[str, tuple[Array, Array]], scale: Scale
) -> svg.Drawing:
    """Return the figure of a term over server iterations, with a line per strategy."""
    about = f"{TERMS[term]} over server iterations by strategy, {scenario.label}"
    cells = [cell for cell in scenario.cells if cell.strategy in curves]

    def paint(axes: svg.Axes) -> None:
        for cell in cells:
            index, (iteration, values) = cell.index, curves[cell.strategy]
            value = np.where(values > scale.low, values, np.nan)
            dash = svg.line_style(index)
            axes.plot(iteration, value, linestyle=dash, linewidth=styles.width(index), **svg.style(index))
            if styles.quiet(index):
                continue
            spacing = max(1, len(value) // 4)
            svg.markers(axes, index, iteration, value, np.arange(index % spacing, len(value), spacing))
        svg.clock_axis(axes, "Server iterations", [curves[cell.strategy][0] for cell in cells], room=1.02)
        scale.apply(axes)
        axes.yaxis.set_major_formatter(svg.tick_text(share=False))
        svg.heading(axes, TERMS[term], MARGINS[0])

    return svg.Drawing(paint, about, SIZE, MARGINS, legend(cells))
