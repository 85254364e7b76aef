"""Aggregation weights d_i for unbiased asynchronous schemes, from the clients' mean update times τ_i.

Asynchronous FedAvg, FedBuff-c and FedFix weigh updates by them. Fraboni, Vidal, Kameni, Lorenzi: A general
theory for federated optimization with asynchronous and heterogeneous clients updates. JMLR 2023, §4, eq.
(12), (14), and the FedBuff weights of its published code.

Times are fractions in any one unit. Weights are fractions where the importances p are, else floats.

Fixed: the values, by which three strategies step (golden trajectories for their defaults; all are tested in
tests/fl_core/theory/test_aggregation_weights.py).
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import TypeVar

Real = TypeVar("Real", float, Fraction)


def time_based(p: Iterable[Real], times: Sequence[Fraction]) -> list[Real]:
    """Return d_i = (Σ_j 1/τ_j) τ_i p_i: asynchronous FedAvg, a client per aggregation (eq. 12).

    Also holds for exponential times with these means.
    """
    rate = sum(1 / time for time in times)
    return _scaled(p, [rate * time for time in times])


def fedfix(p: Iterable[Real], times: Sequence[Fraction], period: Fraction) -> list[Real]:
    """Return d_i = ⌈τ_i/Δt⌉ p_i: FedFix with an aggregation every `period` Δt and fixed times (eq. 14)."""
    return _scaled(p, [Fraction(math.ceil(time / period)) for time in times])


def fedfix_exponential(p: Iterable[float], times: Sequence[Fraction], period: Fraction) -> list[float]:
    """Return d_i = p_i / (1 − e^{−Δt/τ_i}): FedFix where times are exponential of mean τ_i.

    The paper keeps eq. (14) here (§4.1). But a client at work when a window of length Δt opens then returns
    within it with probability 1 − e^{−Δt/τ_i}, so that unbiased weights are the inverse of this.
    """
    return [float(p_i) / -math.expm1(-period / time) for p_i, time in zip(p, times, strict=True)]


def by_participation(p: Iterable[Real], participations: Sequence[int], rounds: int) -> list[Real]:
    """Return d_i = p_i · rounds / participations_i: FedBuff-c, as weighted by the published code.

    Raises:
        ValueError: A client never took part, for which no weight can make up.
    """
    absent = [client for client, count in enumerate(participations) if not count]
    if absent:
        raise ValueError(
            f"weights by participation are not defined for clients that never take part: {absent}. "
            "Choose other weights"
        )
    return _scaled(p, [Fraction(rounds, count) for count in participations])


def fedbuff_participations(times: Sequence[Fraction], size: int, rounds: int) -> list[int]:
    """Return how often each client takes part in `rounds` aggregations of FedBuff-c, c = `size`, fixed times.

    As in the published code: the c clients that return first are aggregated when the last of them is there,
    and restart together at that time; the first ones wait. Ties go to the lowest client.
    """
    denominator = math.lcm(*(time.denominator for time in times))
    ticks = [int(time * denominator) for time in times]  # as exact as fractions, and ten times as fast
    returns = [(time, client) for client, time in enumerate(ticks)]
    counts = [0] * len(times)
    heapify(returns)
    for _ in range(rounds):
        buffer = [heappop(returns) for _ in range(size)]
        latest = buffer[-1][0]
        for _, client in buffer:
            counts[client] += 1
            heappush(returns, (latest + ticks[client], client))
    return counts


def _scaled(p: Iterable[Real], factors: Sequence[Fraction]) -> list[Real]:
    """Return factors times importances: exact where both are, and plain floats (not numpy's) otherwise."""
    return [
        factor * p_i if isinstance(p_i, Fraction) else float(factor) * float(p_i)
        for p_i, factor in zip(p, factors, strict=True)
    ]
