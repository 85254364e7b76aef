"""How much a learning curve fluctuates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Volatility:
    """The steps v_{k+1} − v_k of a curve, and spikes.

    A spike is a point above both its neighbours, or below both, by more than three times the curve's median
    |step|. A lasting drop is no spike.
    """

    step_std: float  # standard deviation of the steps
    spikes: int


TIMES = 3.0  # of the median |step|


def volatility(values: Sequence[float]) -> Volatility:
    """Return the volatility of a curve.

    Args:
        values: The curve at equal distances [k].

    Raises:
        ValueError: The curve has fewer than 3 points, or is not finite.
    """
    curve = np.asarray(values, float)
    if len(curve) < 3 or not np.isfinite(curve).all():
        raise ValueError("volatility: a curve needs at least three points, all finite")
    steps = np.diff(curve)
    earlier, after = steps[:-1], steps[1:]
    lesser = np.where(earlier * after < 0, np.minimum(np.abs(earlier), np.abs(after)), 0.0)
    spikes = np.count_nonzero(lesser > TIMES * np.median(np.abs(steps)))
    return Volatility(step_std=float(steps.std()), spikes=int(spikes))
