"""Small uneven quadratics: importance, curvature, centre and speed differ from client to client.

Local work is written out here once more, in numpy, so that trajectories can be computed without the package.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate

Array = np.ndarray

CENTRES = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0], [4.0, 1.0], [-2.0, 3.0]])
CURVATURE = np.array([0.5, 1.0, 2.0, 1.5, 0.8])
IMPORTANCE = np.array([5.0, 3.0, 2.0, 1.0, 4.0]) / 15
TIMES = [Fraction(1), Fraction(11, 15), Fraction(7, 15), Fraction(1, 5), Fraction(7, 3)]
CLIENTS = len(TIMES)
FIRST = np.array([0.5, -0.5])
LOCAL_LR, SERVER_LR, STEPS = 0.1, 0.7, 3


def gradient(model: Array, client: int) -> Array:
    """∇L_i of L_i(θ) = λ_i/2 ‖θ − c_i‖² [2]."""
    return CURVATURE[client] * (model - CENTRES[client])


def losses(model: Array) -> Array:
    """L_i(θ) [n]."""
    return CURVATURE / 2 * ((model - CENTRES) ** 2).sum(1)


def delta(model: Array, client: int, steps: int = STEPS) -> Array:
    """θ_K − θ_0 after K local steps [2]."""
    y = model
    for _ in range(steps):
        y = y - LOCAL_LR * gradient(y, client)
    return y - model


def first_of_c(size: int, rounds: int) -> list[list[tuple[int, int]]]:
    """FedBuff-c: the c that return first wait for the last of them and restart with it; client, version."""
    back, version, found = list(TIMES), [0] * CLIENTS, []
    for n in range(rounds):
        here = sorted(range(CLIENTS), key=lambda client: (back[client], client))[:size]
        found.append([(client, version[client]) for client in here])
        now = max(back[client] for client in here)
        for client in here:
            back[client], version[client] = now + TIMES[client], n + 1
    return found


@dataclass
class Run:
    """A simulation as it was seen from outside."""

    versions: list[Array]  # [2] each, the first model included
    arrivals: list[tuple[int, int]]  # client, version that it worked on
    in_flight: set[int] = field(default_factory=set)  # after each event
    simulation: Simulation | None = None

    @property
    def rounds(self) -> list[list[int]]:
        """The clients that worked on each version in turn, as they arrived."""
        found: list[list[int]] = [[] for _ in self.versions]
        for client, version in self.arrivals:
            found[version].append(client)
        return [clients for clients in found if clients]


def described(name: str, *, steps: Any = STEPS, seed: int = 0, **fields: Any) -> Experiment:
    """400 updates of the strategy with this name and these fields."""
    description = {
        "scenario": {
            "problem": {
                "name": "quadratic",
                "centres": CENTRES.tolist(),
                "curvature": CURVATURE.tolist(),
                "importance": IMPORTANCE.tolist(),
                "start": FIRST.tolist(),
            },
            "timing": {"durations": {"name": "fixed", "times": [str(time) for time in TIMES]}},
            "budget": {"updates": 400},
        },
        "strategy": {
            "name": name,
            "local_lr": LOCAL_LR,
            "server_lr": SERVER_LR,
            "local": {"name": "sgd", "steps": steps},
        }
        | fields,
        "seed": seed,
    }
    return Experiment.model_validate(description)


def simulated(name: str, **fields: Any) -> Run:
    """The same experiment, run to its end."""
    simulation = Simulation(described(name, **fields))
    run = Run([FIRST], [], simulation=simulation)
    for event in simulate(simulation):
        if event.kind is EventKind.ARRIVAL:
            assert event.client is not None and event.staleness is not None
            run.arrivals.append((event.client, event.version - event.stepped - event.staleness))
        if event.stepped:
            run.versions.append(simulation.server.model.numpy())
        run.in_flight.add(simulation.server.in_flight)
    return run


def assert_same(run: Run, expected: list[Array], at_least: int) -> None:
    """Whole trajectories agree to 1e-10; one may have a last round that the other has not."""
    assert min(len(run.versions), len(expected)) >= at_least
    assert abs(len(run.versions) - len(expected)) <= 1
    length = min(len(run.versions), len(expected))
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(
        np.array(run.versions[:length]), np.array(expected[:length]), rtol=0, atol=1e-10
    )
