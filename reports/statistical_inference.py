"""Inference over seeds: paired differences with intervals and tests, corrections for many tests, power.

Report pages, `asyncfl compare`, the gate, the claims and the leaderboard all take their numbers from here, so
that the same two strategies on the same seeds have the same difference, interval and p-value everywhere:
the mean of the paired differences with Student's interval, and the p-value of the paired t-test
(`paired_effect`).

The questions differ. Several comparisons at once have intervals at a higher level
(`simultaneous_level`) and adjusted p-values (`holm`). The claims, which look again as seeds are added, demand
that three tests agree (`agreed`), and use the sign test where runs collapse (`PairedMedian`). The leaderboard
has rank groups, in `reports.leaderboard.rank_groups`: tuning is a source of chance there, too.

Fixed: every number. Published verdicts and all pages follow from them (tests/reports/test_one_inference.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import count, permutations
from math import ceil, inf, nan, sqrt
from typing import TypeVar

import numpy as np
from scipy import special

Array = np.ndarray
QuestionKey = TypeVar("QuestionKey", bound=Hashable)

LEVEL = 0.95  # of intervals and tests
ERROR = 1 - LEVEL
SIDE = ERROR / 2  # error of a one-sided test
ROUNDING = 1e-9  # a spread below this, relative to the values, counts as no spread
MAX_UNEQUAL = 6  # if most differences are equal and no more than these are not, no spread is estimated
NORMAL_SEEDS = 1000  # from this number of seeds on, t is practically normal
FEWEST = 6  # seeds with which sign flips can reach `SIDE`: 2⁻⁶ is less, 2⁻⁵ is more
GRID = 1 << 14  # steps into which the sum of |differences| is divided
SKEW = 0.5  # smallest skewness assumed against a finding
MAX_RANKED = 8  # values, whose 40,320 permutations are enumerated


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[float, ...]:
    """Return the second minus the first value, for each common seed."""
    return tuple(value - first[seed] for seed, value in second.items() if seed in first)


def simultaneous_level(tests: int) -> float:
    """Return the level for `tests` intervals to hold together at 95 % (Bonferroni)."""
    return 1 - ERROR / max(1, tests)


def t_quantile(n: int, level: float = LEVEL) -> float:
    """Return the value exceeded by |t| of n values in a share 1 − level of cases."""
    return float(special.stdtrit(n - 1, (1 + level) / 2))


@dataclass(frozen=True, slots=True)
class Effect:
    """Mean of paired differences with the interval and the two-sided p-value of a paired test.

    The interval is all of R if the differences do not show a spread: for one seed, or mostly equal values.
    """

    mean: float
    low: float
    high: float
    p: float
    std: float  # sample standard deviation of the differences; NaN for one seed
    n: int  # seeds

    @property
    def bounds(self) -> tuple[float, float]:
        """Ends of the interval for tables of numbers; NaN where none can be given."""
        return (nan, nan) if self.low == -inf and self.high == inf else (self.low, self.high)

    def p_above(self, threshold: float) -> float:
        """Return the one-sided p-value of a t-test for a mean above the threshold; 1 with n = 1."""
        if self.n == 1:
            return 1.0
        if self.std == 0:
            return 0.5**self.n if self.mean > threshold else 1.0
        return float(special.stdtr(self.n - 1, -(self.mean - threshold) / (self.std / sqrt(self.n))))

    def p_below(self, threshold: float) -> float:
        """Return the one-sided p-value of a t-test for a mean below the threshold; 1 with n = 1."""
        return replace(self, mean=-self.mean).p_above(-threshold)


def paired_effect(differences: Sequence[float] | Array, level: float = LEVEL) -> Effect:
    """Return the effect of finite paired differences: Student's interval and the paired t-test.

    Equal differences have no spread, hence no interval; p is that of their signs. If most differences are
    equal and at most six are not, as for times read off at evaluations, there is no interval either: their
    standard deviation is mostly luck. Then p is that of sign flips, if larger and above 5 %.

    Args:
        differences: One for each seed.
        level: The interval's; see `simultaneous_level` for several that are to hold together.

    Raises:
        ValueError: There is no difference, or one is not finite.
    """
    values = np.asarray(differences, float)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError("an effect needs one finite difference at least, and nothing else")
    mean, n = float(values.mean()), len(values)
    if n == 1:
        return Effect(mean, -inf, inf, 1.0, nan, 1)
    std = float(values.std(ddof=1))
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        # Without a spread there is no t; for n equal differences a sign test is used.
        return Effect(mean, -inf, inf, 1.0 if mean == 0 else 2.0 ** (1 - n), 0.0, n)
    error = std / sqrt(n)
    p = float(2 * special.stdtr(n - 1, -abs(mean) / error))
    if _mostly_equal(values):
        return Effect(mean, -inf, inf, backed(p, two_sided(sign_flip, values), ERROR), std, n)
    half = error * t_quantile(n, level)
    return Effect(mean, mean - half, mean + half, p, std, n)


def _mostly_equal(values: Array) -> bool:
    """Return whether more than half of the values are equal and at most six differ."""
    ordered, majority = np.sort(values), max(len(values) // 2 + 1, len(values) - MAX_UNEQUAL)
    spans = ordered[majority - 1 :] - ordered[: len(values) - majority + 1]
    return bool((spans <= ROUNDING * np.ptp(values)).any())


def seeds_to_decide(effect: Effect, power: float = 0.8, level: float = LEVEL) -> int | None:
    """Return the number of seeds for a paired test to tell an effect from 0.

    By the noncentral t, or by the sign test if all differences are equal; `level` is 1 − 0.05/k if k tests
    share the 5 %. None if the mean is 0, or the spread unknown.
    """
    if effect.mean == 0 or np.isnan(effect.std):
        return None
    by_signs = next(n for n in count(2) if 2.0 ** (1 - n) <= 1 - level)
    if effect.std == 0:
        return by_signs
    size = abs(effect.mean) / effect.std
    z = float(special.ndtri((1 + level) / 2) + special.ndtri(power))
    n = max(2, ceil((z / size) ** 2))  # the number if the spread were known
    while n < NORMAL_SEEDS and 1 - special.nctdtr(n - 1, size * sqrt(n), t_quantile(n, level)) < power:
        n += 1
    return max(n, by_signs) if effect.low == -inf else n


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method (1979), in the order given."""
    adjusted = holm_by_question({at: {"": p} for at, p in enumerate(p_values)})
    return [adjusted[at, ""] for at in range(len(p_values))]


