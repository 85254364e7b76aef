"""Curves as step functions of a clock, known at evaluations and constant in between."""

from collections.abc import Sequence

import numpy as np

Array = np.ndarray


def value_at(grid: Array, clock: Array, values: Array) -> Array:
    """Return the step function through (clock, values) at every point of `grid`; NaN before the first step.

    Where several evaluations share one clock value, the last one counts.
    """
    last = np.searchsorted(clock, grid, side="right") - 1
    step_values = np.where(last >= 0, values[last], np.nan) if len(values) else np.full(len(grid), np.nan)
    return np.asarray(step_values, float)


def common_grid(clocks: Sequence[Array]) -> Array:
    """Return marks for comparing curves: at the k-th, each curve was evaluated k times or has ended.

    For curves that share their marks these are the marks themselves.
    """
    longest = max((len(clock) for clock in clocks), default=0)
    marks = [max(clock[min(k, len(clock) - 1)] for clock in clocks if len(clock)) for k in range(longest)]
    return np.unique(np.array(marks, float))
