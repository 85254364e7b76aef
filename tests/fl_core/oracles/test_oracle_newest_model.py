"""Rennala and Ringmaster, which abandon what was begun on a model too old: plain loops from the papers.

Each has a heap of its own, so that also who arrives when, and who is restarted, is checked.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from quadratics import START, TIMES, N, assert_same, experiment, local_sgd, played

from fl_core.loop.simulation import Simulation, simulate

LR, STEPS = 0.1, 3  # η_l, K
SGD = {"name": "sgd", "steps": STEPS}
LENGTHS = [Fraction(time) for time in TIMES]


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_rennala(batch: int) -> None:
    """x ← x + η_g (1/S) Σ of the first S updates at x; then all begin anew at the next x.

    S = 1, S < n and S > n, where the fastest deliver several to one batch.
    """
    strategy = {"name": "rennala", "batch": batch, "local_lr": LR, "server_lr": 0.8, "local": SGD}
    now, expected, order = Fraction(0), [START], []
    for version in range(40):
        ends = {client: now + LENGTHS[client] for client in range(N)}
        total = np.zeros(2)
        for _ in range(batch):
            now, client = min((end, client) for client, end in ends.items())
            total += local_sgd(client, expected[-1], LR, STEPS)
            ends[client] = now + LENGTHS[client]
            order.append((client, version, now))
        expected.append(expected[-1] + 0.8 * total / batch)
    arrivals, found = played(experiment(strategy, updates=40 * batch))
    assert_same(found, expected, 41)
    tick = now / arrivals[-1].time
    assert [(seen.client, seen.start, seen.time * tick) for seen in arrivals] == order
    assert len({client for client, _, _ in order}) == {1: 1, 3: 2, 7: 4}[batch]


@pytest.mark.parametrize("most", [1, 2, 4, 100])
def test_ringmaster(most: int) -> None:
    """x ← x + η_g Δ at every arrival; who counts R updates since it began is restarted at the new x.

    A counter a client: one more at every update, none on its own arrival or restart. R = 1 leaves only the
    fastest client, R = 2 and 4 some of them, R = 100 all.
    """
    strategy = {"name": "ringmaster", "max_delay": most, "local_lr": LR, "server_lr": 0.8, "local": SGD}
    expected, order, restarts = [START], [], 0
    ends, begun, counter = dict(enumerate(LENGTHS)), [0] * N, [0] * N
    for version in range(1, 101):
        now, client = min((end, client) for client, end in ends.items())
        order.append((client, begun[client], now))
        expected.append(expected[-1] + 0.8 * local_sgd(client, expected[begun[client]], LR, STEPS))
        counter = [count + 1 for count in counter]
        for other in range(N):
            if other == client or counter[other] >= most:
                restarts += other != client
                ends[other], begun[other], counter[other] = now + LENGTHS[other], version, 0
    arrivals, found = played(experiment(strategy, updates=100))
    assert_same(found, expected, 101)
    tick = order[-1][2] / arrivals[-1].time
    assert [(seen.client, seen.start, seen.time * tick) for seen in arrivals] == order
    heard = len({client for client, _, _ in order})
    assert heard == {1: 1, 2: 2, 4: 3, 100: 5}[most]
    assert (restarts > 0) == (heard < N)


@pytest.mark.parametrize("most", [1, 2, 4, 100])
def test_ringmaster_without_calculation_stops(most: int) -> None:
    """x ← x + η_g Δ at arrivals with a delay below R; others are thrown away, and begin at the newest x.

    Nobody is interrupted, so that the clients arrive as they would without R.
    """
    strategy = {"name": "ringmaster", "late": "ignore", "max_delay": most, "local_lr": LR, "local": SGD}
    expected, order, ignored = [START], [], 0
    ends, begun = dict(enumerate(LENGTHS)), [0] * N
    for _ in range(100):
        now, client = min((end, client) for client, end in ends.items())
        order.append((client, begun[client], now))
        if len(expected) - 1 - begun[client] < most:
            start = expected[begun[client]]
            expected.append(expected[-1] + local_sgd(client, start, LR, STEPS))
        else:
            ignored += 1
        ends[client], begun[client] = now + LENGTHS[client], len(expected) - 1
    arrivals, found = played(experiment(strategy, updates=100))
    assert_same(found, expected, 101 - ignored)
    tick = order[-1][2] / arrivals[-1].time
    assert [(seen.client, seen.start, seen.time * tick) for seen in arrivals] == order
    assert (ignored > 0) == (most < 100)


@pytest.mark.parametrize("late", ["restart", "ignore"])
def test_ringmaster_of_three_clients_at_a_time(late: str) -> None:
    """As many jobs are in flight after an update that was thrown away as after any other."""
    strategy = {"name": "ringmaster", "late": late, "max_delay": 2, "concurrency": 3, "local_lr": LR}
    simulation = Simulation(experiment(strategy, updates=60))
    steps = [(event.stepped, simulation.server.in_flight) for event in simulate(simulation)]
    assert {in_flight for _, in_flight in steps} == {3}
    assert all(stepped for stepped, _ in steps) == (late == "restart")
