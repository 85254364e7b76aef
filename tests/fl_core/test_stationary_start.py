"""Generalized AsyncSGD from stationary queues: Buzen's means from the first update on."""

from __future__ import annotations

import numpy as np
import pytest

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.scenario import Scenario
from fl_core.strategies.generalized_asyncsgd import GeneralizedAsyncSGD
from fl_core.theory.jackson import Occupancy

MEANS = [4.0, 1.0, 0.5]  # 1/μ
ROUTING = (0.5, 0.3, 0.2)
TASKS, SEEDS, ROUNDS = 6, 800, 3


def place() -> Scenario:
    """Three clients with exponential service; at most some updates."""
    return Scenario.model_validate(
        {
            "problem": {"name": "quadratic", "centres": [[0.0], [1.0], [2.0]]},
            "timing": {"durations": {"name": "exponential", "times": MEANS}},
            "budget": {"updates": 200},
        }
    )


def paths(opening: str) -> tuple[np.ndarray, np.ndarray]:
    """X_t and D_t [seeds, rounds, n]: tasks left by the first updates; delay of the task sent then."""
    strategy = GeneralizedAsyncSGD.model_validate(
        {"routing": ROUTING, "concurrency": TASKS, "opening": opening}
    )
    where = place()
    left, delays = np.zeros((2, SEEDS, ROUNDS, 3))
    for seed in range(SEEDS):
        simulation = Simulation(Experiment(scenario=where, strategy=strategy, seed=seed))
        server, sent = simulation.server, {}
        for event in simulate(simulation, ScheduleOnly()):
            arrived = simulation.arrived
            assert arrived is not None
            if (place_of := sent.pop((arrived.client, arrived.index), None)) is not None:
                delays[seed, place_of, arrived.client] = event.staleness
            if event.version <= ROUNDS:
                [new] = [job for job in server.jobs if job.version == event.version]
                sent[new.client, new.index] = event.version - 1
                for job in server.jobs:
                    left[seed, event.version - 1, job.client] += job is not new
            elif not sent:
                break
        assert not sent
    return left, delays


def errors_apart(found: np.ndarray, expected: np.ndarray) -> float:
    """How many standard errors the means over seeds lie from what is expected, at most."""
    return float(np.max(np.abs(found.mean(0) - expected) / (found.std(0) / len(found) ** 0.5)))


@pytest.mark.slow
def test_queues_and_delays_are_stationary_from_the_first_update_on() -> None:
    """E[X_i], E[D_i] of the first rounds are Buzen's, within 4 standard errors; routed they are not."""
    expected = Occupancy(np.array(ROUTING) * MEANS, TASKS - 1).mean
    left, delays = paths("stationary")
    assert (left.sum(-1) == TASKS - 1).all()
    assert errors_apart(left, expected) < 4
    assert errors_apart(delays, expected) < 4
    left, _ = paths("routed")
    assert errors_apart(left, expected) > 10


def test_one_task_is_routed_by_p() -> None:
    """m = 1: nothing is left behind; the first client is drawn with probability p_i, by 4 standard errors."""
    strategy = GeneralizedAsyncSGD(opening="stationary", concurrency=1, routing=ROUTING)
    where = place()
    first = []
    for seed in range(400):
        simulation = Simulation(Experiment(scenario=where, strategy=strategy, seed=seed))
        first.append(next(simulate(simulation)).client)
    shares = np.bincount(first, minlength=3) / 400
    assert shares == pytest.approx(ROUTING, abs=4 * 0.5 / 20)
