"""Power laws fitted to measured costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np


@dataclass(frozen=True)
class Fit:
    """cost ≈ factor · size^exponent, the exponent with a 95 % interval, and between the last two sizes."""

    exponent: float
    low: float
    high: float
    factor: float
    last: float


def power_law(sizes: Sequence[float], costs: Sequence[float]) -> Fit:
    """Least squares on logarithms, Student's interval of the slope; ValueError for fewer than three sizes.

    The interval is that of a straight line with independent errors. Where a cost is a fixed part and a part
    that grows, the points bend, which widens it, and `last` is above the exponent.
    """
    from scipy.stats import t

    x, y = np.log(sizes), np.log(costs)
    n = len(x)
    if n < 3:
        raise ValueError(f"a power law with an interval needs three sizes, not {n}")
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float((x - x.mean()) @ y) / spread
    intercept = float(y.mean() - slope * x.mean())
    residual = float(((y - intercept - slope * x) ** 2).sum()) / (n - 2)
    half = float(t.ppf(0.975, n - 2)) * sqrt(residual / spread)
    last = log(costs[-1] / costs[-2]) / log(sizes[-1] / sizes[-2])
    return Fit(slope, slope - half, slope + half, float(np.exp(intercept)), last)
