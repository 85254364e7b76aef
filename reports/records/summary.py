"""What the seeds of a strategy come to: means and deviations of values, medians of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and sample standard deviation over seeds; the latter is NaN for fewer than two."""

    mean: float
    std: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return mean and deviation of the values that are present."""
        known = [value for value in values if not np.isnan(value)]
        mean = float(np.mean(known)) if known else nan
        return cls(mean, float(np.std(known, ddof=1)) if len(known) > 1 else nan, len(known))


@dataclass(frozen=True, slots=True)
class Reach:
    """When a target was reached: the median over seeds, in which never is ∞."""

    median: float  # NaN if no run ended
    reached: int  # seeds that did
    of: int  # seeds that could

    @classmethod
    def of_times(cls, times: Sequence[float]) -> Reach:
        """Return the median of one time per seed, ∞ where the target was never reached."""
        return cls(float(np.median(times)) if times else nan, sum(time < inf for time in times), len(times))