def holm_by_question(
    questions: Mapping[QuestionKey, Mapping[str, float]],
) -> dict[tuple[QuestionKey, str], float]:
    """Return p-values of hypotheses, adjusted for the number of questions still open.

    At most one of the hypotheses of a question is true: A and B are equal, or they differ by at least the
    margin. So the number of true hypotheses is at most the number of questions with a hypothesis not rejected
    yet (Shaffer, JASA 81, 1986); with one hypothesis a question this is Holm's correction. A question must
    not be dropped as soon as one of its two hypotheses is rejected: the other may still be true.
    """
    open_tests = {question: len(tests) for question, tests in questions.items()}
    open_questions = sum(map(bool, open_tests.values()))
    adjusted, largest = {}, 0.0
    ordered = sorted(
        (p, at, name, question)
        for at, (question, tests) in enumerate(questions.items())
        for name, p in tests.items()
    )
    for p, _, name, question in ordered:
        largest = max(largest, min(1.0, p * open_questions))
        adjusted[question, name] = largest
        open_tests[question] -= 1
        open_questions -= not open_tests[question]
    return adjusted


def two_sided(test: Callable[[Array], float], differences: Array) -> float:
    """Return a two-sided p-value: twice the smaller of a one-sided test's in both directions."""
    return min(1.0, 2 * min(test(differences), test(-differences)))


def agreed(differences: np.ndarray) -> float:
    """Return the p-value for a mean above 0 from t, t corrected for skewness, and sign flips.

    Args:
        differences: Finite values [seeds].

    Returns:
        The larger p-value of both t-tests; or that of the sign-flip test if still larger and above 2.5 %, so
        that fewer than six seeds show nothing.
    """
    p = max(paired_effect(differences).p_above(0), skewed(differences))
    return p if p > SIDE else backed(p, sign_flip(differences))


