"""Closed forms of Fraboni et al. (JMLR 2023): Table 2, limits of FedFix, exponential times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

from benchmarks.claims.computed.fraboni_schedules import equal, hardware, one_by_one, scheme_of
from fl_core.theory import fraboni, schemes, weights

# -- Table 2 --------------------------------------------------------------------------------------


def table_2(*, scheme: str, clients: int, spread: int, column: str, period: str = "1/2") -> object:
    """One value of Table 2: weights, alpha, beta, rate (aggregations per unit of time), delay or window."""
    value = getattr(scheme_of(scheme, hardware(clients, spread), period)[0], column)
    return list(value) if isinstance(value, tuple) else value


def steps_to_return(*, clients: int, spread: int, period: str) -> list[int]:
    """N'_i = ⌈τ_i/Δt⌉ [M]: client i takes part in every N'_i-th aggregation of FedFix."""
    return [math.ceil(time / Fraction(period)) for time in hardware(clients, spread)]


def staleness(*, clients: int, spread: int, cycles: int = 3) -> list[Fraction | int]:
    """Mean and largest staleness in simulated asynchronous FedAvg after the first cycle of W aggregations."""
    times = hardware(clients, spread)
    scheme, schedule = scheme_of("asynchronous", times)
    ages = [
        n - version
        for n, here in enumerate(islice(schedule, cycles * scheme.window))
        for version in here.values()
    ]
    ages = ages[scheme.window :]
    return [Fraction(sum(ages), len(ages)), max(ages)]


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


def aggregations(*, scheme: str, clients: int, spread: int, duration: int, period: str = "1/2") -> int:
    """N: how many aggregations fit into this time."""
    return scheme_of(scheme, hardware(clients, spread), period)[0].aggregations(Fraction(duration))


def as_often_as_clients(*, clients: list[int], spreads: list[int], duration: int) -> bool:
    """Whether asynchronous FedAvg always aggregates at least M times as often as the synchronous one."""
    return all(
        aggregations(scheme="asynchronous", clients=m, spread=x, duration=duration)
        >= m * aggregations(scheme="synchronous", clients=m, spread=x, duration=duration)
        for m in clients
        for x in spreads
    )


# -- limits ---------------------------------------------------------------------------------------


def fedfix_of_long_period_is_fedavg(*, clients: int, spread: int) -> bool:
    """Whether FedFix with Δt = τ_max has the weights, delay and window of synchronous FedAvg."""
    times = hardware(clients, spread)
    slow, _ = scheme_of("fedfix", times, str(max(times)))
    wanted, _ = scheme_of("synchronous", times)
    return all(getattr(slow, of) == getattr(wanted, of) for of in ("weights", "delay", "window", "periods"))


def weights_of_short_period(*, clients: int, spread: int, period: str) -> list[float]:
    """FedFix's weights for a small Δt over those of asynchronous FedAvg, each normalised to sum 1 [M]."""
    times, p = hardware(clients, spread), equal(clients)
    short, async_ = weights.fedfix(p, times, Fraction(period)), weights.time_based(p, times)
    return [float(d / sum(short) / (a / sum(async_))) for d, a in zip(short, async_, strict=True)]


def equal_times(*, clients: int) -> list[int]:
    """Window W and delay τ of asynchronous FedAvg, simulated, where all clients are equally fast."""
    schedule = one_by_one(hardware(clients, 0))
    rounds = list(islice(schedule, 4 * clients))
    window = next(
        w for w in range(1, len(rounds)) if len({client for here in rounds[:w] for client in here}) == clients
    )
    return [window, max(n - version for n, here in enumerate(rounds) for version in here.values())]


# -- exponential times (§4.1) ---------------------------------------------------------------------


def async_under_exponential_times(*, clients: int, spread: int) -> list[Fraction]:
    """M q̃_i of asynchronous FedAvg with weights (12): 1 where they are right [M].

    A client starts again at once and returns once in τ_i on average: a share (1/τ_i)/Σ(1/τ_j) of arrivals.
    """
    times = hardware(clients, spread)
    d, rate = weights.time_based(equal(clients), times), sum(1 / time for time in times)
    return [clients * d_i / time / rate for d_i, time in zip(d, times, strict=True)]


def fedfix_under_exponential_times(
    *, clients: int, spread: int, period: str, relative: bool = False
) -> list[float]:
    """M q̃_i of FedFix with weights (14): 1 where they are right [M]; `relative`: divided by their mean.

    A client at work when a window of length Δt opens returns within it with probability 1 − e^{−Δt/τ_i}.
    """
    times, length = hardware(clients, spread), Fraction(period)
    d = weights.fedfix(equal(clients), times, length)
    right = [clients * float(d_i) * -math.expm1(-length / time) for d_i, time in zip(d, times, strict=True)]
    mean = sum(right) / clients if relative else 1.0
    return [each / mean for each in right]


def importance_of_slowest(*, clients: int, spread: int, period: str) -> float:
    """Importance of client 0 under FedFix, relative to the correct one."""
    return fedfix_under_exponential_times(clients=clients, spread=spread, period=period)[0]


def smallest(**arguments: object) -> float:
    """The least of `fedfix_under_exponential_times`."""
    return min(fedfix_under_exponential_times(**arguments))  # type: ignore[arg-type]


def largest(**arguments: object) -> float:
    """The greatest of `fedfix_under_exponential_times`."""
    return max(fedfix_under_exponential_times(**arguments))  # type: ignore[arg-type]


def step_limit_suffices(*, clients: int, spread: int, steps: int) -> bool:
    """Whether the printed limit of η_l meets all that the proof asks of asynchronous FedAvg."""
    column = schemes.async_fedavg(equal(clients), hardware(clients, spread))
    weight = float(max(column.weights))
    run = fraboni.FraboniSetting(1.0, 1, 0.0, float(column.beta), column.delay, steps=steps, weight=weight)
    return all(replace(run, lr=run.lr_limit()).conditions().values())


# -- of runs --------------------------------------------------------------------------------------


def unusable_share(runs: Sequence[Any]) -> float:
    """Share of recorded runs, one per pair of η_l and K, that diverge or end above twice their best loss."""
    finals = [math.inf if run.diverged else float(run.files.curve["fp/loss"].iloc[-1]) for run in runs]
    return sum(final > 2 * min(finals) for final in finals) / len(finals)
