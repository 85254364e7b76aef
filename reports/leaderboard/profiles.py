"""Performance profiles: share of scenarios with the target met within a factor of the best time.

Dolan and Moré, Mathematical Programming 91, 2002; as in AlgoPerf (Dahl et al., 2023, §4.5).
"""

import numpy as np
import pandas as pd

from reports.leaderboard.rules import SCENARIO

LATEST = 4.0  # the factor up to which a profile counts


def ratios(results: pd.DataFrame) -> pd.DataFrame:
    """Return [scenario, strategy]: median time to the hard target over seeds, divided by the best strategy's.

    inf where the median seed never met it; scenarios in which no strategy met it are left out.

    Args:
        results: A row for each run, with its scenario and strategy.
    """
    times = results.pivot_table("time_hard", SCENARIO, "strategy", aggfunc="median", dropna=False)
    best = times.min(axis=1)
    return times[np.isfinite(best)].div(best[np.isfinite(best)], axis=0)


def profile(ratio: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return a strategy's factors τ, increasing from 1, and the share of scenarios with a ratio ≤ τ."""
    reached = np.sort(ratio[np.isfinite(ratio) & (ratio <= LATEST)].to_numpy())
    factors = np.unique(np.concatenate([[1.0], reached]))
    return factors, np.searchsorted(reached, factors, side="right") / len(ratio)