def backed(p: float, exact: float, error: float = SIDE) -> float:
    """Return a p-value, or the exact p-value where larger and above the error."""
    return p if exact <= error else max(p, exact)


def skewed(differences: np.ndarray) -> float:
    """Return the p-value of a t-test for a mean above 0 after Hall's transformation against skewness.

    A skewness against the finding, of `SKEW` or more, is assumed: few seeds do not show a long tail.

    Source: Hall, Journal of the Royal Statistical Society B 54 (1992), pp. 221–228.
    """
    n, mean = len(differences), float(differences.mean())
    if n < 3 or np.ptp(differences) <= ROUNDING * np.abs(differences).max():  # no spread: all signs alike
        return 2.0**-n if mean > 0 else 1.0
    scaled = (differences - mean) / differences.std(ddof=1)
    skew = min(-SKEW, n / ((n - 1) * (n - 2)) * float((scaled**3).sum()))
    size = straightened(mean / float(differences.std(ddof=1)), skew) + skew / (6 * n)
    return float(special.stdtr(n - 1, -sqrt(n) * size))


def straightened(size: float, skew: float = -SKEW) -> float:
    """Return an effect in standard deviations after Hall's transformation, without the bias term.

    The result is at least half of the effect: for large effects the cubic no longer follows the tail.
    """
    return max(size + skew * size**2 / 3 + skew**2 * size**3 / 27, size / 2)


