"""Time to target: the share of seeds that have met it against time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reports.downloads import file_name, link
from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.records.records import CLOCKS, Cell, RecordedScenario
from reports.records.steps import Array
from reports.records.summary import time_to_target
from reports.sections.section import Results, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE, MARGINS = (520, 280), (46, 16, 30, 44)
SHOWN = ("updates", "time")  # clocks
APART = 1.6  # pixels between lines that would overlap
WIDE = 12  # ratio between the first and the last seed from which on the scale is logarithmic


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """When each seed of a strategy met the target; ∞ where it never did."""

    cell: Cell
    when: Array  # [seeds], sorted
    ends: Array  # [seeds], ends of the runs that never met it (censoring times)

    def share(self, at: Array) -> Array:
        """Share of all seeds that had met the target by that time."""
        return np.searchsorted(self.when, at, side="right") / len(self.when)


def reached(cell: Cell, clock: str, target: float) -> Reached | None:
    """Of ended runs; a diverged one that had not met the target never does. None without any."""
    runs = [run for run in cell.runs if run.ended_somehow and clock in run.files.curve]
    if not runs:
        return None
    when = np.array([time_to_target(run, clock, target) for run in runs])
    over = np.array([float(run.files.curve[clock].iloc[-1]) for run in runs])
    return Reached(cell, np.sort(when), np.sort(over[~np.isfinite(when)]))


def section(results: Results) -> Section | None:
    """One card per scenario with a target, in it one figure per clock; one seed is in the ranking already."""
    if len(results.suite.seeds) < 2:
        return None
    cards, figures, frames = [], [], []
    for scenario, _ in results.scenarios:
        if scenario.target is None:
            continue
        by_clock = {clock: _all(scenario, clock) for clock in SHOWN}
        if not any(isfinite(one.when[0]) for of in by_clock.values() for one in of):
            cards.append(_nobody(scenario))
            continue
        drawings = [(clock, CLOCKS[clock], _draw(scenario, clock, of)) for clock, of in by_clock.items()]
        card = {
            "scenario": f"{scenario.label} · {scenario.metric.round_text(scenario.target)}",
            "clocks": drawings,
            "legend": [(one.cell.index, one.cell.strategy) for one in by_clock["updates"]],
            "caption": "",
            "cells": scenario.cells,
        }
        cards.append(card)
        figures += [(f"{scenario.label} {clock}", drawing) for clock, _, drawing in drawings]
        frames += [_frame(scenario, clock, one) for clock, of in by_clock.items() for one in of]
    if not frames:
        return None
    numbers = pd.concat(frames)
    shows = {
        "blocks": [{"cards": [card for card in cards if card["clocks"]]}],
        "file": file_name(results.suite.name, "times-to-target"),
        "download": link(numbers),
        "what": "Times to target",
    }
    nobody = [card["scenario"] for card in cards if not card["clocks"]]
    note = (
        "Share of seeds that had met the target. A line that ends below 100 % belongs to a strategy with "
        "seeds that never met it; a bar shows where such a run ended. Lines that would overlap "
        "are drawn side by side."
    )
    if nobody:
        note += f" Nobody met the target in {'; '.join(nobody)}."
    tables = [Table("all", numbers)]
    return Section("target", "Time to target", "curves.html.j2", note, shows, figures, tables)


def _nobody(scenario: RecordedScenario) -> dict[str, Any]:
    return {"scenario": scenario.label, "clocks": []}


def _all(scenario: RecordedScenario, clock: str) -> list[Reached]:
    assert scenario.target is not None
    found = [reached(cell, clock, scenario.target) for cell in scenario.cells]
    return [one for one in found if one is not None]


def _frame(scenario: RecordedScenario, clock: str, one: Reached) -> pd.DataFrame:
    """One row per seed; inf where it never met the target."""
    return pd.DataFrame(
        {
            "scenario": scenario.label,
            "strategy": one.cell.strategy,
            "target": scenario.target,
            "clock": clock,
            "met at": one.when,
        }
    )


def _draw(scenario: RecordedScenario, clock: str, of: Sequence[Reached]) -> svg.Drawing:
    about = f"Share of seeds that met the target against {CLOCKS[clock]}, {scenario.label}"
    legend = [(one.cell.index, one.cell.strategy) for one in of]
    return svg.figure(SIZE, MARGINS, lambda axes: _paint(axes, clock, of), about, legend)


def _paint(axes: Axes, clock: str, of: Sequence[Reached]) -> None:
    times = np.concatenate([one.when[np.isfinite(one.when)] for one in of])
    last = float(max([*times, *(end for one in of for end in one.ends)])) or 1.0  # met at time 0, and over
    first = float(min(times[times > 0], default=last))
    log = last > WIDE * first
    left = first / 1.5 if log else 0.0
    for at, one in enumerate(of):
        _paint_line(axes, one, left, last, APART * (at - (len(of) - 1) / 2))
    if log:
        axes.set_xscale("log")
        axes.set_xlim(left, last * 1.08)
    else:
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlim(0, last * 1.02)
    axes.set_ylim(-0.06, 1.06)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.yaxis.set_major_formatter(svg.tick_text(share=True))
    axes.xaxis.set_major_formatter(svg.tick_text(share=False))
    axes.xaxis.set_minor_formatter(svg.no_text)
    axes.set_xlabel(CLOCKS[clock].capitalize() + (" · log scale" if log else ""))
    svg.heading(axes, "Seeds that met the target (%)", Scale(0, 1), MARGINS[0])


def _paint_line(axes: Axes, one: Reached, left: float, last: float, lift: float) -> None:
    """Steps from the first seed's on, to the end of the last run; `lift` in pixels keeps lines apart."""
    from matplotlib.transforms import ScaledTranslation

    index, met = one.cell.index, one.when[one.when < inf]
    end = float(max([*met, *one.ends])) if len(one.ends) else last
    marks = np.array([met[0] if len(met) else left, *met, end])
    shares = np.array([0.0, *one.share(marks[1:])])
    raised = axes.transData + ScaledTranslation(0, lift / 72, axes.get_figure().dpi_scale_trans)  # type: ignore[union-attr]
    style: dict[str, Any] = {"color": svg.series(index), "gid": svg.belongs(index), "transform": raised}
    axes.plot(marks, shares, drawstyle="steps-post", linestyle=svg.line_style(index), linewidth=1.6, **style)
    axes.plot(met, one.share(met), look.marker(index), markersize=5, markeredgewidth=0, **style)
    if len(one.ends):
        axes.plot(one.ends, one.share(one.ends), "|", markersize=9, markeredgewidth=1.6, **style)
