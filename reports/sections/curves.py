"""Learning curves: every shown metric against every clock, mean and range over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fl_core.schema import Clock
from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.numbers import Measure
from reports.records.cells import CurveBand, band
from reports.records.records import RecordedScenario
from reports.sections.section import Card, Results, Section, cards_section, legend, over
from reports.tables import PageTable, download

TEXT = 0.08  # height of a text at a line, as a share of the axes

Bands = Mapping[tuple[str, Clock], Sequence[CurveBand]]  # by scenario and clock


def section(results: Results) -> Section | None:
    """Return the section with a block per metric, a card per scenario, and a figure per clock."""
    scenarios = results.scenarios
    everything: dict[Measure, Bands] = {
        metric: {
            (scenario.label, clock): [band(cell, metric.name, clock) for cell in scenario.cells]
            for scenario in scenarios
            if metric in scenario.shown
            for clock in scenario.clocks
        }
        for metric in dict.fromkeys(metric for scenario in scenarios for metric in scenario.shown)
    }
    blocks = [
        (metric.title, cards)
        for metric, bands in everything.items()
        if (cards := _cards(metric, [place for place in scenarios if metric in place.shown], bands, results))
    ]
    if not blocks:
        return None
    numbers = frame(everything)
    link = download("Curves", results.suite.name, "curves", numbers)
    note = _note(results)
    return cards_section(
        "curves", "Learning curves", note, blocks, tables=[PageTable("all", numbers)], downloads=[link]
    )


def frame(everything: Mapping[Measure, Bands]) -> pd.DataFrame:
    """Return the numbers behind all figures of the section."""
    return pd.concat(
        line.frame(scenario=scenario, strategy=line.cell.strategy, metric=metric.name, clock=clock.value)
        for metric, bands in everything.items()
        for (scenario, clock), lines in bands.items()
        for line in lines
    )


def _note(results: Results) -> str:
    seeds = [len(cell.finite) for scenario in results.scenarios for cell in scenario.cells if cell.finite]
    if not seeds:
        return "No run has come to its end."
    if max(seeds) == 1:
        return "Lines join the evaluations; one seed, hence no band."
    return (
        f"Line: mean {over(seeds)}, joining the evaluations. Band: minimum to maximum {over(seeds)}. "
        "A run that has ended keeps its last value."
    )


def _cards(
    metric: Measure, scenarios: Sequence[RecordedScenario], bands: Bands, results: Results
) -> list[Card]:
    cards = []
    for scenario in scenarios:
        lines = bands[scenario.label, Clock.UPDATES]
        if not any(line.n or line.lost for line in lines):
            continue
        same = [other for other in scenarios if other.problem == scenario.problem]
        axis = scale(metric, same, [line for other in same for line in bands[other.label, Clock.UPDATES]])
        figures = {
            clock: Plot(scenario, metric, clock, bands[scenario.label, clock], axis).draw()
            for clock in scenario.clocks
        }
        ends = {0: "", 1: "Thin line that ends in ✕: diverged, not in the mean."}
        lost = sum(len(line.lost) for line in lines)
        caption = ends.get(lost, "Thin lines that end in ✕: diverged, not in the mean.")
        places, keys = [scenario.place], legend(scenario.cells)
        cards.append(Card(scenario.label, figures, caption, keys, places, len(scenario.runs)))
    return cards


def levels(scenario: RecordedScenario, metric: Measure) -> list[tuple[str, float]]:
    """Return the horizontal lines: the centralised baseline, the target."""
    pooled = scenario.pooled.get(metric.name, ())
    lines = [("trained centrally", float(np.mean(pooled)))] if pooled else []
    if scenario.target is not None and metric == scenario.metric:
        lines.append(("target", scenario.target))
    return lines


def scale(metric: Measure, scenarios: Sequence[RecordedScenario], drawn: Sequence[CurveBand]) -> Scale:
    """Return the vertical axis shared by all scenarios of a problem.

    It has room for results, baseline and target, and for the name of one of these below all. The untrained
    model may lie outside: the curves are cut there, not compressed.
    """
    seen = [edge[1:] if len(edge) > 2 else edge for line in drawn for edge in (line.low, line.high)]
    if not any(len(edge) for edge in seen):
        seen = [values[:1] for line in drawn for _, values in line.lost]
    lines = [level for scenario in scenarios for _, level in levels(scenario, metric)]
    values = np.concatenate([*seen, np.array(lines, float)])
    axis = Scale.around(values, higher=metric.higher, share=metric.share)
    if axis.kind == "linear" and lines and min(lines) <= np.nanmin(values):
        axis = replace(axis, low=axis.low - TEXT * (axis.high - axis.low))
    return axis


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """A metric against a clock in a scenario."""

    scenario: RecordedScenario
    metric: Measure
    clock: Clock
    bands: Sequence[CurveBand]
    scale: Scale

    def draw(self) -> svg.Drawing:
        """Return the figure."""
        about = f"{self.metric.title} against {self.clock.words}, {self.scenario.label}: {self._finding()}"
        texts = {}
        for line in self.bands:
            ends = f"{self._end(line)} at the end" if line.n else "diverged" if line.lost else "no value"
            texts[line.cell.index] = f"{line.cell.strategy}: {ends}"
        return svg.Drawing(self._paint, about, legend=legend(self.scenario.cells), said=texts)

    def _end(self, line: CurveBand) -> str:
        return self.metric.with_unit(float(line.mean[-1]))

    def _finding(self) -> str:
        """Return the highest and the lowest strategy at the end, in words."""
        ended = sorted((line for line in self.bands if line.n), key=lambda line: float(line.mean[-1]))
        texts = [f"{line.cell.strategy} with {self._end(line)}" for line in ended]
        if len(texts) < 2:
            return texts[0] if texts else "no run has ended"
        return f"highest at the end is {texts[-1]}, lowest {texts[0]}"

    def _paint(self, axes: svg.Axes) -> None:
        for line in sorted(self.bands, key=lambda line: look.layer(line.cell.index)):
            self._paint_band(axes, line)
        clocks = [line.grid for line in self.bands if line.n]
        clocks = clocks or [marks for line in self.bands for marks, _ in line.lost]
        svg.clock_axis(axes, self.scenario.axis_title(self.clock), clocks)
        self.scale.apply(axes)
        axes.yaxis.set_major_formatter(svg.tick_text(self.metric.share))
        svg.heading(axes, self.metric.heading, self.scale, svg.MARGINS[0])
        lines = levels(self.scenario, self.metric)
        room = _room(axes, [level for _, level in lines])
        for name, level in lines:
            self._paint_level(axes, name, level, room=room)

    def _paint_band(self, axes: svg.Axes, line: CurveBand) -> None:
        index = line.cell.index
        style = svg.style(index)
        if look.quiet(index):
            if line.n:
                axes.plot(line.grid, line.mean, linewidth=look.width(index), **style)
            return
        if line.n > 1:
            axes.fill_between(line.grid, line.low, line.high, alpha=0.11, linewidth=0, **style)
        if line.n:
            axes.plot(
                line.grid, line.mean, linestyle=svg.line_style(index), linewidth=look.width(index), **style
            )
            # Markers of overlapping lines are placed side by side.
            spacing, last = max(1, len(line.grid) // 5), len(line.grid) - 1
            svg.markers(axes, index, line.grid, line.mean, [*range(index % spacing, last, spacing), last])
        for marks, values in line.lost:
            inside = self.scale.clip(values)
            axes.plot(marks, inside, linewidth=0.9, **style)
            axes.plot(marks[-1:], inside[-1:], "x", markersize=7, markeredgewidth=1.8, clip_on=False, **style)

    def _paint_level(self, axes: svg.Axes, name: str, level: float, *, room: bool) -> None:
        """Draw a horizontal line with a label where curves are sparse."""
        metric = self.metric
        ends = [float(line.mean[-1]) for line in self.bands if line.n]
        below = sum(end < level for end in ends) * 2 >= len(ends)  # where most curves end
        if name == "target":
            axes.axhline(level, color=svg.MUTED, linewidth=0.8)
            text = f"{name} {metric.round_text(level)}"
            if room:
                svg.write(axes, text, (0, level), "left", above=metric.higher is not False)
            else:
                svg.write(axes, text, (1, level), "right", above=below)
        else:
            axes.axhline(level, color=svg.INK, linewidth=1.3, linestyle=(0, (1, 2)))
            svg.write(axes, f"{name} {metric.with_unit(level)}", (0, level), "left", above=below)


def _room(axes: svg.Axes, heights: Sequence[float]) -> bool:
    """Return whether a text has room between horizontal lines."""
    places = [axes.transAxes.inverted().transform(axes.transData.transform((1, y)))[1] for y in heights]
    return len(places) < 2 or abs(places[0] - places[1]) > TEXT
