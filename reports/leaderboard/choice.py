"""Choice of points of a design: tuned to a scenario, a single setting for others, best of k at random."""

from math import comb

import numpy as np

from reports.leaderboard.costs import Array, Costs

ALL = slice(None)


def least(cost: Array, accuracy: Array) -> Array:
    """Return the point of least cost, then of greatest accuracy, then the first [...]; of [..., points]."""
    known = np.where(np.isnan(cost), np.inf, cost)
    level = known <= known.min(-1, keepdims=True)
    return np.where(level, np.nan_to_num(accuracy, nan=-np.inf), -np.inf).argmax(-1)


def tuned(costs: Costs, seeds: Array | slice = ALL) -> Array:
    """Return each scenario's best point [A, S] among points with all design seeds, by means over seeds.

    Args:
        costs: The table of points × scenarios.
        seeds: Which design seeds count, by their places; all if left out.
    """
    again = costs.again
    best = least(again.cost[..., seeds].mean(-1), again.accuracy[..., seeds].mean(-1))
    return np.take_along_axis(again.points, best[..., None], -1)[..., 0]


def one_setting(costs: Costs, times: Array | None = None) -> Array:
    """Return for each scenario the best point over the other scenarios of the workload [A, S].

    All points have the first design seed, on which they are compared; a point that a scenario lacks is not
    chosen. Scenarios that are left alone, because none of the others was drawn, have -1.

    Args:
        costs: The table of points × scenarios.
        times: How often each scenario counts [S]; once if left out.
    """
    weights = costs.siblings * (np.ones(len(costs.scenarios)) if times is None else times)
    return _over(costs, weights)


def for_others(costs: Costs) -> Array:
    """Return for each scenario the best point over all scenarios of the workload [A, S].

    It is what one setting is for scenarios that are not among them.
    """
    return _over(costs, costs.siblings | np.eye(len(costs.scenarios), dtype=bool))


def _over(costs: Costs, weights: Array) -> Array:
    """Return the points of least cost under weights of scenarios [S, S]; -1 where all weights are 0."""
    first = (table[..., 0].swapaxes(0, 1) for table in (costs.design, costs.accuracy))  # [S, A, P]
    cost, accuracy = (np.tensordot(weights.astype(float), table, 1).swapaxes(0, 1) for table in first)
    return np.where(weights.any(1), least(cost, accuracy), -1)


def best_of(cost: Array) -> Array:
    """Return the expected least cost of k points drawn without replacement, k = 1 … n [n]; of n points.

    The i-th least of n is the least of k drawn with probability C(n − i, k − 1) / C(n, k).
    """
    n, ordered = len(cost), np.sort(cost)
    weights = [[comb(n - i, k - 1) / comb(n, k) for i in range(1, n + 1)] for k in range(1, n + 1)]
    return np.array(weights) @ ordered


def budget_curves(costs: Costs, reference: str) -> Array:
    """Return the expected score of the best of k random points of the design, k = 1 … 32 [A, k].

    On the first design seed, over the best point of the reference on that seed, whose curve ends at 0.
    """
    first = costs.design[..., 0]
    expected = np.apply_along_axis(best_of, -1, first)  # [A, S, k]
    own = costs.strategies.index(reference)
    return (expected[own, :, -1][None, :, None] - expected).mean(1)
