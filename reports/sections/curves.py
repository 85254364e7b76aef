"""Learning curves: every shown metric against the three clocks, mean and range over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fl_core.schema import Clock
from reports.downloads import download
from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.records.measures import Measure
from reports.records.records import RecordedScenario
from reports.sections.section import Results, Section, Table, mean_over
from reports.statistics.bands import Band, band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEXT = 0.08  # height of a text at a line, as a share of the axes
WIDE = 12  # ratio between the ends of two strategies from which on a clock is shown on a log scale

Bands = Mapping[tuple[str, Clock], Sequence[Band]]  # by scenario and clock


def section(results: Results) -> Section | None:
    """One block per metric, in it one card per scenario, in that one figure per clock."""
    scenarios = [scenario for scenario, _ in results.scenarios]
    shown = list(dict.fromkeys(one for scenario in scenarios for one in scenario.shown))
    everything = {one: _bands(one, scenarios) for one in shown}
    blocks = [block for one, bands in everything.items() if (block := _block(one, scenarios, bands))]
    if not blocks:
        return None
    for block in blocks:
        for card in block["cards"]:
            card["places"] = [results.place(card["of"])]
    numbers = frame(everything)
    shows = {
        "blocks": blocks,
        "download": download(results.suite.name, "curves", numbers),
        "what": "Curves",
    }
    figures = [
        (f"{block['measure'].title} {clock} {card['scenario']}", figure)
        for block in blocks
        for card in block["cards"]
        for clock, _, figure in card["clocks"]
    ]
    tables = [Table("all", numbers)]
    return Section("curves", "Learning curves", "curves.html.j2", _note(results), shows, figures, tables)


def frame(everything: Mapping[Measure, Bands]) -> pd.DataFrame:
    """The numbers behind all figures of the section."""
    return pd.concat(
        one.frame(scenario=scenario, strategy=one.cell.strategy, metric=measure.name, clock=clock.value)
        for measure, bands in everything.items()
        for (scenario, clock), of in bands.items()
        for one in of
    )


def _note(results: Results) -> str:
    seeds = [len(cell.finite) for scenario, _ in results.scenarios for cell in scenario.cells if cell.finite]
    if not seeds:
        return "No run has come to its end."
    if max(seeds) == 1:
        return "Lines join the evaluations; one seed, hence no band."
    over = mean_over(seeds).removeprefix(", mean ")
    return (
        f"Line: mean {over}, joining the evaluations. Band: minimum to maximum {over}. "
        "A run that has ended keeps its last value."
    )


def _bands(measure: Measure, scenarios: Sequence[RecordedScenario]) -> Bands:
    return {
        (scenario.label, clock): [band(cell, measure.name, clock) for cell in scenario.cells]
        for scenario in scenarios
        if measure in scenario.shown
        for clock in Clock
    }


def _block(measure: Measure, scenarios: Sequence[RecordedScenario], bands: Bands) -> dict[str, Any] | None:
    among = [one for one in scenarios if measure in one.shown]
    cards = []
    for scenario in among:
        if not any(one.n or one.lost for one in bands[scenario.label, Clock.UPDATES]):
            continue
        same = [one for one in among if one.problem == scenario.problem]
        axis = scale(measure, same, [line for one in same for line in bands[one.label, Clock.UPDATES]])
        plots = [Plot(scenario, measure, clock, bands[scenario.label, clock], axis) for clock in Clock]
        card = {
            "scenario": scenario.label,
            "clocks": [(plot.clock, plot.clock.words, plot.draw()) for plot in plots],
            "legend": [(cell.index, cell.strategy) for cell in scenario.cells],
            "caption": _caption(plots[0].bands),
            "of": scenario,
            "runs": len(scenario.runs),
        }
        cards.append(card)
    return {"measure": measure, "cards": cards} if cards else None


def _caption(bands: Sequence[Band]) -> str:
    lost = sum(len(one.lost) for one in bands)
    if not lost:
        return ""
    lines = "Thin line that ends" if lost == 1 else "Thin lines that end"
    return f"{lines} in ✕: diverged, not in the mean."


def levels(scenario: RecordedScenario, measure: Measure) -> list[tuple[str, float]]:
    """Horizontal lines: the centralised baseline, the target."""
    pooled = scenario.pooled.get(measure.name, ())
    found = [("trained centrally", float(np.mean(pooled)))] if pooled else []
    if scenario.target is not None and measure == scenario.metric:
        found.append(("target", scenario.target))
    return found


def scale(measure: Measure, scenarios: Sequence[RecordedScenario], drawn: Sequence[Band]) -> Scale:
    """The vertical axis, shared by all scenarios of one problem: room for results, baseline and target.

    The untrained model may lie outside: the curves are cut there, not compressed.
    """
    seen = [edge[1:] if len(edge) > 2 else edge for one in drawn for edge in (one.low, one.high)]
    if not any(len(edge) for edge in seen):
        seen = [values[:1] for one in drawn for _, values in one.lost]
    lines = [level for scenario in scenarios for _, level in levels(scenario, measure)]
    values = np.concatenate([*seen, np.array(lines, float)])
    return Scale.around(values, higher=measure.higher, share=measure.share)


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """One metric against one clock in one scenario."""

    scenario: RecordedScenario
    measure: Measure
    clock: Clock
    bands: Sequence[Band]
    scale: Scale

    def draw(self) -> svg.Drawing:
        """The figure."""
        about = f"{self.measure.title} against {self.clock.words}, {self.scenario.label}: {self._finding()}"
        legend = [(cell.index, cell.strategy) for cell in self.scenario.cells]
        said = {one.cell.index: f"{one.cell.strategy}: {self._end(one)}" for one in self.bands}
        return svg.figure(svg.SIZE, svg.MARGINS, self._paint, about, legend, said=said)

    def _end(self, one: Band) -> str:
        """Where a strategy ends, in words."""
        if not one.n:
            return "diverged" if one.lost else "no value"
        unit = " %" if self.measure.share else ""
        return f"{self.measure.text(float(one.mean[-1]))}{unit} at the end"

    def _finding(self) -> str:
        """Who ends highest and who lowest."""
        ended = sorted((one for one in self.bands if one.n), key=lambda one: float(one.mean[-1]))
        if not ended:
            return "no run has ended"
        low, high = (
            f"{one.cell.strategy} with {self._end(one).removesuffix(' at the end')}"
            for one in (ended[0], ended[-1])
        )
        return high if len(ended) == 1 else f"highest at the end is {high}, lowest {low}"

    def _paint(self, axes: Axes) -> None:
        measure = self.measure
        for one in sorted(self.bands, key=lambda one: look.quiet(one.cell.index), reverse=True):
            self._paint_band(axes, one)
        log = self._scale_clock(axes)
        self.scale.apply(axes)
        axes.yaxis.set_major_formatter(svg.tick_text(measure.share))
        axes.set_xlabel(self.clock.words.capitalize() + (" · log scale" if log else ""))
        svg.heading(axes, measure.heading, self.scale, svg.MARGINS[0])
        lines = levels(self.scenario, measure)
        room = _room(axes, [level for _, level in lines])
        for name, level in lines:
            self._paint_level(axes, name, level, room=room)

    def _paint_band(self, axes: Axes, one: Band) -> None:
        index = one.cell.index
        style: dict[str, Any] = {"color": svg.series(index), "gid": svg.belongs(index)}
        if look.quiet(index):
            if one.n:
                axes.plot(one.grid, one.mean, linewidth=0.9, alpha=0.75, **style)
            return
        if one.n > 1:
            axes.fill_between(one.grid, one.low, one.high, alpha=0.11, linewidth=0, **style)
        if one.n:
            axes.plot(one.grid, one.mean, linestyle=svg.line_style(index), linewidth=1.6, **style)
            # Markers of overlapping lines are placed side by side.
            every, last = max(1, len(one.grid) // 5), len(one.grid) - 1
            at = [*range(index % every, last, every), last]
            axes.plot(
                one.grid[at], one.mean[at], look.marker(index), markersize=5, markeredgewidth=0, **style
            )
        for marks, values in one.lost:
            inside = self.scale.clip(values)
            axes.plot(marks, inside, linewidth=0.9, alpha=0.7, **style)
            axes.plot(marks[-1:], inside[-1:], "x", markersize=7, markeredgewidth=1.8, clip_on=False, **style)

    def _paint_level(self, axes: Axes, name: str, level: float, *, room: bool) -> None:
        """A horizontal line, labelled where curves are sparse: before they reach it, or opposite the ends."""
        measure = self.measure
        ends = [float(one.mean[-1]) for one in self.bands if one.n]
        below = sum(end < level for end in ends) * 2 >= len(ends)  # where most curves end
        if name == "target":
            axes.axhline(level, color=svg.MUTED, linewidth=0.8)
            text = f"{name} {measure.round_text(level)}"
            if room:
                svg.write(axes, text, (0, level), "left", above=measure.higher is not False)
            else:
                svg.write(axes, text, (1, level), "right", above=below)
        else:
            axes.axhline(level, color=svg.INK, linewidth=1.3, linestyle=(0, (1, 2)))
            text = measure.text(level) + (" %" if measure.share else "")
            svg.write(axes, f"{name} {text}", (0, level), "left", above=below)

    def _scale_clock(self, axes: Axes) -> bool:
        """Fit the clock; True if it got a log scale, since strategies would be squeezed at the edge."""
        clocks = [one.grid for one in self.bands if one.n]
        clocks = clocks or [marks for one in self.bands for marks, _ in one.lost]
        ends = [float(clock[-1]) for clock in clocks]
        first = [float(clock[clock > 0][0]) for clock in clocks if clock[-1] > 0]
        log = bool(first) and min(ends) > 0 and max(ends) / min(ends) >= WIDE
        if log:
            axes.set_xscale("log", nonpositive="mask")  # from the first evaluation after the start on
            axes.set_xlim(min(first) / 1.15, max(ends) * 1.15)
        elif first:
            axes.locator_params(axis="x", nbins=5)
            axes.set_xlim(0, max(ends) * 1.015)
        axes.xaxis.set_major_formatter(svg.tick_text(share=False))
        axes.xaxis.set_minor_formatter(svg.no_text)
        return log


def _room(axes: Axes, heights: Sequence[float]) -> bool:
    """Whether there is room for a text between horizontal lines."""
    places = [axes.transAxes.inverted().transform(axes.transData.transform((1, y)))[1] for y in heights]
    return len(places) < 2 or abs(places[0] - places[1]) > TEXT
