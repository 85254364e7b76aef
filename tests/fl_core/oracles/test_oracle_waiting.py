"""AsGrad with waiting and FedAST with one task: buffers and queues, as plain loops.

Where jobs were given out at random, to whom is read off the run; the queues at the clients, and so who
arrives when with a model how old, are played here.
"""

from __future__ import annotations

from collections import Counter, deque
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from quadratics import START, TIMES, Arrival, N, assert_same, experiment, local_sgd, played

from fl_core.loop.simulation import Simulation, simulate

LR, STEPS = 0.05, 2  # η_l, K
SGD = {"name": "sgd", "steps": STEPS}
LENGTHS = [Fraction(time) for time in TIMES]


def described(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "local_lr": LR, "server_lr": 0.8, "local": SGD, **fields}


def queued(given: dict[int, list[int]], at: list[Fraction], count: int) -> list[tuple[int, int, Fraction]]:
    """Client, version and time of the first arrivals, where version v went to `given[v]` at time `at[v]`.

    Each client serves one job at a time, the oldest first.
    """
    free, found = [Fraction(0)] * N, []
    for version in sorted(given):
        for client in given[version]:
            free[client] = max(free[client], at[version]) + LENGTHS[client]
            found.append((free[client], client, version))
    return [(client, version, time) for time, client, version in sorted(found)[:count]]


def check(arrivals: list[Arrival], found: np.ndarray, buffer: int) -> Fraction:
    """Every b arrivals a step of the mean of their updates, each from its version; returns a tick."""
    expected, held = [START], []
    for seen in arrivals:
        held.append(local_sgd(seen.client, expected[seen.start], LR, STEPS))
        if len(held) == buffer:
            expected.append(expected[-1] + 0.8 * np.mean(held, 0))
            held = []
    assert_same(found, expected, len(arrivals) // buffer + 1)
    return LENGTHS[arrivals[0].client] / (arrivals[0].time - arrivals[0].began)


@pytest.mark.parametrize("buffer", [1, 3, 5])
def test_asgrad_pure(buffer: int) -> None:
    """The b clients that delivered get the new model; the others work on."""
    arrivals, found = played(experiment(described("asgrad", buffer=buffer, assignment="pure"), updates=60))
    tick = check(arrivals, found, buffer)
    ends = {client: (LENGTHS[client], 0) for client in range(N)}
    order, waiting, version = [], [], 0
    for _ in range(60):
        now, client = min((end, client) for client, (end, _) in ends.items())
        _, start = ends.pop(client)
        order.append((client, start, now))
        waiting.append(client)
        if len(waiting) == buffer:
            version += 1
            ends |= {who: (now + LENGTHS[who], version) for who in waiting}
            waiting = []
    assert [(seen.client, seen.start, seen.time * tick) for seen in arrivals] == order


@pytest.mark.parametrize("buffer", [1, 2, 4, 9])
@pytest.mark.parametrize("assignment", ["random", "shuffled"])
def test_asgrad_gives_out_as_many_jobs_as_came_back(assignment: str, buffer: int) -> None:
    """All clients start; then b jobs with the new model every b arrivals, queueing at busy clients.

    With b > n all n jobs come back before a step, which is their mean, and n are given out again.
    """
    size = min(buffer, N)
    strategy = described("asgrad", buffer=buffer, assignment=assignment)
    simulation = Simulation(experiment(strategy, updates=120))
    given, at = {0: list(range(N))}, [Fraction(0)]
    before = [1] * N  # the jobs of the start
    for event in simulate(simulation):
        new = Counter({i: simulation.state.indices[i] - before[i] for i in range(N)})
        before = list(simulation.state.indices)
        assert sum(new.values()) == (size if event.stepped else 0)
        if event.stepped:
            given[event.version] = list(new.elements())
            at.append(event.time * simulation.lengths.clock.unit)
    arrivals, found = played(experiment(strategy, updates=120))
    tick = check(arrivals, found, size)
    assert [(seen.client, seen.start, seen.time * tick) for seen in arrivals] == queued(given, at, 120)
    total = np.zeros(N)
    sequence = [client for version in sorted(given) if version for client in given[version]]
    if assignment == "shuffled":
        for version in sorted(given):
            np.add.at(total, given[version], 1)
            assert total.max() - total.min() <= 1  # whole permutations, and a part of one
        if buffer == 1:
            blocks = [tuple(sequence[k : k + N]) for k in range(0, 120 - N, N)]
            assert all(sorted(block) == list(range(N)) for block in blocks)
            assert len(set(blocks)) > 10  # a new one every n jobs
    else:
        share = np.bincount(sequence, minlength=N) / len(sequence)
        assert np.abs(share - 1 / N).max() < 4 * (0.2 * 0.8 / len(sequence)) ** 0.5
        steps = [given[version] for version in sorted(given) if version]
        apart = np.prod(1 - np.arange(size) / N)  # the chance that none comes twice
        found = np.mean([len(set(clients)) == size for clients in steps])
        assert abs(found - apart) <= 4 * (apart * (1 - apart) / len(steps)) ** 0.5


def test_asgrad_with_a_buffer_too_large_steps_when_nothing_is_left() -> None:
    """b > n: all n have delivered, so that fewer than b gradients are averaged."""
    arrivals, found = played(experiment(described("asgrad", buffer=9, assignment="pure"), updates=4 * N))
    expected = [START]
    for _ in range(4):
        expected.append(
            expected[-1] + 0.8 * np.mean([local_sgd(i, expected[-1], LR, STEPS) for i in range(N)], 0)
        )
    assert_same(found, expected, 5)
    assert [seen.start for seen in arrivals] == [version for version in range(4) for _ in range(N)]


@pytest.mark.parametrize(("requests", "buffer"), [(8, 3), (3, 1), (12, 5)])
def test_fedast(requests: int, buffer: int) -> None:
    """R requests always; an arrival is replaced by one with the newest model, to a uniform client's queue."""
    strategy = described("fedast", buffer=buffer, concurrency=requests)
    simulation = Simulation(experiment(strategy, updates=150))
    sends: list[tuple[Fraction, int, int]] = []  # when, to whom, which version
    before = [0] * N
    for number, event in enumerate(simulate(simulation)):
        new = Counter({i: simulation.state.indices[i] - before[i] for i in range(N)})
        before = list(simulation.state.indices)
        if number == 0:
            (replaced,) = [job for job in simulation.server.jobs if job.sent == event.time]
            new[replaced.client] -= 1
            sends += [(Fraction(0), client, 0) for client in new.elements()]
            assert len(sends) == requests
            new = Counter([replaced.client])
        assert new.total() == 1
        (client,) = new.elements()
        sends.append((event.time * simulation.lengths.clock.unit, client, event.version))
        assert simulation.server.in_flight == requests
    queues: list[deque[Fraction]] = [deque() for _ in range(N)]
    arrivals, found = played(experiment(strategy, updates=150))
    tick = check(arrivals, found, buffer)
    order = []
    for sent, client, version in sends:
        start = max(sent, queues[client][-1]) if queues[client] else sent
        queues[client].append(start + LENGTHS[client])
        order.append((queues[client][-1], client, version))
    expected = [(client, version, time) for time, client, version in sorted(order)[:150]]
    assert [(seen.client, seen.start, seen.time * tick) for seen in arrivals] == expected
    share = np.bincount([client for _, client, _ in sends], minlength=N) / len(sends)
    assert np.abs(share - 1 / N).max() < 4 * (0.2 * 0.8 / len(sends)) ** 0.5
