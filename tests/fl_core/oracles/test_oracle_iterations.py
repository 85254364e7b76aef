"""Delays counted in server iterations, one step from all that arrives in one: a plain loop over iterations.

Nothing of the loop or of the strategies is used: the rules are written from the papers' algorithm boxes in
NumPy, and every version of the model is compared. All five clients are at work for every rule, so that who
gets which version follows from the delays alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, floor, sqrt
from typing import Any

import numpy as np
import pytest
from quadratics import CENTRES, START, N, assert_same, experiment, gradient, played

from fl_core.streams import stream
from fl_core.timing.durations import Iterations

LR = 0.05
ITERATIONS = 120
Model = np.ndarray


@dataclass
class Arrived:
    """A client's update at its arrival."""

    client: int
    staleness: int  # versions made since it was sent
    delta: Model


class Rule:
    """What the server adds to the model in an iteration, or None where it makes no step."""

    first_pass = False

    def step(self, version: int, arrived: list[Arrived]) -> Model | None:
        raise NotImplementedError


class Vanilla(Rule):
    """FedBuff with M = 1 (F.1): the mean of what has come."""

    def step(self, version: int, arrived: list[Arrived]) -> Model | None:
        return np.mean([one.delta for one in arrived], axis=0)


@dataclass
class Adaptive(Rule):
    """η min(1, τ_C/τ), as in the code of the ACE paper."""

    most: int

    def step(self, version: int, arrived: list[Arrived]) -> Model | None:
        return np.mean([min(1, self.most / max(one.staleness, 1)) * one.delta for one in arrived], axis=0)


class Buffered(Rule):
    """Nguyen et al., Algorithm 1: the mean of the buffer once it holds M."""

    def __init__(self, size: int, scaled: bool) -> None:
        self.size, self.scaled = size, scaled
        self.buffer: list[Model] = []

    def step(self, version: int, arrived: list[Arrived]) -> Model | None:
        for one in arrived:
            self.buffer.append(one.delta / (sqrt(1 + one.staleness) if self.scaled else 1))
        if len(self.buffer) < self.size:
            return None
        full, self.buffer = self.buffer, []
        return np.mean(full, axis=0)


class Calibrated(Rule):
    """CA²FL, Algorithm 2: h + the mean of Δ_i − h_i, then h is the mean of all h_i."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.last = np.zeros_like(CENTRES)
        self.mean = np.zeros_like(START)
        self.buffer: list[Model] = []

    def step(self, version: int, arrived: list[Arrived]) -> Model | None:
        for one in arrived:
            self.buffer.append(one.delta - self.last[one.client])
            self.last[one.client] = one.delta
        if len(self.buffer) < self.size:
            return None
        step = self.mean + np.mean(self.buffer, axis=0)
        self.mean, self.buffer = self.last.mean(0), []
        return step


class AllClients(Rule):
    """ACE, Algorithm 1: the mean of everyone's newest, once all have computed at w^0."""

    first_pass = True

    def __init__(self) -> None:
        self.table: dict[int, Model] = {}

    def step(self, version: int, arrived: list[Arrived]) -> Model | None:
        self.table |= {one.client: one.delta for one in arrived}
        return sum(self.table.values()) / N if len(self.table) == N else None


class FreshClients(AllClients):
    """ACED, Algorithm a.1: the mean over A(t), the clients heard within the last τ_algo iterations."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.heard: dict[int, int] = {}

    def step(self, version: int, arrived: list[Arrived]) -> Model | None:
        self.table |= {one.client: one.delta for one in arrived}
        self.heard |= {one.client: version for one in arrived}
        if len(self.table) < N:
            return None
        return np.mean([self.table[i] for i in range(N) if version - self.heard[i] <= self.most], axis=0)


def by_iterations(rule: Rule, mean: float, seed: int) -> np.ndarray:
    """All versions of the model, from a loop over iterations: collect, step, send."""
    models, jobs, sent = [START], [0] * N, {}  # of each client: when it arrives, and its version
    free, now = set(range(N)), 0
    while len(models) <= ITERATIONS:
        if not (rule.first_pass and len(models) == 1 and now):
            for client in free:
                delay = floor(stream(seed, "duration", client, jobs[client]).exponential(mean))
                sent[client] = now + delay + 1, len(models) - 1
                jobs[client] += 1
            free = set()
        now += 1
        arrived = []
        for client in range(N):
            if client in sent and sent[client][0] == now:
                version = sent.pop(client)[1]
                delta = -LR * gradient(client, models[version])
                arrived.append(Arrived(client, len(models) - 1 - version, delta))
                free.add(client)
        if arrived and (step := rule.step(len(models) - 1, arrived)) is not None:
            models.append(models[-1] + step)
    return np.array(models)


RULES: list[tuple[dict[str, Any], Callable[[], Rule]]] = [
    ({"name": "asgd"}, Vanilla),
    ({"name": "delay_adaptive", "rule": "ace", "concurrency": N}, lambda: Adaptive(N)),
    ({"name": "fedbuff", "buffer": 3, "concurrency": N}, lambda: Buffered(3, scaled=True)),
    (
        {"name": "fedbuff", "buffer": 2, "concurrency": N, "scaling": "none"},
        lambda: Buffered(2, scaled=False),
    ),
    ({"name": "ca2fl", "buffer": 3, "concurrency": N}, lambda: Calibrated(3)),
    ({"name": "ace"}, AllClients),
    ({"name": "ace", "form": "direct"}, AllClients),
    ({"name": "aced", "max_age": 2}, lambda: FreshClients(2)),
]


@pytest.mark.parametrize("mean", [0.3, 6])
@pytest.mark.parametrize(
    ("strategy", "rule"), RULES, ids=lambda one: str(one.get("name")) if isinstance(one, dict) else ""
)
def test_the_same_models(strategy: dict[str, Any], rule: Callable[[], Rule], mean: float) -> None:
    """Every version, where 0.3 brings up to five updates into an iteration, and 6 often none."""
    where = {"durations": {"name": "iterations", "mean": mean}, "updates": 10_000, "iterations": ITERATIONS}
    _, found = played(experiment({**strategy, "local_lr": LR}, seed=3, **where))
    assert_same(found, by_iterations(rule(), mean, seed=3), ITERATIONS)


def test_delays_are_geometric() -> None:
    """P(length = k + 1) = (1 − q) q^k with q = e^{−1/β}; the mean that it declares is that of this law."""
    law, draws = Iterations(mean=3), 20_000
    rng = np.random.default_rng(5)
    found = Counter(law.draw(float(law.means(1, 0)[0]), rng) for _ in range(draws))
    q = exp(-1 / 3)
    for k in range(12):
        p = (1 - q) * q**k
        assert abs(found[k + 1] - draws * p) <= 5 * sqrt(draws * p * (1 - p))
    assert float(law.means(1, 0)[0]) == pytest.approx(1 + q / (1 - q), rel=1e-12)


@pytest.mark.slow
def test_arrivals_an_iteration_follow_littles_law() -> None:
    """n always at work and a mean length of β' iterations are n/β' arrivals an iteration, within 3 %."""
    law = {"name": "iterations", "mean": 5}
    arrivals, _ = played(experiment({"name": "asgd", "local_lr": 1e-3}, durations=law, updates=20_000))
    length = 1 + 1 / (exp(1 / 5) - 1)
    assert len(arrivals) / arrivals[-1].time == pytest.approx(N / length, rel=0.03)
