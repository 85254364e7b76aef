"""Importance of parameters by PED-ANOVA (Watanabe, Bansal & Hutter, IJCAI 2023): where are the best trials?

`Search.importance` calls it at the end of a campaign, for a table on the report page. Numbers equal those of
Optuna's implementation, which imports scikit-learn and so takes seconds longer.

Fixed: equality with Optuna (tests/tuning/test_importance.py). Only pages show the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

# As in Optuna:
BEST_FRACTION = 0.1  # of the trials
GRID_POINTS = 50  # of a parameter with a range
MIN_WIDTH = 0.5 / 1.64  # standard deviation of a kernel in grid points: 90 % of it lie within its point
FLOOR = 1e-12  # added to densities, by which the divergence divides


def importance(trials: Sequence[FrozenTrial], losses: Sequence[float]) -> dict[str, float]:
    """Return each parameter's share, greatest first; empty if undetermined.

    Args:
        trials: Complete trials, all with the same parameters.
        losses: A number for each trial, smaller for better trials.
    """
    if len(trials) < 2:
        return {}
    cutoff = sorted(losses)[math.ceil(BEST_FRACTION * len(losses)) - 1]
    best = np.asarray(losses) <= cutoff
    divergences = {
        name: _divergence(distribution, [trial.params[name] for trial in trials], best)
        for name, distribution in trials[0].distributions.items()
    }
    total = sum(divergences.values())  # 0 if all trials are among the best
    names = sorted(divergences, key=lambda name: -divergences[name])
    return {name: divergences[name] / total for name in names} if total else {}


def _divergence(distribution: BaseDistribution, values: Sequence[Any], best: np.ndarray) -> float:
    """Return Pearson's divergence of the density of the best values from the density of all values."""
    if distribution.single():
        return 0.0
    if choices := getattr(distribution, "choices", None):
        points, count = (
            np.array([int(distribution.to_internal_repr(value)) for value in values]),
            len(choices),
        )
    else:
        points, count = _grid_points(distribution, values)
    density = _choice_density if choices else _range_density
    of_best, of_all = (
        density(np.bincount(chosen, minlength=count)) + FLOOR for chosen in (points[best], points)
    )
    return float(of_all @ (of_best / of_all - 1) ** 2)


def _grid_points(distribution: Any, values: Sequence[float]) -> tuple[np.ndarray, int]:
    """Return the nearest point of a grid over the range for each value, and the number of points."""
    scale = math.log if distribution.log else float
    low, high = scale(distribution.low), scale(distribution.high)
    count = GRID_POINTS
    if distribution.step is not None and distribution.log:
        size = distribution.high - distribution.low + 1
        count = min(math.ceil(math.log(size) / math.log(2)) + 1, count)
    elif distribution.step is not None:
        count = min(round((distribution.high - distribution.low) / distribution.step) + 1, count)
    steps = (np.array([scale(value) for value in values]) - low) / ((high - low) / (count - 1))
    return np.clip(np.ceil(steps - 0.5).astype(int), 0, count - 1), count


def _choice_density(counts: np.ndarray) -> np.ndarray:
    """Return the probability of each choice: a kernel for each observed choice, and a uniform kernel."""
    observed = np.flatnonzero(counts)
    kernels = np.full((len(observed) + 1, len(counts)), 1 / (len(observed) + 1))
    kernels[np.arange(len(observed)), observed] += 1
    return np.average(kernels / kernels.sum(axis=1, keepdims=True), axis=0, weights=[*counts[observed], 1])


def _range_density(counts: np.ndarray) -> np.ndarray:
    """Return the probability of each grid point: normal kernels of Scott's width, and a wide kernel."""
    observed, size = np.flatnonzero(counts), len(counts)
    weights, total = counts[observed], counts.sum()
    deviation = math.sqrt((observed - observed @ weights / total) ** 2 @ weights / max(1, total - 1))
    cumulated = np.cumsum(weights)
    lower = np.searchsorted(cumulated, total // 4, side="left")
    upper = np.searchsorted(cumulated, total * 3 // 4, side="right")
    quartiles = observed[min(len(observed) - 1, upper)] - observed[lower]
    width = 1.059 * min(quartiles / 1.34, deviation) * total**-0.2
    centres = np.array([*observed, (size - 1) / 2])
    widths = np.array([max(width, MIN_WIDTH)] * len(observed) + [size])
    edges = np.arange(size + 1)[:, np.newaxis] - 0.5
    below = np.vectorize(math.erf)((edges - centres) / (widths * math.sqrt(2)))
    kernels = np.diff(below, axis=0) / (below[-1] - below[0])
    return np.average(kernels, axis=1, weights=[*weights, 1])
