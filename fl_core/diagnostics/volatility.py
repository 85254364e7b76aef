"""Fluctuation of a learning curve, for claims about the stability of a strategy.

Called by `reports.claims.measured`.

Fixed: both definitions, by which stored numbers of claims are computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SPIKE_FACTOR = 3.0  # a spike is away from both neighbours by more than this many median |steps|


@dataclass(frozen=True)
class Volatility:
    """The steps v_{k+1} − v_k of a curve, and spikes.

    A spike is a point above both its neighbours, or below both, by more than three times the curve's median
    |step|. A lasting drop is no spike.
    """

    step_std: float  # standard deviation of the steps
    spikes: int


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
    # At each inner point, how far it is above or below the nearer of its neighbours; 0 on a slope
    height = np.where(earlier * after < 0, np.minimum(np.abs(earlier), np.abs(after)), 0.0)
    spikes = np.count_nonzero(height > SPIKE_FACTOR * np.median(np.abs(steps)))
    return Volatility(step_std=float(steps.std()), spikes=int(spikes))
