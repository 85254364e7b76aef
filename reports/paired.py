"""Paired differences over seeds: effect, interval, p-value, and how many seeds would decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, nan, sqrt

import numpy as np
from scipy import stats

from fl_core.streams import stream

LEVEL = 0.95
RESAMPLES = 10_000
SEEDS_FOR_BOOTSTRAP = 8  # below, resampling so few values gives intervals that are too narrow: t instead


@dataclass(frozen=True, slots=True)
class Effect:
    """Mean of paired differences with its 95 % interval and the two-sided p-value of a paired t-test.

    With one seed the interval is all of R and p is 1: a single difference shows nothing of its spread.
    """

    mean: float
    low: float
    high: float
    p: float
    std: float  # sample standard deviation of the differences; NaN for one seed
    n: int  # seeds

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def effect(differences: Sequence[float]) -> Effect:
    """The effect of finite differences, one a seed; a percentile bootstrap from eight seeds on, t below.

    Raises ValueError for none, or for one that is not finite.
    """
    values = np.asarray(differences, float)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError("an effect needs one finite difference at least, and nothing else")
    mean, n = float(values.mean()), len(values)
    if n == 1:
        return Effect(mean, -inf, inf, 1.0, nan, 1)
    std = float(values.std(ddof=1))
    if std == 0:
        return Effect(mean, mean, mean, float(mean == 0), 0.0, n)
    if n < SEEDS_FOR_BOOTSTRAP:
        half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * std / sqrt(n)
        low, high = mean - half, mean + half
    else:
        picks = stream(0, "bootstrap", n).integers(n, size=(RESAMPLES, n))
        low, high = map(float, np.quantile(values[picks].mean(1), ((1 - LEVEL) / 2, (1 + LEVEL) / 2)))
    p = float(2 * stats.t.sf(abs(mean) / (std / sqrt(n)), n - 1))
    return Effect(mean, low, high, p, std, n)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm, 1979), in the order given."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def seeds_to_decide(found: Effect, power: float = 0.8) -> int | None:
    """How many seeds a paired t-test needs to show an effect of this size with this power.

    None where the effect is nil or its spread unknown. Normal approximation, with the usual +1 for t.
    """
    if found.mean == 0 or np.isnan(found.std):
        return None
    if found.std == 0:
        return 2
    z = float(stats.norm.ppf((1 + LEVEL) / 2) + stats.norm.ppf(power))
    return max(2, ceil((z * found.std / found.mean) ** 2) + 1)
