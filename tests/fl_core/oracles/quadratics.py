"""Quadratic worlds for the oracles: an experiment on them, what arrived, and plain local SGD by hand.

L_i(θ) = λ_i/2 ‖θ − c_i‖², without noise, so that a client's work is known from its start model alone. Nothing
here knows a strategy: oracles are written in NumPy from the papers, and compared with the models of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate

CENTRES = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0], [4.0, 1.0], [2.0, -3.0]])  # c_i [n, d]
CURVATURE = np.array([1.0, 0.5, 2.0, 1.5, 0.8])  # λ_i [n]
IMPORTANCE = np.array([1.0, 4.0, 2.0, 2.0, 1.0]) / 10  # p_i [n]
TIMES = ["1", "2.1", "3.7", "7.9", "5/3"]  # fixed lengths of jobs [n]
START = np.array([0.5, -0.5])  # θ^0 [d]
N = len(CENTRES)
BOUND = 1e-10  # models in float64 agree to this


class Arrival(NamedTuple):
    """An update that arrived, as the oracles may know it: whose, from which model, and what it did."""

    client: int
    job: int  # the client's job-th job
    start: int  # the version it was computed on
    before: int  # the server's version when it arrived; staleness is before − start
    steps: int  # K
    sent: int  # ticks
    began: int  # ticks
    time: int  # ticks
    stepped: bool  # whether the server made a new version
    delta: np.ndarray  # θ_end − θ_start [d]
    gradient: np.ndarray  # mean corrected gradient [d]


def experiment(strategy: dict[str, Any], *, seed: int = 0, **where: Any) -> Experiment:
    """A strategy on the quadratics; `where` replaces times, availability, arrangement or the budget."""
    timing = {
        "durations": where.pop("durations", {"name": "fixed", "times": where.pop("times", TIMES)}),
        "availability": where.pop("availability", "always"),
    }
    problem = {
        "name": "quadratic",
        "centres": CENTRES.tolist(),
        "curvature": CURVATURE.tolist(),
        "importance": IMPORTANCE.tolist(),
        "start": START.tolist(),
    }
    arrangement = where.pop("arrangement", None)
    scenario = {"problem": problem, "timing": timing, "arrangement": arrangement, "budget": where}
    return Experiment.model_validate({"scenario": scenario, "strategy": strategy, "seed": seed})


def played(experiment: Experiment) -> tuple[list[Arrival], np.ndarray]:
    """A run to its end: its arrivals, and every version of the model [versions, d], θ^0 first."""
    simulation = Simulation(experiment)
    arrivals, models = [], [simulation.server.model.numpy().copy()]
    for event in simulate(simulation):
        if event.stepped:
            models.append(simulation.server.model.numpy().copy())
        if event.kind is EventKind.ARRIVAL:
            job = simulation.arrived
            assert job is not None and job.began is not None
            assert job.delta is not None and job.gradient is not None
            before = event.version - event.stepped
            pinned = job.client, job.index, job.version, before, job.steps, job.sent, job.began
            result = job.delta.numpy().copy(), job.gradient.numpy().copy()
            arrivals.append(Arrival(*pinned, event.time, event.stepped, *result))
    return arrivals, np.array(models)


def always_busy(updates: int, times: Sequence[int | str] = TIMES) -> Iterator[tuple[int, int]]:
    """Client and start version of each arrival where all always work and every arrival makes a version.

    A plain heap of (end, client, start); of those that end together the lowest client is first.
    """
    lengths = [Fraction(time) for time in times]
    heap = [(lengths[client], client, 0) for client in range(N)]
    heapify(heap)
    for version in range(updates):
        now, client, start = heappop(heap)
        yield client, start
        heappush(heap, (now + lengths[client], client, version + 1))


def gradient(client: int, model: np.ndarray) -> np.ndarray:
    """∇L_i(θ) = λ_i (θ − c_i) [d]."""
    return CURVATURE[client] * (model - CENTRES[client])


def local_sgd(client: int, start: np.ndarray, lr: float, steps: int) -> np.ndarray:
    """Δ = θ_end − θ_start [d] of K steps y ← y − η_l ∇L_i(y)."""
    model = start
    for _ in range(steps):
        model = model - lr * gradient(client, model)
    return model - start


def assert_same(found: np.ndarray, expected: Any, versions: int) -> None:
    """The same whole trajectory, of at least so many versions."""
    expected = np.array(expected)
    assert found.shape == expected.shape
    assert len(found) >= versions
    np.testing.assert_allclose(found, expected, rtol=0, atol=BOUND)
