"""The slack of a proven bound: how many times what was measured it is, where it is tightest."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike


def slack(bound: Callable[[int], float], values: ArrayLike, every: int = 1) -> float:
    """Return the least ratio of bound(T) to the mean of the first T values; T is a multiple of `every`.

    At least 1 where the bound holds everywhere; ∞ where nothing is measured.
    """
    means = np.cumsum(values) / np.arange(1, np.size(values) + 1)
    ends = range(every, len(means) + 1, every)
    return min((float(bound(end)) / means[end - 1] for end in ends if means[end - 1] > 0), default=np.inf)