def sign_flip(differences: np.ndarray) -> float:
    """Return the p-value for values above 0 by all 2ⁿ choices of signs; exact for symmetry about 0.

    The distribution of the sum of values above 0 is computed on a grid of `GRID` steps. Sums that differ from
    the observed sum by no more than the rounding to the grid count as equal.
    """
    sizes = np.abs(differences)
    if not sizes.any():
        return 1.0
    steps = np.rint(sizes / sizes.sum() * GRID).astype(int)
    law = np.zeros(steps.sum() + 1)  # probability of each sum
    law[0], top = 1.0, 1
    for step in steps:
        half = 0.5 * law[:top]
        law[:top] = half
        law[step : step + top] += half
        top += step
    return float(law[max(0, steps[differences > 0].sum() - len(steps) // 2) :].sum())


def draw_above(number: float, values: np.ndarray) -> float:
    """Return the p-value for a number above the distribution of `values`; exact for an exchangeable draw."""
    return float(1 + (values >= number).sum()) / (len(values) + 1)


def sign_test(differences: np.ndarray) -> float:
    """Return the p-value of the sign test for a median above 0; values equal to 0 do not count."""
    above, below = int((differences > 0).sum()), int((differences < 0).sum())
    return float(special.bdtrc(above - 1, above + below, 0.5)) if above else 1.0


class PairedEstimate(ABC):
    """Estimate over paired seeds with an interval and one-sided tests, for verdicts on claims."""

    mean: float
    low: float
    high: float
    n: int  # seeds

    @abstractmethod
    def differences(self, threshold: float) -> Array:
        """Return the excess over the threshold, seed by seed."""

    def test(self, differences: Array) -> float:
        """Return a one-sided p-value for values above 0; by default three tests must agree (`agreed`)."""
        return agreed(differences)

    def p_above(self, threshold: float) -> float:
        """Return a one-sided p-value for an estimate above the threshold."""
        return self.test(self.differences(threshold))

    def p_below(self, threshold: float) -> float:
        """Return a one-sided p-value for an estimate below the threshold."""
        return self.test(-self.differences(threshold))

    def p_within(self, margin: float) -> float:
        """Return the p-value of equivalence to 0 within the margin, by two tests in opposite directions."""
        return min(1.0, 2 * max(self.p_above(-margin), self.p_below(margin)))


class PairedMean(PairedEstimate):
    """Mean of paired differences with Student's interval."""

    def __init__(self, values: Array, level: float = LEVEL) -> None:
        effect = paired_effect(values, level)
        self.values, self.n = values, effect.n
        self.mean, self.low, self.high = effect.mean, effect.low, effect.high

    def differences(self, threshold: float) -> Array:
        return np.asarray(self.values - threshold)


class PairedMedian(PairedEstimate):
    """Median of paired differences, also infinite, with the sign test and an interval of order statistics.

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


class RatioEstimate(PairedEstimate):
    """Ratio of two paired means (Fieller): the interval has all r for which t accepts top − r · bottom = 0.

    Exact for normal values, unlike a bootstrap of few seeds. All of R if the mean of `bottom` may be 0.
    """

    def __init__(self, top: Array, bottom: Array, level: float = LEVEL) -> None:
        self.top, self.bottom, self.n, self.level = top, bottom, len(top), level
        below = float(bottom.mean())
        self.mean = float(top.mean()) / below if below else nan
        self.low, self.high = self._interval()

    def _interval(self) -> tuple[float, float]:
        """Return the ends of the interval: the roots of a quadratic equation in r."""
        if self.n < 2:
            return -inf, inf
        (xx, xy), (_, yy) = np.cov(self.top, self.bottom) * t_quantile(self.n, self.level) ** 2 / self.n
        x, y = self.top.mean(), self.bottom.mean()
        a, b, c = y * y - yy, x * y - xy, x * x - xx
        if a <= 0:
            return -inf, inf
        root = sqrt(max(0.0, b * b - a * c))
        return float(b - root) / a, float(b + root) / a

    def differences(self, threshold: float) -> Array:
        """Return top − threshold · bottom, seed by seed, with the sign of the bottom."""
        return np.asarray(np.sign(self.bottom.mean()) * (self.top - threshold * self.bottom))


def spread_ratio(top: Array, bottom: Array, level: float = LEVEL) -> RatioEstimate:
    """Return the ratio of mean distances from the median, for two samples paired by seed.

    ValueError if `bottom` does not vary.

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
        """Number of seeds."""
        return int(self.values.shape[1])

    @cached_property
    def mean(self) -> float:
        """Spearman's ρ of the means; NaN where either side does not vary."""
        sides = (side.mean(1) if side.ndim == 2 else side for side in (self.values, self.others))
        return spearman(*sides)

    def p_above(self, threshold: float) -> float:
        """Return the p-value for agreement; 1 where ρ of the means does not reach the threshold."""
        return self._tail[0] if self.mean >= threshold else 1.0

    def p_below(self, threshold: float) -> float:
        """Return the p-value for opposition; 1 where ρ of the means reaches the threshold."""
        return self._tail[1] if self.mean < threshold else 1.0

    @property
    def least_p(self) -> float:
        """Smallest p-value possible with a single seed."""
        return 1 / float(special.factorial(len(self.values), exact=True))

    @cached_property
    def _tail(self) -> tuple[float, float]:
        """Chance probabilities of a rank sum ≥ and ≤ the observed sum; doubled ranks are integers."""
        if len(self.values) > MAX_RANKED:
            raise ValueError(f"{len(self.values)} values: only {MAX_RANKED} can be ranked by the exact test")
        law, observed = np.ones(1), 0  # law[s]: probability of a sum s
        for seed in range(self.n):
            other_values = self.others[:, seed] if self.others.ndim == 2 else self.others
            mine, theirs = 2 * ranks(self.values[:, seed]), 2 * ranks(other_values)
            law = np.convolve(law, _law(tuple(sorted(mine)), tuple(sorted(theirs))))
            observed += round(float(mine @ theirs))
        return float(min(1.0, law[observed:].sum())), float(min(1.0, law[: observed + 1].sum()))


@cache
def _law(mine: tuple[float, ...], ranks: tuple[float, ...]) -> Array:
    """Return the probability of each value of Σ mine · other, over all orders of `mine`."""
    orders = np.array(list(permutations(mine)))
    sums = np.rint(orders @ np.array(ranks)).astype(int)
    return np.asarray(np.bincount(sums) / len(orders))


def ranks(values: Array) -> Array:
    """Return ranks from 1; ties share the mean rank."""
    below = (values[:, None] > values[None, :]).sum(1)
    alike = (values[:, None] == values[None, :]).sum(1)
    return np.asarray(below + (alike + 1) / 2)


def spearman(first: Array, second: Array) -> float:
    """Return Spearman's rank correlation; NaN where either side does not vary."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return nan
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])
