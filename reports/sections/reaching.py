"""Time to target: when each seed met it, one row per strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fl_core.schema import TO_TARGET, Clock
from reports import numbers
from reports.downloads import download
from reports.figures import svg
from reports.records.records import Cell, RecordedScenario
from reports.records.steps import Array
from reports.records.summary import time_to_target
from reports.sections.rows import draw, paint_names
from reports.sections.section import Results, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 30
WIDE = 12  # ratio between the first and the last seed from which on the scale is logarithmic
NEVER = 0.1  # of the width, beyond the last run: the place of seeds that never met the target


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """When each seed of a strategy met the target; ∞ where it never did."""

    cell: Cell
    when: Array  # [seeds], sorted
    ends: Array  # [seeds], ends of the runs that never met it (censoring times)

    @property
    def median(self) -> float:
        """Of all seeds; ∞ where the median seed never met it."""
        return float(np.median(self.when))

    @property
    def met(self) -> Array:
        """The times of those that met it."""
        return self.when[self.when < inf]


def reached(cell: Cell, clock: str, target: float) -> Reached | None:
    """Of ended runs; a diverged one that had not met the target never does. None without any."""
    runs = [run for run in cell.runs if run.status.terminated and clock in run.files.curve]
    if not runs:
        return None
    when = np.array([time_to_target(run, clock, target) for run in runs])
    over = np.array([float(run.files.curve[clock].iloc[-1]) for run in runs])
    return Reached(cell, np.sort(when), np.sort(over[~np.isfinite(when)]))


def section(results: Results) -> Section | None:
    """One card per scenario with a target, in it one figure per clock; one seed is in the ranking already."""
    if len(results.suite.seeds) < 2:
        return None
    cards: list[dict[str, Any]] = []
    unmet, figures, frames = [], [], []
    for scenario, _ in results.scenarios:
        if scenario.target is None:
            continue
        label = f"{scenario.label} · {scenario.metric.round_text(scenario.target)}"
        by_clock = {clock: _all(scenario, clock) for clock in TO_TARGET.values()}
        if not any(isfinite(one.when[0]) for of in by_clock.values() for one in of):
            unmet.append(scenario.label)
            continue
        drawings = [(clock, clock.words, _draw(scenario, clock, of)) for clock, of in by_clock.items()]
        cards.append(
            {
                "scenario": label,
                "clocks": drawings,
                "legend": [],
                "caption": _caption(by_clock[Clock.UPDATES]),
                "places": [results.place(scenario)],
                "runs": len(scenario.runs),
            }
        )
        figures += [(f"{scenario.label} {clock}", drawing) for clock, _, drawing in drawings]
        frames += [_frame(scenario, clock, one) for clock, of in by_clock.items() for one in of]
    if not frames:
        return None
    table = pd.concat(frames)
    shows = {
        "blocks": [{"cards": cards}],
        "download": download(results.suite.name, "times-to-target", table),
        "what": "Times to target",
    }
    note = (
        "Strokes: when single seeds met the target. Mark: the median seed. Open, right of the line: the "
        "median seed never met it."
    )
    if unmet:
        note += f" No strategy met the target in {'; '.join(unmet)}."
    tables = [Table("all", table)]
    return Section("target", "Time to target", "curves.html.j2", note, shows, figures, tables)


def _caption(of: Sequence[Reached]) -> str:
    """Whose seeds never met the target, and how many."""
    never = [
        f"{one.cell.strategy} ({len(one.ends)} of {len(one.when)})" for one in _ordered(of) if len(one.ends)
    ]
    return f"Never met it: {', '.join(never)}." if never else ""


def _all(scenario: RecordedScenario, clock: Clock) -> list[Reached]:
    assert scenario.target is not None
    found = [reached(cell, clock, scenario.target) for cell in scenario.cells]
    return [one for one in found if one is not None]


def _ordered(of: Sequence[Reached]) -> list[Reached]:
    """The fastest first."""
    return sorted(of, key=lambda one: (one.median, one.when.min(), one.cell.strategy.casefold()))


def _frame(scenario: RecordedScenario, clock: Clock, one: Reached) -> pd.DataFrame:
    """One row per seed; inf where it never met the target."""
    return pd.DataFrame(
        {
            "scenario": scenario.label,
            "strategy": one.cell.strategy,
            "target": scenario.target,
            "clock": clock.value,
            "met at": one.when,
        }
    )


def _draw(scenario: RecordedScenario, clock: Clock, of: Sequence[Reached]) -> svg.Drawing:
    rows = _ordered(of)
    first = rows[0]
    fastest = f"{first.cell.strategy} is the fastest with a median of {numbers.number(first.median, 3)}"
    unmet = "the median seed of no strategy met it"
    finding = fastest if isfinite(first.median) else unmet
    about = f"When seeds met the target against {clock.words}, {scenario.label}: {finding}"
    said = {
        one.cell.index: f"{one.cell.strategy}: median {numbers.number(one.median, 3)}, "
        f"{len(one.met)} of {len(one.when)} seeds"
        for one in rows
    }
    return draw([one.cell for one in rows], ROW, partial(_paint, clock=clock, of=rows), about, said)


def _paint(axes: Axes, clock: Clock, of: Sequence[Reached]) -> None:
    times = np.concatenate([one.met for one in of])
    never = any(len(one.ends) for one in of)
    last = float(max([*times, *(end for one in of for end in one.ends)])) or 1.0  # met at time 0, and over
    first = float(min(times[times > 0], default=last))
    log = last > WIDE * first
    left = first / 1.5 if log else 0.0
    edge = last * (last / left) ** NEVER if log else last * (1 + NEVER)
    for y, one in enumerate(of):
        _paint_row(axes, y, one, edge)
    if log:
        axes.set_xscale("log")
        axes.set_xlim(left, edge * 1.1 if never else last * 1.08)
    else:
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlim(0, edge * 1.03 if never else last * 1.04)
    if never:
        axes.axvline((edge * last) ** 0.5, color=svg.RULE, linewidth=0.8)
    axes.xaxis.set_major_formatter(svg.tick_text(share=False))
    axes.xaxis.set_minor_formatter(svg.no_text)
    axes.set_xlabel(clock.words.capitalize() + (" · log scale" if log else ""))
    paint_names(axes, [one.cell for one in of])


def _paint_row(axes: Axes, y: int, one: Reached, edge: float) -> None:
    index = one.cell.index
    style: dict[str, Any] = {"color": svg.series(index), "gid": svg.belongs(index)}
    if len(one.met) > 1:
        axes.plot([one.met[0], one.met[-1]], [y, y], linewidth=1.4, **style)
    for value in one.met:
        axes.plot([value, value], [y - 0.24, y + 0.24], linewidth=1.1, alpha=0.6, **style)
    if isfinite(one.median):
        axes.plot([one.median], [y], "o", markersize=8, markeredgewidth=0, **style)
    else:
        axes.plot([edge], [y], "o", markersize=8, markeredgewidth=1.8, markerfacecolor=svg.PAPER, **style)
