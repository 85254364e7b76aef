"""Forest plots of verdicts: effect, interval and claimed range, with an axis for each row of claims.

`html` draws a `strip` for each claim of the page.

Free: only `asyncfl claims --html` and report pages show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite

from markupsafe import Markup

from benchmarks.claims.claim import Claim
from benchmarks.claims.kinds import Better, Contrast, Same, Value
from reports import numbers
from reports.claims.verdicts import Verdict, Word

WIDTH, HEIGHT, EDGE = 240.0, 18.0, 8.0  # units of a strip; free at both ends
MAX_OVERHANG = 3.0  # times the spread of effects and edges; longer intervals are cut
# Marks differ by their shapes, too: filled where decided.
MARKS: dict[Word, str] = {
    "confirmed": '<circle r="4.5"/>',
    "refuted": '<path d="M-4.2-4.2H4.2V4.2H-4.2Z"/>',
    "equal": '<path d="M0-5.4L5.4 0L0 5.4L-5.4 0Z"/>',
    "no effect": '<path d="M0-5.4L5.4 0L0 5.4L-5.4 0Z"/>',
}
OPEN = '<circle r="4" class="open"/>'


@dataclass(frozen=True, slots=True)
class DrawnEffect:
    """Effect of a claim as plotted; for a printed number, the difference found − printed."""

    found: float
    low: float
    high: float
    claimed: tuple[float, float]  # range in which the claim holds; an end may be infinite
    margin: float = 0.0  # around 0, within which there is no difference


def effect(claim: Claim, verdict: Verdict) -> DrawnEffect | None:
    """Return the effect of a claim; None where no finite number was estimated over seeds."""
    mean, low, high = verdict.found, verdict.low, verdict.high
    if mean is None or not isfinite(mean) or not claim.needs_runs:
        return None
    if low is None or high is None or low == -high == -inf:
        low = high = mean
    if isinstance(claim, Value) and claim.printed is not None:
        printed, half = float(claim.printed), claim.rounding
        return DrawnEffect(mean - printed, low - printed, high - printed, (-half, half))
    band, margin = claimed(claim), 0.0
    if isinstance(claim, Better | Contrast) and not isinstance(claim, Same):
        margin = claim.margin or 0.0
    return DrawnEffect(mean, low, high, band, margin)


def claimed(claim: Claim) -> tuple[float, float]:
    """Return both ends of the claimed range; (∞, ∞) for numbers only reported."""
    if claim.holds is None:
        return inf, inf
    low, high = claim.holds
    return -inf if low is None else low, inf if high is None else high


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis shared by the claims of a row."""

    low: float
    high: float

    @classmethod
    def around(cls, effects: Iterable[DrawnEffect]) -> Axis:
        """Return an axis with room for effects and edges; much longer intervals are cut."""
        effect_list = list(effects)
        fixed = [effect.found for effect in effect_list]
        for effect in effect_list:
            fixed += [edge for edge in (*effect.claimed, effect.margin, -effect.margin) if isfinite(edge)]
        spread = (max(fixed) - min(fixed)) or abs(fixed[0]) or 1.0
        ends = [end for effect in effect_list for end in (effect.low, effect.high) if isfinite(end)]
        low = max(min([*fixed, *ends]), min(fixed) - MAX_OVERHANG * spread)
        high = min(max([*fixed, *ends]), max(fixed) + MAX_OVERHANG * spread)
        room = 0.03 * (high - low) or 1.0
        return cls(low - room, high + room)

    def place(self, value: float) -> float:
        """Return the position of a value in a strip; values outside the axis are clipped to an end."""
        inside = min(max(value, self.low), self.high)
        return EDGE + (WIDTH - 2 * EDGE) * (inside - self.low) / (self.high - self.low)

    @property
    def texts(self) -> tuple[str, str]:
        """Numbers at both ends of the axis, as text."""
        return numbers.number(self.low, 2), numbers.number(self.high, 2)


def strip(drawn: DrawnEffect, axis: Axis, word: Word, description: str) -> Markup:
    """Return a line of the plot: the interval over the claimed range, coloured by the verdict."""
    parts = []
    low, high = drawn.claimed
    if low < inf:
        parts.append(_box("claimed", axis.place(low), axis.place(high), 1, HEIGHT - 1))
    if drawn.margin:
        parts.append(_box("margin", axis.place(-drawn.margin), axis.place(drawn.margin), 5, HEIGHT - 5))
    if axis.low <= 0 <= axis.high:
        parts.append(f'<path class="zero" d="M{axis.place(0):.1f} 0V{HEIGHT:g}"/>')
    middle = HEIGHT / 2
    ends = [axis.place(drawn.low), axis.place(drawn.high)]
    parts.append(f'<path class="interval" d="M{ends[0]:.1f} {middle:g}H{ends[1]:.1f}"/>')
    for end, place, turn in ((drawn.low, ends[0], -1), (drawn.high, ends[1], 1)):
        if not axis.low <= end <= axis.high:  # an arrow where the interval is cut
            parts.append(f'<path d="M{place:.1f} {middle - 4:g}l{5 * turn} 4l{-5 * turn} 4Z"/>')
    mark = MARKS.get(word, OPEN)
    parts.append(f'<g transform="translate({axis.place(drawn.found):.1f} {middle:g})">{mark}</g>')
    head = f'<svg class="strip {word.replace(" ", "-")}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"'
    return (
        Markup(f"{head} aria-label=")
        + Markup('"{}">').format(description)
        + Markup(f"{''.join(parts)}</svg>")
    )


def _box(name: str, low_x: float, high_x: float, top: float, bottom: float) -> str:
    """Return a filled rectangle of a CSS class."""
    return f'<path class="{name}" d="M{low_x:.1f} {top:g}H{high_x:.1f}V{bottom:g}H{low_x:.1f}Z"/>'
