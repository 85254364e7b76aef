"""Asynchronous FedAvg, FedFix and FedBuff-c, written out from Fraboni et al., JMLR 2023, with exact times.

Schedule and trajectory are both computed here (Algorithm 1; §4; schedules as in the published code).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp
from typing import Any

import numpy as np
import pytest
from uneven import (
    CLIENTS,
    FIRST,
    IMPORTANCE,
    SERVER_LR,
    TIMES,
    Array,
    assert_same,
    delta,
    first_of_c,
    simulated,
)

ROUNDS = 500


def first_back(back: list[Fraction]) -> int:
    """The client that returns first, of equals the lowest."""
    return min(range(CLIENTS), key=lambda client: (back[client], client))


def one_by_one(weights: list[float]) -> tuple[list[Array], list[tuple[int, int]]]:
    """θ ← θ + η_g d_i Δ_i at every return; versions, and who worked on which."""
    models, back, version, arrivals = [FIRST], list(TIMES), [0] * CLIENTS, []
    while len(arrivals) < 400:
        client = first_back(back)
        arrivals.append((client, version[client]))
        models.append(models[-1] + SERVER_LR * weights[client] * delta(models[version[client]], client))
        version[client] = len(models) - 1
        back[client] += TIMES[client]
    return models, arrivals


@pytest.mark.parametrize("weights", ["time_based", "identical"])
def test_async_fedavg(weights: str) -> None:
    """d_i = (Σ_j 1/τ_j) τ_i p_i (eq. 12), or 1."""
    rate = sum(1 / time for time in TIMES)
    d = [
        float(rate * time) * p if weights == "time_based" else 1.0
        for time, p in zip(TIMES, IMPORTANCE, strict=True)
    ]
    run = simulated("async_fedavg", weights=weights)
    expected, arrivals = one_by_one(d)
    assert run.arrivals == arrivals
    assert max(n - version for n, (_, version) in enumerate(arrivals)) > 5  # staleness
    assert_same(run, expected, at_least=401)


def test_async_fedavg_with_estimated_times() -> None:
    """Eq. (12) with the mean time that each client has shown; for the unheard, the mean of all jobs."""
    run = simulated("async_fedavg", weights="estimated")
    _, arrivals = one_by_one([1.0] * CLIENTS)  # weights do not move the schedule
    models, heard = [FIRST], []
    for client, version in arrivals:
        heard.append(client)
        mean = sum(TIMES[i] for i in heard) / len(heard)
        times = [TIMES[i] if i in heard else mean for i in range(CLIENTS)]
        d = float(sum(1 / time for time in times) * times[client]) * IMPORTANCE[client]
        models.append(models[-1] + SERVER_LR * d * delta(models[version], client))
    assert_same(run, models, at_least=401)


def in_windows(fields: dict[str, Any]) -> tuple[list[Array], int]:
    """FedFix: who has returned by the end of a window is aggregated there, and starts anew; empty windows."""
    period, growth = Fraction(fields["period"]), Fraction(fields.get("growth", 0))
    models, back, version, empty, now = [FIRST], list(TIMES), [0] * CLIENTS, 0, Fraction(0)
    for n in range(ROUNDS):
        window = period * (1 + growth * n)
        now += window
        here = [client for client in range(CLIENTS) if back[client] <= now]
        empty += not here
        step = np.zeros(2)
        for client in here:
            if fields.get("weights") == "exponential":
                d = IMPORTANCE[client] / (1 - exp(-window / TIMES[client]))
            else:
                d = ceil(TIMES[client] / window) * IMPORTANCE[client]
            step = step + d * delta(models[version[client]], client)
            back[client], version[client] = now + TIMES[client], n + 1
        models.append(models[-1] + SERVER_LR * step)
    return models, empty


@pytest.mark.parametrize(
    ("fields", "some_empty"),
    [
        ({"period": "3/10"}, False),
        ({"period": "1/5"}, False),  # the fastest returns exactly at the end of a window
        ({"period": "1/8"}, True),
        ({"period": "1/8", "weights": "exponential"}, True),
        ({"period": "1/8", "growth": "1/16"}, True),
        ({"period": "1/8", "growth": "1/16", "weights": "exponential"}, True),
    ],
    ids=str,
)
def test_fedfix(fields: dict[str, Any], some_empty: bool) -> None:
    """d_i = ⌈τ_i/Δt⌉ p_i (eq. 14), or p_i / (1 − e^(−Δt/τ_i)); an empty window is an iteration, too."""
    run = simulated("fedfix", **fields)
    expected, empty = in_windows(fields)
    assert (empty > 0) is some_empty
    count = len(run.versions)
    assert count >= 75
    assert_same(run, expected[:count], at_least=75)


@pytest.mark.parametrize("buffer", [3, 9])
@pytest.mark.parametrize("weights", ["identical", "participation"])
def test_fedbuff_c(buffer: int, weights: str) -> None:
    """d_i = 1/c, or p_i over the share of aggregations that the client takes part in (10,000 of them).

    No more than all clients can be waited for.
    """
    size = min(buffer, CLIENTS)
    d = [1 / size] * CLIENTS
    if weights == "participation":
        took_part = [client for arrivals in first_of_c(size, 10_000) for client, _ in arrivals]
        d = [IMPORTANCE[client] * 10_000 / took_part.count(client) for client in range(CLIENTS)]
    run = simulated("fedbuff_c", buffer=buffer, weights=weights)
    rounds = first_of_c(size, 400 // size)
    models = [FIRST]
    for arrivals in rounds:
        step = sum(d[client] * delta(models[version], client) for client, version in arrivals)
        models.append(models[-1] + SERVER_LR * step)
    if size < CLIENTS:  # in which order those of a full round arrive has no effect
        assert run.arrivals[: size * len(rounds)] == [arrival for arrivals in rounds for arrival in arrivals]
    assert_same(run, models, at_least=80)
