"""Recorded sequences of arrivals, and their replay through strategies of this project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.fedasync import FedAsync
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.strategy import Strategy

Array = np.ndarray
Sequence = Mapping[
    str, Array
]  # of m arrivals: client, version … [m], start and delta [m, d], models [m + 1, d]

ARRIVALS = 12
# The papers' rules: FedAsync with α = 0.6 and (1 + τ)^(−1/2); FedBuff with K = 3, η = 0.5 and 1/√(1 + τ)
PAPERS: dict[str, dict[str, Any]] = {
    "FedAsync": {"name": "fedasync", "server_lr": 0.6, "decay": "polynomial", "power": 0.5},
    "FedBuff": {"name": "fedbuff", "server_lr": 0.5, "buffer": 3},
}
LOCAL = {"concurrency": 3, "local_lr": 0.1, "local": {"name": "sgd", "steps": 2}}
SAMPLES = (10, 20, 30, 40)  # data points of the clients
CENTRES = ((1.0, 0.0, -2.0), (-1.0, 2.0, 0.5), (3.0, -1.0, 1.0), (0.5, 4.0, -3.0))
PROBLEMS: dict[str, dict[str, Any]] = {
    "quadratic": {
        "name": "quadratic",
        "centres": CENTRES,
        "curvature": (0.5, 1.0, 2.0, 1.5),
        "importance": tuple(samples / sum(SAMPLES) for samples in SAMPLES),
        "start": (0.5, -0.5, 0.25),
    },
    "digits": {"name": "digits", "clients": 4, "partition": {"name": "class_dirichlet", "alpha": 0.5}},
}
TIMES = ("1", "17/10", "23/10", "41/10")  # of a client's job; the others wait until they are drawn


def record(algorithm: str, problem: str) -> Sequence:
    """Return the arrivals of a simulated run in which clients idle between jobs.

    Args:
        algorithm: A key of PAPERS.
        problem: A key of PROBLEMS.
    """
    updates: list[Update] = []
    kind = FedAsync if algorithm == "FedAsync" else FedBuff

    class Listening(kind):  # type: ignore[misc, valid-type]
        """Keep what arrives."""

        def receive(self, server: Server, update: Update) -> None:
            updates.append(update)
            super().receive(server, update)

    scenario = {
        "problem": PROBLEMS[problem],
        "timing": {"durations": {"name": "fixed", "times": TIMES}},
        "budget": {"updates": ARRIVALS},
    }
    fields = {key: value for key, value in PAPERS[algorithm].items() if key != "name"}
    strategy = Listening(**fields, **LOCAL)
    simulation = Simulation(
        Experiment.model_validate({"scenario": scenario, "strategy": strategy, "seed": 0})
    )
    first = simulation.server.model
    models = [first, *(simulation.server.model for event in simulate(simulation) if event.client is not None)]
    return {
        "client": np.array([update.client for update in updates]),
        "version": np.array([update.version for update in updates]),
        "staleness": np.array([update.staleness for update in updates]),
        "samples": np.array([SAMPLES[update.client] for update in updates]),
        "dispatched": np.array([update.sent for update in updates]),
        "uploaded": np.array([update.time for update in updates]),
        "start": torch.stack([update.start for update in updates]).double().numpy(),
        "delta": torch.stack([update.delta for update in updates]).double().numpy(),
        "models": torch.stack(models[: ARRIVALS + 1]).double().numpy(),
    }


def replay(strategy: Mapping[str, Any], sequence: Sequence) -> Array:
    """Return the server's models after each arrival [m, d], in float64.

    The arrivals are those recorded, whatever the server makes of them: a difference does not feed on itself.
    """
    first = sequence["models"][0]
    n = len(SAMPLES)
    described = {
        "scenario": {
            "problem": {"name": "quadratic", "centres": [[0.0] * len(first)] * n, "start": first.tolist()},
            "timing": {"durations": {"name": "fixed", "times": TIMES}},
            "budget": {"updates": ARRIVALS},
        },
        "strategy": Strategy.model_validate({**strategy, **LOCAL}),
    }
    simulation = Simulation(Experiment.model_validate(described))
    server, state = simulation.server, simulation.state
    simulation.strategy.begin(server)
    found = []
    for number, client in enumerate(sequence["client"].tolist()):
        start, delta = (torch.from_numpy(sequence[name][number]) for name in ("start", "delta"))
        sent, time = int(sequence["dispatched"][number]), int(sequence["uploaded"][number])
        version, age = int(sequence["version"][number]), int(sequence["staleness"][number])
        simulation.strategy.receive(
            server, Update(client, version, age, 2, 0.1, delta.clone(), -delta, start, {}, sent, sent, time)
        )
        state.stepped = False
        found.append(server.model.numpy().copy())
    return np.array(found)


def first_difference(found: Array, expected: Array, tolerance: float = 1e-10) -> int | None:
    """Return the number of the first arrival, from 1, after which models differ; None if they agree."""
    apart = np.abs(found - expected).max(axis=1) > tolerance
    return int(apart.argmax()) + 1 if apart.any() else None
