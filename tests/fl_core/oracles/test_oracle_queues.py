"""Generalized AsyncSGD: clients with first-in-first-out queues and random routing, played by a plain loop."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from quadratics import START, TIMES, N, assert_same, experiment, local_sgd, played

from fl_core.loop.simulation import Simulation

LR, STEPS, TASKS = 0.02, 2, 8  # η_l, K, m; more tasks than clients, so that some wait
SGD = {"name": "sgd", "steps": STEPS}
LENGTHS = [Fraction(time) for time in TIMES]
SPEEDS = np.array([float(1 / length) for length in LENGTHS])  # μ

ROUTINGS: dict[str, tuple[Any, np.ndarray]] = {
    "uniform": ("uniform", np.full(N, 1 / N)),
    "balanced": ("balanced", SPEEDS / SPEEDS.sum()),
    "given": ([1, 2, 3, 1, 2], np.array([1, 2, 3, 1, 2]) / 9),
}


def described(routing: Any) -> dict[str, Any]:
    fields = {"local_lr": LR, "server_lr": 0.7, "concurrency": TASKS, "routing": routing, "local": SGD}
    return {"name": "generalized_asyncsgd", **fields}


@pytest.mark.parametrize("routing", ROUTINGS)
def test_generalized_asyncsgd(routing: str) -> None:
    """w ← w + η_g/(n p_C) Δ, and the next task, with the new w, goes to one client's queue, busy or not.

    Where each task was routed is read off the run; the queues, and so who arrives when with a model how old,
    are played here with a deque a client. A client serves one task at a time, the oldest first.
    """
    asked, p = ROUTINGS[routing]
    arrivals, found = played(experiment(described(asked), updates=300))
    opening = [seen.client for seen in sorted(arrivals, key=lambda seen: seen.job) if not seen.start]
    routed = {seen.start: seen.client for seen in arrivals if seen.start}
    assert len(opening) == TASKS
    queues = [deque([0] * opening.count(client)) for client in range(N)]  # versions of the tasks' models
    ends = {client: LENGTHS[client] for client in range(N) if queues[client]}
    expected, order = [START], []
    for version in range(1, 301):
        now, client = min((end, client) for client, end in ends.items())
        start = queues[client].popleft()
        order.append((client, start, now))
        step = 0.7 / (N * p[client]) * local_sgd(client, expected[start], LR, STEPS)
        expected.append(expected[-1] + step)
        del ends[client]
        if queues[client]:
            ends[client] = now + LENGTHS[client]
        target = routed.get(version)  # None: the task had not come back when the run ended
        if target is not None:
            queues[target].append(version)
            ends.setdefault(target, now + LENGTHS[target])
    assert_same(found, expected, 301)
    tick = order[-1][2] / arrivals[-1].time
    assert [(seen.client, seen.start, seen.time * tick) for seen in arrivals] == order
    assert max(seen.before - seen.start for seen in arrivals) > TASKS
    assert any(seen.began > seen.sent for seen in arrivals)  # some have waited


def test_tasks_are_routed_with_the_probabilities_asked_for() -> None:
    """A ~ p independently: counts are within five binomial standard deviations, so are those of pairs."""
    asked, p = ROUTINGS["balanced"]
    updates = 3000
    arrivals, _ = played(experiment(described(asked), updates=updates))
    routed = {seen.start: seen.client for seen in arrivals if seen.start}
    known = updates - 400  # by then all tasks sent have come back
    route = np.array([routed[version] for version in range(1, known + 1)])
    for client in range(N):
        count, spread = np.sum(route == client), np.sqrt(known * p[client] * (1 - p[client]))
        assert abs(count - known * p[client]) < 5 * spread
    again, same = np.sum(route[::2] == route[1::2]), np.sum(p**2)
    assert abs(again - known / 2 * same) < 5 * np.sqrt(known / 2 * same * (1 - same))


def test_the_tasks_of_the_start_are_routed_likewise() -> None:
    """m tasks on the first model, each to a client ∝ p; 200 seeds."""
    asked, p = ROUTINGS["given"]
    counts = np.zeros(N)
    for seed in range(200):
        simulation = Simulation(experiment(described(asked), seed=seed, updates=1))
        next(simulation.events())
        sent = [job.client for job in simulation.server.jobs]
        assert len(sent) == TASKS
        counts += np.bincount(sent, minlength=N)
    draws = 200 * TASKS
    assert (np.abs(counts - draws * p) < 5 * np.sqrt(draws * p * (1 - p))).all()
