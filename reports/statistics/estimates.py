"""Estimates that are no mean of paired differences: ratios of means, ratios of variances, rank correlation.

Each has an interval, and p-values of one-sided tests against a threshold, as `paired.Effect` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan, sqrt
from typing import Protocol

import numpy as np
from scipy import stats

from fl_core.streams import stream
from reports.statistics.paired import LEVEL, effect

Array = np.ndarray
RESAMPLES = 2000  # of seeds, for a rank correlation


class Estimate(Protocol):
    """A number with its 95 % interval; what a verdict is made from."""

    @property
    def mean(self) -> float:
        """The number."""

    @property
    def low(self) -> float:
        """Lower end of its interval."""

    @property
    def high(self) -> float:
        """Upper end."""

    @property
    def n(self) -> int:
        """Seeds."""

    def p_above(self, threshold: float) -> float:
        """One-sided p-value of a test for more than the threshold."""

    def p_below(self, threshold: float) -> float:
        """One-sided p-value of a test for less."""


class Ratio:
    """Ratio of two paired means (Fieller): all r for which t does not tell top − r · bottom from 0.

    Exact for normal values, where a bootstrap of so few seeds is not. All of R where the lower mean may be 0.
    """

    def __init__(self, top: Array, bottom: Array) -> None:
        self.top, self.bottom, self.n = top, bottom, len(top)
        below = float(bottom.mean())
        self.mean = float(top.mean()) / below if below else nan
        self.low, self.high = self._interval()

    def _interval(self) -> tuple[float, float]:
        if self.n < 2:
            return -inf, inf
        t = float(stats.t.ppf((1 + LEVEL) / 2, self.n - 1))
        (xx, xy), (_, yy) = np.cov(self.top, self.bottom) * t**2 / self.n
        x, y = self.top.mean(), self.bottom.mean()
        a, b, c = y * y - yy, x * y - xy, x * x - xx
        if a <= 0:
            return -inf, inf
        root = sqrt(max(0.0, b * b - a * c))
        return float(b - root) / a, float(b + root) / a

    def p_above(self, threshold: float) -> float:
        """That of top > threshold · bottom, where the bottom is positive."""
        return effect(self.differences(threshold)).p_above(0)

    def p_below(self, threshold: float) -> float:
        """That of top < threshold · bottom, where the bottom is positive."""
        return effect(self.differences(threshold)).p_below(0)

    def differences(self, threshold: float) -> list[float]:
        """Top − threshold · bottom, seed by seed, with the sign of the bottom."""
        return list(np.sign(self.bottom.mean()) * (self.top - threshold * self.bottom))


class VarianceRatio:
    """Ratio of the variances of two samples of n seeds each, by the law of F; no use is made of pairs.

    ValueError where the lower one does not vary.
    """

    def __init__(self, top: Array, bottom: Array) -> None:
        self.n = len(top)
        if self.n < 2 or not bottom.var():
            raise ValueError("no spread to compare with")
        self.mean = float(top.var(ddof=1) / bottom.var(ddof=1))
        self._law = stats.f(self.n - 1, self.n - 1)
        self.low, self.high = (
            self.mean / float(self._law.ppf(level)) for level in ((1 + LEVEL) / 2, (1 - LEVEL) / 2)
        )

    def p_above(self, threshold: float) -> float:
        """Of a ratio that is greater."""
        return float(self._law.sf(self.mean / threshold)) if threshold else 0.0

    def p_below(self, threshold: float) -> float:
        """Of a ratio that is smaller."""
        return float(self._law.cdf(self.mean / threshold)) if threshold else 1.0


@dataclass(frozen=True, eq=False)
class Rank:
    """Spearman's ρ of means over seeds [k, n] with others, or with given numbers [k].

    Its interval is a percentile bootstrap over seeds, drawn alike for all means. No p-value is below
    1/(resamples + 1).
    """

    values: Array
    others: Array

    @property
    def n(self) -> int:
        """Seeds."""
        return int(self.values.shape[1])

    @cached_property
    def mean(self) -> float:
        """ρ of the means; NaN where one side does not vary."""
        return self._rho(np.arange(self.n))

    @property
    def low(self) -> float:
        """Lower end of its interval."""
        return self._quantile((1 - LEVEL) / 2, -inf)

    @property
    def high(self) -> float:
        """Upper end."""
        return self._quantile((1 + LEVEL) / 2, inf)

    def p_above(self, threshold: float) -> float:
        """Of ρ being the threshold at least: it can be attained."""
        return float((self._again < threshold).sum() + 1) / (len(self._again) + 1)

    def p_below(self, threshold: float) -> float:
        """Of a smaller ρ."""
        return float((self._again >= threshold).sum() + 1) / (len(self._again) + 1)

    @cached_property
    def _again(self) -> Array:
        picks = stream(0, "rank", self.n).integers(self.n, size=(RESAMPLES, self.n))
        return np.array([self._rho(pick) for pick in picks])

    def _rho(self, pick: Sequence[int] | Array) -> float:
        sides = (side[:, pick].mean(1) if side.ndim == 2 else side for side in (self.values, self.others))
        first, second = (stats.rankdata(side) for side in sides)
        if not first.var() or not second.var():
            return nan
        return float(np.corrcoef(first, second)[0, 1])

    def _quantile(self, level: float, otherwise: float) -> float:
        if self.n < 2 or np.isnan(self._again).all():
            return otherwise
        return float(np.nanquantile(self._again, level))
