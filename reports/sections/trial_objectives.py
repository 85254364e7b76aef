"""How the objectives of trials are shown: as colours, on a vertical axis, and the best so far by trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan, log10
from typing import Any

import numpy as np

from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.records.measures import Measure
from reports.records.steps import Array
from reports.records.studies import RecordedStudy
from reports.sections.heat import level

FAR = 0.1  # between accuracies
LEAST = 1e-3  # smallest error of an accuracy that colours distinguish from none
BAR = 11  # pixels, per colour of the colour bar
LETTER = 5.6  # pixels, about


@dataclass(frozen=True, slots=True)
class Amounts:
    """Colours for objectives, the same for all strategies of a scenario: the stronger, the better."""

    measure: Measure
    scale: Scale

    @classmethod
    def of(cls, studies: Sequence[RecordedStudy]) -> Amounts:
        """Return colours from the worst to the best complete trial without a diverged seed."""
        complete = [trial for study in studies for trial in study.judged if trial.complete]
        fine = [trial for trial in complete if not trial.diverged] or complete
        values, measure = np.array([trial.worth for trial in fine] or [0.0]), studies[0].measure
        kind = Scale.around(values, higher=measure.higher, share=measure.share).kind
        return cls(measure, Scale(float(values.min()), float(values.max()), kind))

    def colour(self, value: float) -> tuple[str, str]:
        """Return the colour of a value, and that of text on it."""
        inside = min(max(value, self.scale.low), self.scale.high)
        low, at, high = map(self._spread, (self.scale.low, inside, self.scale.high))
        return svg.amount(level(at, low, high) if self.measure.higher else level(-at, -high, -low))

    def _spread(self, value: float) -> float:
        """Return the place of a value on a scale that separates good values."""
        if self.scale.kind == "error":
            return -log10(max(1 - value, LEAST))
        return log10(value) if self.scale.kind == "log" else value


def vertical(measure: Measure, values: Array | Sequence[float]) -> Scale:
    """Return an axis for objectives; errors on a log scale only where the worst are far from the best."""
    objectives = np.asarray(values, float)
    far = bool(np.nanmax(objectives, initial=0) - np.nanmin(objectives, initial=1) > FAR)
    return Scale.around(objectives, higher=measure.higher, share=measure.share and far)


def heading(axes: svg.Axes, text: str, amounts: Amounts, left: float) -> None:
    """Write above the axes the vertical quantity, `left` of them; at the right the colours, worst to best."""
    from matplotlib.offsetbox import AnnotationBbox, DrawingArea
    from matplotlib.patches import Rectangle

    axes.annotate(text, (0, 1), (4 - left, 12), color=svg.MUTED, **svg.OFFSET)
    scale, measure = amounts.scale, amounts.measure
    if isnan(scale.low):
        return
    count = len(look.LIGHT_AMOUNTS)
    bar = DrawingArea(BAR * count, BAR, 0, 0)
    for at in range(count):
        bar.add_artist(Rectangle((BAR * at, 0), BAR, BAR, facecolor=svg.amount(at)[0], linewidth=0))
    ends = (scale.low, scale.high) if measure.higher else (scale.high, scale.low)
    worst, best = map(measure.text, ends)
    right = -4 - LETTER * len(best)
    axes.add_artist(
        AnnotationBbox(
            bar, (1, 1), (right, 10), xycoords="axes fraction", boxcoords="offset points", frameon=False,
            box_alignment=(1, 0), pad=0,
        )
    )  # fmt: skip
    style: dict[str, Any] = {"color": svg.MUTED, "fontsize": svg.SMALL, **svg.OFFSET}
    axes.annotate(best, (1, 1), (right + 4, 12), **style)
    axes.annotate(worst, (1, 1), (right - BAR * count - 4, 12), horizontalalignment="right", **style)


def history(studies: Sequence[RecordedStudy], indices: Sequence[int]) -> svg.Drawing:
    """Return the best value so far against the number of trials, one line per strategy."""
    about = f"Best {studies[0].measure.in_text} so far by trial and strategy, {studies[0].scenario}"
    legend = [(index, study.strategy) for index, study in zip(indices, studies, strict=True)]
    paint = partial(_paint_history, studies=studies, indices=indices)
    return svg.Drawing(paint, about, (520, 300), legend=legend)


def best_so_far(study: RecordedStudy) -> Array:
    """Return for every counted trial the best complete value up to it; NaN before the first."""
    values = [trial.worth if trial.complete else np.nan for trial in study.counted]
    best = np.fmax if study.measure.higher else np.fmin
    return best.accumulate(values) if values else np.zeros(0)


def _paint_history(axes: svg.Axes, studies: Sequence[RecordedStudy], indices: Sequence[int]) -> None:
    lines, measure = [best_so_far(study) for study in studies], studies[0].measure
    scale = vertical(measure, np.concatenate(lines))
    longest = max(1, *map(len, lines))
    every = max(1, longest // 6)
    for line, index in zip(lines, indices, strict=True):
        x = np.arange(1, len(line) + 1)
        y = np.where(np.isnan(line), np.nan, scale.clip(line))
        dash = svg.line_style(index)
        axes.step(x, y, where="post", linestyle=dash, linewidth=1.5, **svg.style(index))
        svg.markers(axes, index, x, y, np.arange(index % every, len(x), every))
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(measure.share))
    axes.set_xlim(0.5, longest + 0.5)
    axes.locator_params(axis="x", integer=True, nbins=8)
    axes.set_xlabel("Trials")
    svg.heading(axes, f"Best so far · {measure.heading}", scale, svg.MARGINS[0])
