"""Closed forms of Fraboni et al. (JMLR 2023): Table 2, limits of FedFix, exponential times."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

from asyncfl.claims.computed.fraboni_schedules import equal, hardware, scheme_of
from asyncfl.claims.theory import fraboni, schemes
from fl_core.metrics import FP_LOSS
from fl_core.theory import weights

# -- Table 2 --------------------------------------------------------------------------------------


def window_is_fair(*, scheme: str, clients: int, spread: int, period: str = "1/2") -> bool:
    """Whether the weights of W simulated aggregations add up to W p_i for every client (Property 2)."""
    column, schedule = scheme_of(scheme, hardware(clients, spread), period)
    given = [Fraction(0)] * clients
    for here in islice(schedule, column.window):
        for client in here:
            given[client] += column.weights[client]
    return given == [Fraction(column.window, clients)] * clients


def bounds_hold(*, scheme: str, clients: list[int], spreads: list[int], periods: list[str]) -> bool:
    """Whether delay and window lie between the bounds that Table 2 prints, on every such hardware.

    Times are counted in the largest unit in which they are whole numbers, as §4.1 has it.
    """
    cases = [(hardware(m, x), period) for m in clients for x in spreads for period in periods]
    return all(_within_printed(scheme, times, period) for times, period in cases)


def _within_printed(name: str, times: Sequence[Fraction], period: str) -> bool:
    scheme, _ = scheme_of(name, times, period)
    clients, ratio = len(times), math.ceil(max(times) / min(times))
    if name == "synchronous":
        return (scheme.delay, scheme.window) == (0, 1)
    if name == "fedfix":
        return scheme.delay <= ratio and scheme.window <= clients * ratio**clients
    slowest = int(max(times) / schemes.common_divisor(times))
    return (
        clients - 1 <= scheme.delay <= clients * ratio
        and clients <= scheme.window <= clients * slowest ** (clients - 1)
        and scheme.beta <= max(times) / min(times)
    )


def as_often_as_clients(*, clients: list[int], spreads: list[int], duration: int) -> bool:
    """Whether asynchronous FedAvg always aggregates at least M times as often as the synchronous one."""

    def aggregations(name: str, m: int, x: int) -> int:
        return scheme_of(name, hardware(m, x))[0].aggregations(Fraction(duration))

    return all(
        aggregations("asynchronous", m, x) >= m * aggregations("synchronous", m, x)
        for m in clients
        for x in spreads
    )


# -- exponential times (§4.1) ---------------------------------------------------------------------


def async_under_exponential_times(*, clients: int, spread: int) -> list[Fraction]:
    """M q̃_i of asynchronous FedAvg with weights (12): 1 where they are right [M].

    A client starts again at once and returns once in τ_i on average: a share (1/τ_i)/Σ(1/τ_j) of arrivals.
    """
    times = hardware(clients, spread)
    d, rate = weights.time_based(equal(clients), times), sum(1 / time for time in times)
    return [clients * d_i / time / rate for d_i, time in zip(d, times, strict=True)]


def fedfix_under_exponential_times(*, clients: int, spread: int, period: str) -> list[float]:
    """M q̃_i of FedFix with weights (14): 1 where they are right [M].

    A client at work when a window of length Δt opens returns within it with probability 1 − e^{−Δt/τ_i}.
    """
    times, length = hardware(clients, spread), Fraction(period)
    d = weights.fedfix(equal(clients), times, length)
    return [clients * float(d_i) * -math.expm1(-length / time) for d_i, time in zip(d, times, strict=True)]


def step_limit_suffices(*, clients: int, spread: int, steps: int) -> bool:
    """Whether the printed limit of η_l meets all that the proof asks of asynchronous FedAvg."""
    column = schemes.async_fedavg(equal(clients), hardware(clients, spread))
    weight = float(max(column.weights))
    run = fraboni.FraboniSetting(1.0, 1, 0.0, float(column.beta), column.delay, steps=steps, weight=weight)
    return all(replace(run, lr=run.lr_limit()).conditions().values())


# -- of runs --------------------------------------------------------------------------------------


def unusable_share(runs: Sequence[Any]) -> float:
    """Share of recorded runs, one per pair of η_l and K, that diverge or end above twice their best loss."""
    finals = [float(run.files.curve[FP_LOSS][-1]) if run.status.finite else math.inf for run in runs]
    return sum(final > 2 * min(finals) for final in finals) / len(finals)
