"""How the objectives of trials are shown: as colours, and on a vertical axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.figures import look, svg
from reports.figures.scale import Scale
from reports.records.measures import Measure
from reports.records.steps import Array
from reports.records.studies import RecordedStudy
from reports.sections.heat import level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        """From the worst to the best complete trial without a diverged seed."""
        fine = [one.worth for of in studies for one in of.judged if one.complete and not one.diverged]
        every = [one.worth for of in studies for one in of.judged if one.complete]
        values, measure = np.array(fine or every or [0.0]), studies[0].measure
        kind = Scale.around(values, higher=measure.higher, share=measure.share).kind
        return cls(measure, Scale(float(values.min()), float(values.max()), kind))

    def colour(self, value: float) -> tuple[str, str]:
        """The colour of a value, and that of text on it."""
        inside = min(max(value, self.scale.low), self.scale.high)
        low, at, high = map(self._spread, (self.scale.low, inside, self.scale.high))
        return svg.amount(level(at, low, high) if self.measure.higher else level(-at, -high, -low))

    def _spread(self, value: float) -> float:
        """Its place on a scale that separates good values."""
        if self.scale.kind == "error":
            return -log10(max(1 - value, LEAST))
        return log10(value) if self.scale.kind == "log" else value


def vertical(measure: Measure, values: Array | Sequence[float]) -> Scale:
    """An axis for objectives; errors on a log scale only where the worst are far from the best."""
    found = np.asarray(values, float)
    far = bool(np.nanmax(found, initial=0) - np.nanmin(found, initial=1) > FAR)
    return Scale.around(found, higher=measure.higher, share=measure.share and far)


def heading(axes: Axes, text: str, amounts: Amounts, left: float) -> None:
    """Above the axes: the vertical quantity, `left` of them; at the right the colours, worst to best."""
    from matplotlib.offsetbox import AnnotationBbox, DrawingArea
    from matplotlib.patches import Rectangle

    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(text, (0, 1), (4 - left, 12), color=svg.MUTED, **place)
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
    style: dict[str, Any] = {"color": svg.MUTED, "fontsize": svg.SMALL, **place}
    axes.annotate(best, (1, 1), (right + 4, 12), **style)
    axes.annotate(worst, (1, 1), (right - BAR * count - 4, 12), horizontalalignment="right", **style)
