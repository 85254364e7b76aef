"""The vertical axis of a figure: linear, logarithmic, or logarithmic in the distance to 100 %.

Sections with learning curves, error terms and tuning choose one by the values that they draw.

Free: only report pages use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTES = {"linear": "", "log": " · log scale", "error": " · error on a log scale"}
MIN_LOG_RATIO = 30  # of metrics where lower is better: from this ratio on, a log scale
MIN_ERROR_SHARE = 0.9  # of shares where higher is better: from this share on, a log scale of 1 − share
# Shares written at such an axis, the most important first
TICK_SHARES = (0.5, 0.9, 0.99, 0.999, 0.8, 0.95, 0.98, 0.995, 0.97, 0.7, 0.0, 0.2, 0.85, 0.6, 0.4, 0.96, 0.94)
MIN_TICK_DISTANCE = 0.08  # of the axis, between two numbers


@dataclass(frozen=True, slots=True)
class Scale:
    """Range and kind of an axis."""

    low: float
    high: float
    kind: Literal["linear", "log", "error"] = "linear"

    @classmethod
    def around(cls, values: np.ndarray, *, higher: bool | None = None, share: bool = False) -> Scale:
        """Return an axis with room for all finite values, of the kind with the best separation."""
        values = values[np.isfinite(values)]
        if not len(values):
            return cls(0.0, 1.0)
        low, high = float(values.min()), float(values.max())
        if share and higher and high >= MIN_ERROR_SHARE and (values < 1).any():
            smallest_error = 1 - float(values[values < 1].max())
            return cls(max(0.0, low - 0.03), 1 - smallest_error / 1.35, "error")
        if higher is False and low > 0 and high / low > MIN_LOG_RATIO:
            return cls(low / 1.3, high * 1.3, "log")
        room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(low - room, high + room)

    @property
    def note(self) -> str:
        """Note on the scale for a heading; empty for a linear axis."""
        return NOTES[self.kind]

    def place(self, value: float) -> float:
        """Return the place of a value on the axis, from 0 at the low end to 1."""
        ends = np.array([self.low, value, self.high])
        if self.kind != "linear":
            ends = np.log(ends) if self.kind == "log" else _nines(ends)
        low, at, high = ends
        return float((at - low) / (high - low))

    def clip(self, values: np.ndarray) -> np.ndarray:
        """Return the values, with values outside the axis moved to the edge."""
        finite = np.nan_to_num(values, nan=self.low, posinf=self.high, neginf=self.low)
        return np.clip(finite, self.low, self.high)

    def apply(self, axes: Axes) -> None:
        """Set range, kind and places of the numbers."""
        from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

        if self.kind == "linear":
            axes.set_ylim(self.low, self.high)
            axes.locator_params(axis="y", nbins=6)
            return
        if self.kind == "log":
            axes.set_yscale("log")
            few = log10(self.high / self.low) < 2.5
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        else:
            axes.set_yscale("function", functions=(_nines, _share))
            axes.yaxis.set_major_locator(FixedLocator(self._round_shares()))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(self.low, self.high)

    def _round_shares(self) -> list[float]:
        """Round shares inside the axis, none too close to another."""
        low, high = _nines(np.array([self.low, self.high]))
        shares: list[float] = []
        for share in filter(lambda share: self.low <= share <= self.high, TICK_SHARES):
            places = [abs(_nines(np.array(share)) - _nines(np.array(neighbour))) for neighbour in shares]
            if all(place >= MIN_TICK_DISTANCE * (high - low) for place in places):
                shares.append(share)
        return sorted(shares)


def _nines(share: np.ndarray) -> np.ndarray:
    """Return −log₁₀ of the error: 0.9 → 1, 0.99 → 2."""
    return -np.log10(np.clip(1 - np.asarray(share, float), 1e-9, None))


def _share(nines: np.ndarray) -> np.ndarray:
    return 1 - 10.0 ** -np.asarray(nines, float)
