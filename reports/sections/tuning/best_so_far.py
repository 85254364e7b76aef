"""The best value so far by trial, all strategies of a scenario in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures import look, svg
from reports.records.steps import Array
from reports.records.studies import RecordedStudy
from reports.sections.tuning.objectives import vertical

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE, MARGINS = (520, 300), (46, 14, 30, 44)


def history(studies: Sequence[RecordedStudy], indices: Sequence[int]) -> svg.Drawing:
    """The best value so far against the number of trials, one line per strategy."""
    about = f"Best {studies[0].measure.in_text} so far by trial and strategy, {studies[0].scenario}"
    legend = tuple((index, study.strategy) for index, study in zip(indices, studies, strict=True))
    paint = partial(_paint, studies=studies, indices=indices)
    return svg.figure(SIZE, MARGINS, paint, about, legend)


def best_so_far(study: RecordedStudy) -> Array:
    """For every counted trial, the best complete value up to it; NaN before the first."""
    values = [one.worth if one.complete else np.nan for one in study.counted]
    best = np.fmax if study.measure.higher else np.fmin
    return best.accumulate(values) if values else np.zeros(0)


def _paint(axes: Axes, studies: Sequence[RecordedStudy], indices: Sequence[int]) -> None:
    lines, measure = [best_so_far(study) for study in studies], studies[0].measure
    scale = vertical(measure, np.concatenate(lines))
    longest = max(1, *map(len, lines))
    for line, index in zip(lines, indices, strict=True):
        style: dict[str, Any] = {"color": svg.series(index), "gid": svg.belongs(index)}
        x = np.arange(1, len(line) + 1)
        y = np.where(np.isnan(line), np.nan, scale.clip(line))
        axes.step(x, y, where="post", linestyle=svg.line_style(index), linewidth=1.5, **style)
        at = np.arange(index % max(1, longest // 6), len(x), max(1, longest // 6))
        axes.plot(x[at], y[at], look.marker(index), markersize=5, markeredgewidth=0, **style)
    scale.apply(axes)
    axes.yaxis.set_major_formatter(svg.tick_text(measure.share))
    axes.set_xlim(0.5, longest + 0.5)
    axes.locator_params(axis="x", integer=True, nbins=8)
    axes.set_xlabel("Trials")
    svg.heading(axes, f"Best so far · {measure.heading}", scale, MARGINS[0])
