"""Estimates over paired seeds: means and medians of differences, ratios of means and of spreads, ranks.

Each has p-values of one-sided tests against a threshold, and all but ranks an interval.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations
from math import inf, nan, sqrt

import numpy as np
from scipy import special

from reports.claims.robust import agreed, sign_test
from reports.statistics.paired import LEVEL, student
from reports.statistics.ranks import ranks

Array = np.ndarray
MOST_RANKED = 8  # values, whose 40,320 permutations are enumerated


class Paired(ABC):
    """A number over paired seeds, with its interval and one-sided tests; the basis of a verdict."""

    mean: float
    low: float
    high: float
    n: int  # seeds

    @abstractmethod
    def differences(self, threshold: float) -> Array:
        """The values above the threshold, seed by seed."""

    def test(self, differences: Array) -> float:
        """One-sided p-value for values above 0; by default three tests must agree (`robust.agreed`)."""
        return agreed(differences)

    def p_above(self, threshold: float) -> float:
        """One-sided p-value for a number above the threshold."""
        return self.test(self.differences(threshold))

    def p_below(self, threshold: float) -> float:
        """One-sided p-value for a number below the threshold."""
        return self.test(-self.differences(threshold))


class PairedMean(Paired):
    """Mean of paired differences with Student's interval."""

    def __init__(self, values: Array, level: float = LEVEL) -> None:
        effect = student(values, level)
        self.values, self.n = values, effect.n
        self.mean, self.low, self.high = effect.mean, effect.low, effect.high

    def differences(self, threshold: float) -> Array:
        return np.asarray(self.values - threshold)


class PairedMedian(Paired):
    """Median of paired differences by the sign test, with infinite ones; its interval is of order statistics.

    ValueError where no difference is a number.
    """

    def __init__(self, values: Array, level: float = LEVEL) -> None:
        self.values = values = values[~np.isnan(values)]
        self.n = n = len(values)
        if not n:
            raise ValueError("no difference in any seed")
        ordered = np.sort(values)
        middle = ordered[(n - 1) // 2], ordered[n // 2]
        self.mean = float(middle[0] if middle[0] == middle[1] else np.mean(middle))
        out = next((k for k in range(n) if special.bdtr(k, n, 0.5) > (1 - level) / 2), 0)
        self.low, self.high = (float(ordered[out - 1]), float(ordered[-out])) if out else (-inf, inf)

    def differences(self, threshold: float) -> Array:
        return np.asarray(self.values - threshold)

    def test(self, differences: Array) -> float:
        return sign_test(differences)


class RatioEstimate(Paired):
    """Ratio of two paired means (Fieller): all r for which t does not distinguish top − r · bottom from 0.

    Exact for normal values, where a bootstrap of so few seeds is not. All of R where the lower mean may be 0.
    """

    def __init__(self, top: Array, bottom: Array, level: float = LEVEL) -> None:
        self.top, self.bottom, self.n, self.level = top, bottom, len(top), level
        below = float(bottom.mean())
        self.mean = float(top.mean()) / below if below else nan
        self.low, self.high = self._interval()

    def _interval(self) -> tuple[float, float]:
        if self.n < 2:
            return -inf, inf
        t = float(special.stdtrit(self.n - 1, (1 + self.level) / 2))
        (xx, xy), (_, yy) = np.cov(self.top, self.bottom) * t**2 / self.n
        x, y = self.top.mean(), self.bottom.mean()
        a, b, c = y * y - yy, x * y - xy, x * x - xx
        if a <= 0:
            return -inf, inf
        root = sqrt(max(0.0, b * b - a * c))
        return float(b - root) / a, float(b + root) / a

    def differences(self, threshold: float) -> Array:
        """Top − threshold · bottom, seed by seed, with the sign of the bottom."""
        return np.asarray(np.sign(self.bottom.mean()) * (self.top - threshold * self.bottom))


def spread_ratio(top: Array, bottom: Array, level: float = LEVEL) -> RatioEstimate:
    """Ratio of mean distances from the median, of two samples with the same seeds.

    ValueError where the lower one does not vary.

    Source: Brown and Forsythe, JASA 69 (1974), pp. 364–367; here paired.
    """
    if len(top) < 2 or not bottom.var():
        raise ValueError("no spread to compare with")
    return RatioEstimate(np.abs(top - np.median(top)), np.abs(bottom - np.median(bottom)), level)


@dataclass(frozen=True, eq=False)
class RankEstimate:
    """Spearman's ρ of means over seeds [k, n] with others [k, n], or with given numbers [k].

    The test is of agreement against chance: in every seed the k values are ranked, and so are the others; the
    statistic is the sum over seeds of Σ rank · other rank. Without any relation, all k! orders
    of the ranks of each seed are equally likely. The distribution of the sum is exact (Page, JASA 58, 1963).
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
        sides = (side.mean(1) if side.ndim == 2 else side for side in (self.values, self.others))
        first, second = (ranks(side) for side in sides)
        if not first.var() or not second.var():
            return nan
        return float(np.corrcoef(first, second)[0, 1])

    def p_above(self, threshold: float) -> float:
        """For agreement; 1 where ρ of the means does not reach the threshold."""
        return self._tail[0] if self.mean >= threshold else 1.0

    def p_below(self, threshold: float) -> float:
        """For opposition; 1 where ρ of the means reaches the threshold."""
        return self._tail[1] if self.mean < threshold else 1.0

    @property
    def least_p(self) -> float:
        """The smallest p-value that one seed can give."""
        return 1 / float(special.factorial(len(self.values), exact=True))

    @cached_property
    def _tail(self) -> tuple[float, float]:
        """The probability of a sum as large by chance, and of one as small; doubled ranks are integers."""
        if len(self.values) > MOST_RANKED:
            raise ValueError(f"{len(self.values)} values: only {MOST_RANKED} can be ranked by the exact test")
        law, observed = np.ones(1), 0  # law[s]: probability of a sum s
        for seed in range(self.n):
            others = self.others[:, seed] if self.others.ndim == 2 else self.others
            mine, other = 2 * ranks(self.values[:, seed]), 2 * ranks(others)
            law = np.convolve(law, _law(tuple(sorted(mine)), tuple(sorted(other))))
            observed += round(float(mine @ other))
        return float(min(1.0, law[observed:].sum())), float(min(1.0, law[: observed + 1].sum()))


@cache
def _law(mine: tuple[float, ...], other: tuple[float, ...]) -> Array:
    """The distribution of Σ one · other over all orders of one of them, by its value."""
    orders = np.array(list(permutations(mine)))
    sums = np.rint(orders @ np.array(other)).astype(int)
    return np.asarray(np.bincount(sums) / len(orders))
