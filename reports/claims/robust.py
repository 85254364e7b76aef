"""One-sided tests of paired differences that need no normal distribution.

A t-test alone is wrong too often: accuracies over seeds are skewed, and looks and Holm's correction need
quantiles far out. `agreed` asks for a t-test that allows for skewness, and for an exact sign-flip test.
"""

from math import sqrt

import numpy as np
from scipy import special

from reports.statistics.paired import LEVEL, ROUNDING, student

SKEW = 0.5  # skewness that is assumed against what is to be shown, at least
GRID = 1 << 14  # steps into which the sum of |differences| is divided
SIDE = (1 - LEVEL) / 2  # error of a one-sided test
FEWEST = 6  # seeds with which sign flips can reach it: 2⁻⁶ is less, 2⁻⁵ is more


def agreed(differences: np.ndarray) -> float:
    """p-value for a mean above 0, by t and by t corrected for skewness, if sign flips allow one.

    Args:
        differences: Finite values [seeds].

    Returns:
        The larger of the two p-values; that of the sign-flip test where it is larger still and not below
        2.5 %, so that fewer than six seeds show nothing.
    """
    p = max(student(differences).p_above(0), skewed(differences))
    return p if p > SIDE else backed(p, sign_flip(differences))


def backed(p: float, exact: float) -> float:
    """A p-value, or that of an exact test where it is larger and not below 2.5 %."""
    return p if exact <= SIDE else max(p, exact)


def skewed(differences: np.ndarray) -> float:
    """p-value of a t-test for a mean above 0 after Hall's transformation, which takes skewness away.

    A skewness against the finding, of `SKEW` at least, is assumed: few seeds do not show a long tail.

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
    """An effect in standard deviations as Hall's transformation shrinks it, its bias left out.

    Half of the effect is kept at least: for a large one the cubic no longer follows the tail.
    """
    return max(size + skew * size**2 / 3 + skew**2 * size**3 / 27, size / 2)


def sign_flip(differences: np.ndarray) -> float:
    """p-value for values above 0 by all 2ⁿ choices of their signs: exact where they are symmetric about 0.

    The distribution of the sum of those above 0 is computed on a grid of `GRID` steps; sums that rounding may
    have parted from the observed one count as equal to it.
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
    """p-value for a number above what the values are drawn from: exact if it would be one more of them."""
    return float(1 + (values >= number).sum()) / (len(values) + 1)


def sign_test(differences: np.ndarray) -> float:
    """p-value for a median above 0: of the values that are not 0, as many are above 0 by chance."""
    above, below = int((differences > 0).sum()), int((differences < 0).sum())
    return float(special.bdtrc(above - 1, above + below, 0.5)) if above else 1.0
