"""Numbers that errata state, computed here once more."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, exp
from typing import Any

import numpy as np
import pytest

from benchmarks.discrepancies import discrepancies

CODE = {entry.id: entry.code for entry in discrepancies()}


def f80(clients: int) -> list[Fraction]:
    """τ_i = 1 − 0.8 i/(M − 1)."""
    return [1 - Fraction(4, 5) * Fraction(i, clients - 1) for i in range(clients)]


def in_floats(clients: int) -> list[float]:
    """The same in the order of operations of the published code."""
    return [1 - i * 80.0 / 100 / (clients - 1) for i in range(clients)]


def normalised(values: Sequence[Any]) -> Any:
    return np.array(values, float) / float(sum(values))


def listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def test_surrogate_weights_of_fedfix() -> None:
    """X-3: shares of ⌈τ_i/Δt⌉ = (5, 4, 3, 1), and of its inverse."""
    windows = [ceil(time / Fraction(1, 5)) for time in f80(4)]
    assert windows == [5, 4, 3, 1]
    assert listed(normalised(windows)) in CODE["X-3"]
    assert listed(normalised([1 / count for count in windows])) in CODE["X-3"]


def one_by_one(times: Sequence[Any], until: int) -> list[int]:
    """Who arrives in asynchronous FedAvg, as the published code finds it: the smallest return time."""
    back, arrivals = list(times), []
    while min(back) <= until:
        client = min(range(len(times)), key=lambda i: back[i])
        arrivals.append(client)
        back[client] = back[client] + times[client]
    return arrivals


def in_twos(times: Sequence[Any], until: int) -> int:
    """Aggregations of FedBuff-2: the two that return first, both restarted when the second is there."""
    back, count = list(times), 0
    while True:
        first = sorted(range(len(times)), key=lambda i: (back[i], i))[:2]
        now = max(back[i] for i in first)
        if now > until:
            return count
        count += 1
        for client in first:
            back[client] = now + times[client]


def participations(times: Sequence[Any], period: Any, rounds: int) -> list[int]:
    """How often each client takes part in FedFix."""
    back, count = list(times), [0] * len(times)
    for n in range(rounds):
        now = (n + 1) * period
        for client, time in enumerate(times):
            if back[client] <= now:
                count[client] += 1
                back[client] = now + time
    return count


def test_times_in_floats() -> None:
    """X-4: what rounding does to windows, ties and numbers of aggregations."""
    exact, floats = f80(4), in_floats(4)
    assert participations(exact, Fraction(1, 5), 20)[3] == 20
    assert participations(floats, 0.2, 20)[3] == 13
    assert "13 participations in 20 rounds" in CODE["X-4"]
    for clients in (4, 20):
        assert (ceil(in_floats(clients)[-1] / 0.2), ceil(f80(clients)[-1] / Fraction(1, 5))) == (2, 1)
    ours, theirs = one_by_one(exact, 2000), one_by_one(floats, 2000)
    moved = sum(one != other for one, other in zip(ours, theirs, strict=False))
    assert f"{moved:,} of the {len(ours):,} arrivals" in CODE["X-4"]
    assert (in_twos(exact, 2000), in_twos(floats, 2000)) == (7407, 7426)
    assert "7,426 aggregations, 7,407 in exact time" in CODE["X-4"]


@pytest.mark.parametrize("shuffled", [False, True])
def test_workers_at_work_in_asgrads_code(*, shuffled: bool) -> None:
    """X-34: a job for a busy worker is queued, and begins when this worker is assigned the next one."""
    random, n = np.random.default_rng(0), 8
    working, order, counts = list(range(n)), [], []
    for _ in range(20_000):
        counts.append(len(working))
        working.remove(int(random.choice(working)))
        order = order or random.permutation(n).tolist()
        worker = order.pop() if shuffled else int(random.integers(n))
        if worker not in working:
            working.append(worker)  # on the oldest of its jobs
    assert f"{np.mean(counts[1000:]):.2f} of {n} workers" in CODE["X-34"]


def test_weights_of_fedfix_under_exponential_times() -> None:
    """X-29: ⌈τ_i/Δt⌉ (1 − e^(−Δt/τ_i)) over its mean."""
    times, period = f80(10), Fraction(1, 2)
    off = [ceil(time / period) * (1 - exp(-period / time)) for time in times]
    relative = np.array(off) / np.mean(off)
    assert f"{relative.min():.2f} to {relative.max():.2f}" in CODE["X-29"]
