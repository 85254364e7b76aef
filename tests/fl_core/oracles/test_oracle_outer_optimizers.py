"""DiLoCo against torch's optimisers; CGAD and HeLoCo as plain loops, their limits, numbers by hand."""

from __future__ import annotations

from math import cos, exp, pi
from typing import Any

import numpy as np
import pytest
import torch
from quadratics import (
    IMPORTANCE,
    START,
    N,
    always_busy,
    assert_same,
    experiment,
    gradient,
    local_sgd,
    played,
)

from fl_core.execution.execution import ComputeRequest
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation
from fl_core.strategies.cgad import CGAD
from fl_core.strategies.heloco import HeLoCo

LR, STEPS, UPDATES = 0.1, 3, 60
SGD = {"name": "sgd", "steps": STEPS}
COMMON: dict[str, Any] = {"local_lr": LR, "local": SGD}


def versions(name: str, **fields: Any) -> np.ndarray:
    return played(experiment({"name": name, **COMMON, **fields}, updates=UPDATES))[1]


# -- DiLoCo, synchronous and asynchronous --------------------------------------------------------------


class Workers:
    """A torch.optim.AdamW for each client, for the whole run, and torch's Nesterov at the server."""

    def __init__(self) -> None:
        self.models = [torch.tensor(START, requires_grad=True) for _ in range(N)]
        self.inner = [torch.optim.AdamW([model], lr=0.05) for model in self.models]
        self.theta = torch.tensor(START, requires_grad=True)
        self.outer = torch.optim.SGD([self.theta], lr=0.7, momentum=0.9, nesterov=True)

    def delta(self, client: int, start: np.ndarray) -> np.ndarray:
        model = self.models[client]
        with torch.no_grad():
            model.copy_(torch.tensor(start))
        for _ in range(STEPS):
            model.grad = torch.tensor(gradient(client, model.detach().numpy()))
            self.inner[client].step()
        return model.detach().numpy() - start

    def step(self, delta: np.ndarray) -> np.ndarray:
        self.theta.grad = -torch.tensor(delta)
        self.outer.step()
        return self.theta.detach().numpy().copy()


INNER = {"name": "adamw", "keep_state": True, "steps": STEPS, "weight_decay": 0.01}


def test_diloco() -> None:
    """A round: AdamW from the same model at every worker, then Nesterov on the weighted mean."""
    workers, expected = Workers(), [START]
    for _ in range(12):
        deltas = [workers.delta(client, expected[-1]) for client in range(N)]
        expected.append(workers.step(IMPORTANCE @ np.array(deltas)))
    strategy = {"name": "diloco", "local_lr": 0.05, "local": INNER}
    assert_same(played(experiment(strategy, updates=UPDATES))[1], expected, 13)


def test_asynchronous_diloco() -> None:
    """The same at every arrival, which is stale."""
    workers, expected = Workers(), [START]
    for client, start in always_busy(UPDATES):
        expected.append(workers.step(workers.delta(client, expected[start])))
    strategy = {"name": "async_diloco", "local_lr": 0.05, "local": INNER}
    assert_same(played(experiment(strategy, updates=UPDATES))[1], expected, UPDATES + 1)


# -- CGAD --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cutoff", [3, 16])
def test_cgad(cutoff: int) -> None:
    """g = γ(τ) e^(−ατ) Δ, m ← β1 m + (1 − β1) g, v ← β2 v + (1 − β2) g² from ε², x ← x + η m/(√v + ε)."""
    server = {"name": "adam", "beta1": 0.8, "beta2": 0.7, "epsilon": 0.05}
    expected, ages = [START], []
    m, v = np.zeros(2), np.full(2, 0.05**2)
    for version, (client, start) in enumerate(always_busy(UPDATES)):
        age = version - start
        ages.append(age)
        gate = (1 + cos(pi * age / cutoff)) / 2 if age < cutoff else 0
        g = gate * exp(-0.2 * age) * local_sgd(client, expected[start], LR, STEPS)
        m, v = 0.8 * m + 0.2 * g, 0.7 * v + 0.3 * g**2
        expected.append(expected[-1] + 0.3 * m / (np.sqrt(v) + 0.05))
    found = versions("cgad", decay=0.2, cutoff=cutoff, server=server, server_lr=0.3)
    assert_same(found, expected, UPDATES + 1)
    assert min(ages) == 0 and max(ages) > 3


