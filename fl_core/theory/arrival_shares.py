"""Shares of arrivals of clients drawn for a limited number of jobs, from mean times τ_i.

Called by the laws in `strategies/participation.py`.

Fixed: the values, by which recorded sp/loss and sp/std are weighted.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm


def drawn(times: Sequence[Fraction], jobs: int) -> list[float]:
    """Return each client's share of all arrivals [n] with `jobs` ≤ n in flight, at most 1 for a client.

    Whoever replaces an arrival is drawn uniformly from the idle clients, the sender included. Where times are
    exponential, the busy clients S are a reversible chain with P(S) ∝ Π_{i∈S} τ_i: from S to S' = S − i + j
    at rate 1/((n − jobs + 1) τ_i), and P(S)/τ_i = P(S')/τ_j. A client that is busy ends a job at rate 1/τ_i,
    so that its share is ∝ P(i ∈ S)/τ_i ∝ e(τ without τ_i), the elementary symmetric polynomial of degree
    jobs − 1. All shares are equal for one job, and ∝ 1/τ_i for n. Exact up to the last division.
    """
    denominator = lcm(*(time.denominator for time in times))
    ticks = [int(time * denominator) for time in times]
    sums = [1] + [0] * (jobs - 1)  # e_0, e_1, … of all times
    for time in ticks:
        for k in range(jobs - 1, 0, -1):
            sums[k] += time * sums[k - 1]
    rates = {time: _without(sums, time) for time in set(ticks)}
    total = sum(rates[time] for time in ticks)
    return [rates[time] / total for time in ticks]


def _without(sums: Sequence[int], time: int) -> int:
    """Return the last elementary symmetric polynomial of all times except a single time."""
    polynomial = 0
    for total in sums:
        polynomial = total - time * polynomial
    return polynomial
