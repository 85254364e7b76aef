"""Section of learning curves: every shown metric against every clock, mean and range over seeds.

`reports/page.py` calls `section`; `plot` also draws the leaders' curves at the top of the page, and the
figures of `asyncfl.figures`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fl_core.recorded_names import Clock
from reports.figures import styles, svg
from reports.figures.axis_scale import Scale
from reports.numbers import Measure
from reports.records.records import RecordedScenario
from reports.records.seed_summaries import CurveBand, band
from reports.sections.section import Card, Results, Section, cards_section, legend, over
from reports.tables import PageTable, download

TEXT_HEIGHT = 0.08  # of a text at a line, as a share of the axes

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
    labelled = [
        ((scenario, line.cell.strategy, metric.name, clock.value), line)
        for metric, bands in everything.items()
        for (scenario, clock), lines in bands.items()
        for line in lines
    ]
    points = [len(line.grid) for _, line in labelled]
    labels = zip(*(of_line for of_line, _ in labelled), strict=True)
    columns = {
        "at": np.concatenate([line.grid for _, line in labelled]),
        "mean": np.concatenate([line.mean for _, line in labelled]),
        "min": np.concatenate([line.low for _, line in labelled]),
        "max": np.concatenate([line.high for _, line in labelled]),
        "seeds": np.repeat([line.n for _, line in labelled], points),
    }
    names = ("scenario", "strategy", "metric", "clock")
    repeated = {name: np.repeat(texts, points) for name, texts in zip(names, labels, strict=True)}
    return pd.DataFrame({**repeated, **columns})


def _note(results: Results) -> str:
    """Return the note on lines and bands, by the number of seeds."""
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
    """Return a card for each scenario with values of a metric; scenarios of a problem share the axis."""
    cards = []
    for scenario in scenarios:
        lines = bands[scenario.label, Clock.UPDATES]
        if not any(line.n or line.lost for line in lines):
            continue
        same = [peer for peer in scenarios if peer.problem == scenario.problem]
        axis = scale(metric, same, [line for peer in same for line in bands[peer.label, Clock.UPDATES]])
        figures = {
            clock: plot(scenario, metric, clock, bands[scenario.label, clock], axis)
            for clock in scenario.clocks
        }
        lost = any(line.lost for line in lines)
        caption = "Thin lines that end in ✕: diverged, not in the mean." if lost else ""
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

    The axis has room for results, baseline and target, and for a label below the lowest line. The untrained
    model may lie outside the axis: curves are cut there, not compressed.
    """
    seen = [edge[1:] if len(edge) > 2 else edge for line in drawn for edge in (line.low, line.high)]
    if not any(len(edge) for edge in seen):
        seen = [values[:1] for line in drawn for _, values in line.lost]
    lines = [level for scenario in scenarios for _, level in levels(scenario, metric)]
    values = np.concatenate([*seen, np.array(lines, float)])
    axis = Scale.around(values, higher=metric.higher, share=metric.share)
    if axis.kind == "linear" and lines and min(lines) <= np.nanmin(values):
        axis = replace(axis, low=axis.low - TEXT_HEIGHT * (axis.high - axis.low))
    return axis


def plot(
    scenario: RecordedScenario, metric: Measure, clock: Clock, bands: Sequence[CurveBand], scale: Scale
) -> svg.Drawing:
    """Return the figure of a metric against a clock in a scenario."""
    ends = {line.cell.index: metric.with_unit(float(line.mean[-1])) for line in bands if line.n}
    texts = {}
    for line in bands:
        nothing = "diverged" if line.lost else "no value"
        end = f"{ends[line.cell.index]} at the end" if line.n else nothing
        texts[line.cell.index] = f"{line.cell.strategy}: {end}"
    ranked = sorted((line for line in bands if line.n), key=lambda line: float(line.mean[-1]))
    strategies = [f"{line.cell.strategy} with {ends[line.cell.index]}" for line in ranked]
    finding = "".join(strategies) or "no run has ended"
    if len(strategies) > 1:
        finding = f"highest at the end is {strategies[-1]}, lowest {strategies[0]}"
    about = f"{metric.title} against {clock.words}, {scenario.label}: {finding}"

    def paint(axes: svg.Axes) -> None:
        for line in sorted(bands, key=lambda line: styles.layer(line.cell.index)):
            _paint_band(axes, line, scale)
        clocks = [line.grid for line in bands if line.n]
        clocks = clocks or [marks for line in bands for marks, _ in line.lost]
        svg.clock_axis(axes, scenario.axis_title(clock), clocks)
        scale.apply(axes)
        axes.yaxis.set_major_formatter(svg.tick_text(metric.share))
        svg.heading(axes, f"{metric.heading}{scale.note}", svg.MARGINS[0])
        lines = levels(scenario, metric)
        room = _room(axes, [level for _, level in lines])
        last = [float(line.mean[-1]) for line in ranked]
        for name, level in lines:
            below = sum(end < level for end in last) * 2 >= len(last)  # where most curves end
            _paint_level(axes, metric, name, level, below=below, room=room)

    return svg.Drawing(paint, about, legend=legend(scenario.cells), said=texts)


def _paint_band(axes: svg.Axes, line: CurveBand, scale: Scale) -> None:
    """Draw a strategy's mean, the range over seeds, and each diverged seed as a thin line."""
    index = line.cell.index
    style = svg.style(index)
    if styles.quiet(index):
        if line.n:
            axes.plot(line.grid, line.mean, linewidth=styles.width(index), **style)
        return
    if line.n > 1:
        axes.fill_between(line.grid, line.low, line.high, alpha=0.11, linewidth=0, **style)
    if line.n:
        axes.plot(
            line.grid,
            line.mean,
            linestyle=svg.line_style(index),
            linewidth=styles.width(index),
            **style,
        )
        # Markers of overlapping lines are placed side by side.
        spacing, last = max(1, len(line.grid) // 5), len(line.grid) - 1
        svg.markers(axes, index, line.grid, line.mean, [*range(index % spacing, last, spacing), last])
    for marks, values in line.lost:
        inside = scale.clip(values)
        axes.plot(marks, inside, linewidth=0.9, **style)
        axes.plot(marks[-1:], inside[-1:], "x", markersize=7, markeredgewidth=1.8, clip_on=False, **style)


def _paint_level(
    axes: svg.Axes, metric: Measure, name: str, level: float, *, below: bool, room: bool
) -> None:
    """Draw a horizontal line with a label where curves are sparse: above the line if most end `below`."""
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
    return len(places) < 2 or abs(places[0] - places[1]) > TEXT_HEIGHT