def test_weights_of_cgad_by_hand() -> None:
    """α = .1 and τ_c = 16: e^(−.8)/2 at half of the cutoff, and nothing from the cutoff on."""
    cgad = CGAD()
    assert [cgad.scale(age) for age in (0, 8, 16, 99)] == pytest.approx([1, 0.224664, 0, 0], abs=1e-6)
    assert (cgad.server_lr, cgad.server.reference()) == (0.01, "adam")


# -- HeLoCo ------------------------------------------------------------------------------------------

FIELDS = {"aligned": 0.6, "confidence": 0.7, "shrinkage": 2.0, "most": 0.5, "turn": 0.9, "momentum": 0.8}


def corrected(delta: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, str]:
    """The rule for one tensor, in pseudo-gradients as the paper has them: both signs change."""
    g, v = -delta, -m
    if not v.any():
        return delta, "first"
    size, reference = np.sqrt(g @ g), np.sqrt(v @ v)
    c = (g @ v) / (size * reference)
    conf = size / (size + 0.7 * reference)
    if c >= 0.6:
        return delta, "kept"
    if c < 0:
        along = (g @ v) / (v @ v) * v  # the part of g along the momentum
        return -(g - min(2.0 * -c * conf, 0.5) * along), "shrunk"
    weight = min(0.9 * (1 - c) * conf, 1)
    u = (1 - weight) * g / size + weight * v / reference
    return -size * u / np.sqrt(u @ u), "turned"


def test_heloco() -> None:
    """Ĝ of the update and the momentum before; m ← μ m + (1 − μ) Ĝ; x ← x + η (Ĝ + μ m)."""
    expected, m, seen = [START], np.zeros(2), []
    for client, start in always_busy(UPDATES):
        delta, case = corrected(local_sgd(client, expected[start], LR, STEPS), m)
        seen.append(case)
        m = 0.8 * m + 0.2 * delta
        expected.append(expected[-1] + 0.5 * (delta + 0.8 * m))
    assert_same(versions("heloco", server_lr=0.5, **FIELDS), expected, UPDATES + 1)
    assert min(seen.count(case) for case in ("kept", "shrunk", "turned")) >= 3


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ([3.0, 4.0], [3.0, 4.0]),  # c = .6, which is aligned
        ([-2.0, 0.0], [-4 / 3, 0.0]),  # c = −1, conf = 2/(2 + 4) = 1/3: a third of the part along m goes
        ([0.0, 4.0], [4 / 2**0.5, 4 / 2**0.5]),  # c = 0, conf = ½: half way to m, of the same length
        ([0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_corrections_by_hand(delta: list[float], expected: list[float]) -> None:
    """m = (4, 0) and all strengths 1."""
    found = HeLoCo().corrected(torch.tensor(delta), torch.tensor([4.0, 0.0]))
    assert found.tolist() == pytest.approx(expected)


def test_each_tensor_of_a_model_is_corrected_alone() -> None:
    """Logistic regression has two, of 640 and 10 numbers: the weights' angle is not that of the whole."""
    described = {
        "scenario": {"problem": {"name": "digits", "clients": 3}, "budget": {"updates": 6}},
        "strategy": {"name": "heloco", "aligned": 1, "shrinkage": 3, "local_lr": 0.5},
    }
    simulation = Simulation(Experiment.model_validate(described))
    assert simulation.server.blocks == [640, 10]
    heloco, seen = HeLoCo(aligned=1, shrinkage=3), []
    for event in simulation.events():
        if not isinstance(event, ComputeRequest):
            continue
        OneByOne().execute([event])
        m, delta = simulation.server.memory.moments.get("v"), event.job.delta
        if m is None:
            continue
        blocks = zip((0.7 * delta).split((640, 10)), m.split((640, 10)), strict=True)
        seen.append((torch.cat([heloco.corrected(*block) for block in blocks]), m, simulation.server.model))
        if len(seen) == 2:
            (ahead, m, before), (_, after_m, after) = seen
            torch.testing.assert_close(after_m, 0.9 * m + 0.1 * ahead)
            torch.testing.assert_close(after - before, ahead + 0.9 * after_m)
            return
    pytest.fail("no two steps were seen")
