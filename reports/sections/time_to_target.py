"""Section on the time to target of each seed, with a row per strategy.

`reports/page.py` calls `section`. The rule for runs that never meet the target is in
`fl_core/time_to_target.py`.
"""

from collections.abc import Sequence
from math import isfinite

import numpy as np
import pandas as pd

from fl_core.recorded_names import TO_TARGET, Clock
from reports import numbers
from reports.figures import svg
from reports.records.records import RecordedScenario
from reports.records.seed_summaries import Cell
from reports.sections.section import Card, Results, Section, cards_section, draw_rows
from reports.tables import PageTable, download

NEVER_MARGIN = 0.1  # of the width, beyond the last run: the place of seeds that never met the target

Rows = Sequence[tuple[Cell, pd.DataFrame]]  # strategies, and the rows of their runs


def times_to_target(scenario: RecordedScenario) -> pd.DataFrame:
    """Return a table with a row for each clock and ended run of a scenario with a target.

    The columns are `scenario`, `strategy`, `target`, `clock`, `met at`, ∞ for never, and `end`, the clock at
    the end of the run. A diverged run that had not met the target never does.
    """
    assert scenario.target is not None
    rows = [
        (cell.strategy, clock.value, met, run.files.curve[clock][-1])
        for clock in scenario.clocks
        if clock in TO_TARGET.values()
        for cell in scenario.cells
        for run, met in zip(cell.ended, cell.times(clock), strict=True)
        if clock in run.files.curve
    ]
    table = pd.DataFrame(rows, columns=["strategy", "clock", "met at", "end"])
    table.insert(0, "scenario", scenario.label)
    table.insert(2, "target", scenario.target)
    return table


def section(results: Results) -> Section | None:
    """Return the section with a card per scenario with a target, and a figure per clock.

    None if no target was met, or for a single seed, whose times are in the ranking already.
    """
    if len(results.suite.seeds) < 2:
        return None
    cards, unmet, tables = [], [], []
    for scenario in results.scenarios:
        if scenario.target is None:
            continue
        times = times_to_target(scenario)
        if not np.isfinite(times["met at"]).any():
            unmet.append(scenario.label)
            continue
        drawn = times[times["strategy"].isin(results.foremost)]
        rows = {
            Clock(str(clock)): _fastest_first(scenario, runs)
            for clock, runs in drawn.groupby("clock", sort=False)
        }
        figures = {clock: _draw(scenario, clock, ranked) for clock, ranked in rows.items()}
        label, places = f"{scenario.label} · {scenario.metric.round_text(scenario.target)}", [scenario.place]
        cards.append(Card(label, figures, _caption(rows[Clock.UPDATES]), (), places, len(scenario.runs)))
        ordered = times.groupby(["clock", "strategy"], sort=False)["met at"].transform
        tables.append(times.assign(**{"met at": ordered(np.sort)}).drop(columns="end"))
    if not tables:
        return None
    note = (
        "Across: when the target was met. Stroke: a seed, at its first evaluation that met it; it may "
        "fall below the target later. Mark: the median seed. Open mark at the right edge: the median seed "
        f"never met it. Fastest strategies are on top.{results.only_foremost}"
    )
    if unmet:
        note += f" No strategy met the target in {'; '.join(unmet)}."
    table = pd.concat(tables)
    link = download("Times to target", results.suite.name, "times-to-target", table)
    return cards_section(
        "target", "Time to target", note, [("", cards)], tables=[PageTable("all", table)], downloads=[link]
    )


def _fastest_first(scenario: RecordedScenario, times: pd.DataFrame) -> Rows:
    """Return the strategies by median time, then by fastest seed, then by name."""
    cells = {cell.strategy: cell for cell in scenario.cells}
    rows = [(cells[str(strategy)], runs) for strategy, runs in times.groupby("strategy", sort=False)]

    def rank(row: tuple[Cell, pd.DataFrame]) -> tuple[float, float, str]:
        cell, runs = row
        return _median(runs), runs["met at"].min(), cell.strategy.casefold()

    return sorted(rows, key=rank)


def _median(runs: pd.DataFrame) -> float:
    """Return the median time to target of all seeds; ∞ if never met."""
    return float(np.median(runs["met at"]))


def _caption(rows: Rows) -> str:
    """Return the number of seeds without a met target by strategy, in words."""
    missed = [(cell.strategy, int(np.isinf(runs["met at"]).sum()), len(runs)) for cell, runs in rows]
    never = [f"{strategy} ({n} of {seeds})" for strategy, n, seeds in missed if n]
    return f"Never met it: {', '.join(never)}." if never else ""


def _draw(scenario: RecordedScenario, clock: Clock, rows: Rows) -> svg.Drawing:
    """Return the figure of a scenario against a clock: a stroke for each seed, a mark for the median."""
    cell, runs = rows[0]
    finding = "the median seed of no strategy met it"
    if isfinite(median := _median(runs)):
        finding = f"{cell.strategy} is the fastest with a median of {numbers.moment(median)}"
    about = f"When seeds met the target against {clock.words}, {scenario.label}: {finding}"
    texts = [
        (cell, f"{cell.strategy}: median {median}, {np.isfinite(runs['met at']).sum()} of {len(runs)} seeds")
        for cell, runs in rows
        for median in [numbers.moment(_median(runs))]
    ]

    def paint(axes: svg.Axes) -> None:
        all_runs = pd.concat([runs for _, runs in rows])
        met = np.isfinite(all_runs["met at"])
        times = all_runs.loc[met, "met at"]
        ends = all_runs.loc[~met, "end"]  # the last clock reading of runs that missed the target
        last = float(max([*times, *ends])) or 1.0  # all runs may end at time 0
        first = float(min(times[times > 0], default=last))
        log = last > svg.WIDE * first
        start = first / 1.5 if log else 0.0
        edge = last * (last / start) ** NEVER_MARGIN if log else last * (1 + NEVER_MARGIN)
        for y, (cell, of_strategy) in enumerate(rows):
            reached = np.sort(of_strategy.loc[met.loc[of_strategy.index], "met at"])
            if len(reached) > 1:
                axes.plot([reached[0], reached[-1]], [y, y], linewidth=1.4, **svg.style(cell.index))
            svg.strokes(axes, cell.index, reached, y)
            if isfinite(median := _median(of_strategy)):
                svg.dot(axes, cell.index, (median, y), 8)
            else:
                svg.dot(axes, cell.index, (edge, y), 8, edge=1.8, hollow=True)
        if log:
            axes.set_xscale("log")
            axes.set_xlim(start, edge * 1.1 if len(ends) else last * 1.08)
        else:
            axes.locator_params(axis="x", nbins=5)
            axes.set_xlim(0, edge * 1.03 if len(ends) else last * 1.04)
        if len(ends):
            axes.axvline((edge * last) ** 0.5, color=svg.RULE, linewidth=0.8)
        svg.across(axes, scenario.axis_title(clock), log=log)

    return draw_rows(texts, paint, about)
