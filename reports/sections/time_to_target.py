"""Time to target: when each seed met it, one row per strategy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite

import numpy as np
import pandas as pd

from fl_core.schema import TO_TARGET, Clock
from reports import numbers
from reports.figures import svg
from reports.records.cells import Cell
from reports.records.records import RecordedScenario
from reports.records.steps import Array
from reports.sections.rows import draw
from reports.sections.section import Card, Results, Section, cards_section
from reports.tables import PageTable, download

NEVER = 0.1  # of the width, beyond the last run: the place of seeds that never met the target


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """When each seed of a strategy met the target; ∞ where it never did."""

    cell: Cell
    when: Array  # [seeds], sorted
    ends: Array  # [seeds], ends of the runs that never met it (censoring times)

    @property
    def median(self) -> float:
        """The median over all seeds; ∞ where the median seed never met the target."""
        return float(np.median(self.when))

    @property
    def met(self) -> Array:
        """The times of the seeds that met the target."""
        return self.when[self.when < inf]


def reached(cell: Cell, clock: str, target: float) -> Reached | None:
    """Return when the ended runs of a strategy met a target; None without any.

    A diverged run that had not met the target never does.
    """
    runs = [run for run in cell.runs if run.status.terminated and clock in run.files.curve]
    if not runs:
        return None
    when = np.array([run.time_to_target(clock, target) for run in runs])
    over = np.array([float(run.files.curve[clock][-1]) for run in runs])
    return Reached(cell, np.sort(when), np.sort(over[~np.isfinite(when)]))


def section(results: Results) -> Section | None:
    """Return one card per scenario with a target, in it one figure per clock.

    None where no target was met, or there is one seed: that is in the ranking already.
    """
    if len(results.suite.seeds) < 2:
        return None
    cards, unmet, frames = [], [], []
    for scenario in results.scenarios:
        if (target := scenario.target) is None:
            continue
        clocks = [clock for clock in scenario.clocks if clock in TO_TARGET.values()]
        by_clock = {
            clock: sorted(
                (row for cell in scenario.cells if (row := reached(cell, clock, target))),
                key=lambda row: (row.median, row.when.min(), row.cell.strategy.casefold()),
            )
            for clock in clocks
        }
        if not any(len(row.met) for rows in by_clock.values() for row in rows):
            unmet.append(scenario.label)
            continue
        drawn = {
            clock: [row for row in rows if row.cell.strategy in results.foremost]
            for clock, rows in by_clock.items()
        }
        figures = {clock: _draw(scenario, clock, rows) for clock, rows in drawn.items()}
        label, places = f"{scenario.label} · {scenario.metric.round_text(target)}", [scenario.place]
        cards.append(Card(label, figures, _caption(drawn[Clock.UPDATES]), (), places, len(scenario.runs)))
        frames += [
            pd.DataFrame(
                {
                    "scenario": scenario.label,
                    "strategy": row.cell.strategy,
                    "target": target,
                    "clock": clock.value,
                    "met at": row.when,  # inf where a seed never met it
                }
            )
            for clock in clocks
            for row in sorted(by_clock[clock], key=lambda row: scenario.cells.index(row.cell))
        ]
    if not frames:
        return None
    note = (
        "Strokes: when single seeds met the target, at the first evaluation that did; a run may fall below "
        "it later. Mark: the median seed. Open, right of the line: the median seed never met "
        f"it.{results.only_foremost}"
    )
    if unmet:
        note += f" No strategy met the target in {'; '.join(unmet)}."
    table = pd.concat(frames)
    link = download("Times to target", results.suite.name, "times-to-target", table)
    return cards_section(
        "target", "Time to target", note, [("", cards)], tables=[PageTable("all", table)], downloads=[link]
    )


def _caption(rows: Sequence[Reached]) -> str:
    """Return whose seeds never met the target, and how many."""
    never = [f"{row.cell.strategy} ({len(row.ends)} of {len(row.when)})" for row in rows if len(row.ends)]
    return f"Never met it: {', '.join(never)}." if never else ""


def _draw(scenario: RecordedScenario, clock: Clock, rows: Sequence[Reached]) -> svg.Drawing:
    first = rows[0]
    finding = "the median seed of no strategy met it"
    if isfinite(first.median):
        finding = f"{first.cell.strategy} is the fastest with a median of {numbers.moment(first.median)}"
    about = f"When seeds met the target against {clock.words}, {scenario.label}: {finding}"
    said = [
        (row.cell, f"{row.cell.strategy}: median {median}, {len(row.met)} of {len(row.when)} seeds")
        for row in rows
        for median in [numbers.moment(row.median)]
    ]
    return draw(said, partial(_paint, clock=clock, rows=rows), about)


def _paint(axes: svg.Axes, clock: Clock, rows: Sequence[Reached]) -> None:
    times = np.concatenate([row.met for row in rows])
    ends = np.concatenate([row.ends for row in rows])
    last = float(max([*times, *ends])) or 1.0  # met at time 0, and over
    first = float(min(times[times > 0], default=last))
    log = last > svg.WIDE * first
    left = first / 1.5 if log else 0.0
    edge = last * (last / left) ** NEVER if log else last * (1 + NEVER)
    for y, row in enumerate(rows):
        index = row.cell.index
        if len(row.met) > 1:
            axes.plot([row.met[0], row.met[-1]], [y, y], linewidth=1.4, **svg.style(index))
        svg.strokes(axes, index, row.met, y)
        if isfinite(row.median):
            svg.dot(axes, index, (row.median, y), 8)
        else:
            svg.dot(axes, index, (edge, y), 8, edge=1.8, hollow=True)
    if log:
        axes.set_xscale("log")
        axes.set_xlim(left, edge * 1.1 if len(ends) else last * 1.08)
    else:
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlim(0, edge * 1.03 if len(ends) else last * 1.04)
    if len(ends):
        axes.axvline((edge * last) ** 0.5, color=svg.RULE, linewidth=0.8)
    svg.across(axes, clock.words.capitalize(), log=log)
