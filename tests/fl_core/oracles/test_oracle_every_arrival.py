"""Every arrival is a step: ASGD, delay-adaptive ASGD, FedAsync, AsyncFedED and FedFa, as plain loops.

Each is written from its paper and has a heap of its own, so the order of arrivals is checked as well.
"""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import floor, sqrt, trunc
from typing import Any

import numpy as np
import pytest
from quadratics import START, TIMES, N, always_busy, assert_same, experiment, gradient, local_sgd, played

from fl_core.experiment import Experiment

UPDATES = 80
LR, STEPS = 0.1, 3  # η_l, K
SGD = {"name": "sgd", "steps": STEPS}


def test_asgd() -> None:
    """w ← w + η_g Δ."""
    strategy = {"name": "asgd", "local_lr": LR, "server_lr": 0.7, "local": SGD}
    expected = [START]
    for client, start in always_busy(UPDATES):
        expected.append(expected[-1] + 0.7 * local_sgd(client, expected[start], LR, STEPS))
    assert_same(played(experiment(strategy, updates=UPDATES))[1], expected, UPDATES + 1)


# -- delay-adaptive --------------------------------------------------------------------------------


def koloskova(delay: int, concurrency: int) -> float:
    """η_t/η = 1 up to τ_C, then 1/τ_t (Koloskova et al. 2022, eq. 11, as practised)."""
    return 1 if delay <= concurrency else 1 / delay


def mishchenko(delay: int, concurrency: int) -> float:
    """η_t/η = n/max(n, τ_t), n the number of workers (Mishchenko et al. 2022)."""
    return N / max(N, delay)


def ace(delay: int, concurrency: int) -> float:
    """η_t/η = min(1, τ_C/τ_t) (the ACE paper's code)."""
    return min(1, concurrency / delay) if delay else 1


RULES = {"koloskova": koloskova, "mishchenko": mishchenko, "ace": ace}


@pytest.mark.parametrize("rule", RULES)
def test_delay_adaptive_asgd_of_all_clients(rule: str) -> None:
    """τ_C = n, as nobody ever waits; delays on both sides of it."""
    strategy = {"name": "delay_adaptive", "rule": rule, "local_lr": LR, "server_lr": 0.9, "local": SGD}
    expected, delays = [START], set()
    for version, (client, start) in enumerate(always_busy(UPDATES)):
        delays.add(version - start)
        scale = 0.9 * RULES[rule](version - start, N)
        expected.append(expected[-1] + scale * local_sgd(client, expected[start], LR, STEPS))
    assert_same(played(experiment(strategy, updates=UPDATES))[1], expected, UPDATES + 1)
    assert min(delays) <= 1 < N < N + 1 < max(delays) and N in delays


@pytest.mark.parametrize("rule", RULES)
def test_delay_adaptive_asgd_of_three_clients_at_a_time(rule: str) -> None:
    """τ_C = 3 < n; clients are drawn, so the order is taken from the run."""
    strategy = {"name": "delay_adaptive", "rule": rule, "local_lr": LR, "concurrency": 3, "local": SGD}
    arrivals, found = played(experiment(strategy, updates=UPDATES))
    expected = [START]
    for seen in arrivals:
        scale = RULES[rule](seen.before - seen.start, 3)
        expected.append(expected[-1] + scale * local_sgd(seen.client, expected[seen.start], LR, STEPS))
    assert_same(found, expected, UPDATES + 1)
    delays = {seen.before - seen.start for seen in arrivals}
    assert {2, 3, 4} < delays and max(delays) > N


# -- FedAsync --------------------------------------------------------------------------------------


def proximal(client: int, start: np.ndarray, lr: float, steps: int, rho: float) -> np.ndarray:
    """θ_end of K steps of gradient descent on L_i(y) + ρ/2 ‖y − w_τ‖²."""
    model = start
    for _ in range(steps):
        model = model - lr * (gradient(client, model) + rho * (model - start))
    return model


@pytest.mark.parametrize(
    ("fields", "s"),
    [
        ({"decay": "constant"}, lambda delay: 1),
        ({"decay": "polynomial"}, lambda delay: 1 / sqrt(delay + 1)),
        ({"decay": "polynomial", "power": 0.8}, lambda delay: (delay + 1) ** -0.8),
        ({"decay": "hinge"}, lambda delay: 1 if delay <= 4 else 1 / (10 * (delay - 4) + 1)),
        (
            {"decay": "hinge", "hinge_slope": 0.3, "hinge_start": 2},
            lambda delay: 1 if delay <= 2 else 1 / (0.3 * (delay - 2) + 1),
        ),
    ],
    ids=["constant", "polynomial", "polynomial .8", "hinge", "hinge .3 from 2"],
)
def test_fedasync(fields: dict[str, Any], s: Any) -> None:
    """w ← (1 − α s(τ)) w + α s(τ) w_new, with α = .6 and the proximal term of ρ = .4."""
    local = {"name": "prox", "steps": STEPS, "mu": 0.4}
    strategy = {"name": "fedasync", "local_lr": LR, "server_lr": 0.6, "local": local, **fields}
    expected, delays = [START], set()
    for version, (client, start) in enumerate(always_busy(UPDATES)):
        new = proximal(client, expected[start], LR, STEPS, rho=0.4)
        alpha = 0.6 * s(version - start)
        expected.append((1 - alpha) * expected[-1] + alpha * new)
        delays.add(version - start)
    assert_same(played(experiment(strategy, updates=UPDATES))[1], expected, UPDATES + 1)
    assert {1, 3, 4} < delays and max(delays) > 4


def test_fedasync_unless_told_otherwise() -> None:
    """α = .6, s polynomial with a = .5, ρ = .005; of a single local step ρ has no effect."""
    run = experiment({"name": "fedasync"}, updates=UPDATES)
    assert run.strategy.local.model_dump(include={"name", "mu"}) == {"name": "prox", "mu": 0.005}
    expected = [START]
    for version, (client, start) in enumerate(always_busy(UPDATES)):
        alpha = 0.6 / sqrt(1 + version - start)
        new = proximal(client, expected[start], LR, 1, rho=0.005)
        expected.append((1 - alpha) * expected[-1] + alpha * new)
    assert_same(played(run)[1], expected, UPDATES + 1)


@pytest.mark.parametrize("base", ["current", "start"])
@pytest.mark.parametrize("since", ["dispatch", "upload"])
def test_readings_of_fedasync(base: str, since: str) -> None:
    """The client's model against the newest or its own start; τ since dispatch or the previous upload."""
    fields = {"base": base, "staleness_since": since, "concurrency": 3, "local_lr": LR, "local": SGD}
    arrivals, found = played(experiment({"name": "fedasync", **fields}, updates=UPDATES))
    expected, uploads, idle = [START], dict.fromkeys(range(N), 0), 0
    for version, seen in enumerate(arrivals):
        idle += uploads[seen.client] < seen.start
        alpha = 0.6 / sqrt(1 + version - (uploads[seen.client] if since == "upload" else seen.start))
        end = expected[seen.start] + local_sgd(seen.client, expected[seen.start], LR, STEPS)
        compared = expected[-1] if base == "current" else expected[seen.start]
        expected.append(expected[-1] + alpha * (end - compared))
        uploads[seen.client] = version + 1
    assert idle > UPDATES / 10
    assert_same(found, expected, UPDATES + 1)


# -- AsyncFedED ------------------------------------------------------------------------------------


def test_asyncfeded() -> None:
    """γ = ‖x_t − x_{t−τ}‖/‖Δ‖, x ← x + λ/(γ + ε) Δ, K_i ← K_i + ⌊κ(γ̄ − γ)⌋, at least one step.

    Changes occur for which the floor is neither the nearest integer nor what is left without the fraction.
    """
    rate, epsilon, kappa, wanted = 0.6, 0.5, 1.7, 1.5
    strategy = {
        "name": "asyncfeded",
        "local_lr": LR,
        "server_lr": rate,
        "epsilon": epsilon,
        "gain": kappa,
        "wanted": wanted,
        "local": {"name": "sgd", "steps": [1, 2, 3, 4, 2]},
    }
    lengths = [Fraction(time) for time in TIMES]
    steps, expected = [1, 2, 3, 4, 2], [START]
    heap = [(lengths[client], client, 0, steps[client]) for client in range(N)]
    heapify(heap)
    worked, changes, kept_at_one = [], [], 0
    for version in range(UPDATES):
        now, client, start, count = heappop(heap)
        delta = local_sgd(client, expected[start], LR, count)
        gamma = sqrt(sum((expected[-1] - expected[start]) ** 2)) / sqrt(sum(delta**2))
        expected.append(expected[-1] + rate / (gamma + epsilon) * delta)
        changes.append(kappa * (wanted - gamma))
        kept_at_one += steps[client] + floor(changes[-1]) < 1
        steps[client] = max(1, steps[client] + floor(changes[-1]))
        worked.append(count)
        heappush(heap, (now + lengths[client], client, version + 1, steps[client]))
    arrivals, found = played(experiment(strategy, updates=UPDATES))
    assert_same(found, expected, UPDATES + 1)
    assert [seen.steps for seen in arrivals] == worked
    assert kept_at_one and max(worked) > 4
    assert any(floor(change) != round(change) for change in changes if change > 0)
    assert any(floor(change) != round(change) for change in changes if change < 0)
    assert any(floor(change) != trunc(change) for change in changes)


def test_asyncfeded_of_a_client_at_its_optimum() -> None:
    """Δ = 0 has no γ: the model stays, and the client is taken to have met nothing, γ = 0."""
    described = {
        "scenario": {
            "problem": {"name": "quadratic", "centres": [[0.5, -0.5]], "start": [0.5, -0.5]},
            "budget": {"updates": 4},
        },
        "strategy": {"name": "asyncfeded", "gain": 0.9, "wanted": 3},
    }
    arrivals, found = played(Experiment.model_validate(described))
    assert found.tolist() == [[0.5, -0.5]] * 5
    assert [seen.steps for seen in arrivals] == [1, 3, 5, 7]  # ⌊.9 · 3⌋ = 2 more each time


def test_the_first_jobs_of_asyncfeded_are_those_of_any_strategy() -> None:
    """K is drawn for each job: AsyncFedED begins with the numbers that ASGD's clients draw."""
    drawn = {"name": "sgd", "steps": [4, 5, 6, 7, 8], "dynamic": True}
    first = {}
    for name in ("asgd", "asyncfeded"):
        arrivals, _ = played(experiment({"name": name, "local_lr": 0.01, "local": drawn}, updates=40))
        first[name] = {seen.client: seen.steps for seen in arrivals if seen.job == 0}
    assert len(first["asgd"]) == N
    assert first["asyncfeded"] == first["asgd"]


# -- FedFa -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 3, 7])
def test_fedfa(window: int) -> None:
    """x is the mean of the K newest client models, K times the first model before; K = 1, < n and > n."""
    strategy = {"name": "fedfa", "local_lr": LR, "window": window, "local": SGD}
    newest, expected = [START] * window, [START]
    for client, start in always_busy(UPDATES):
        newest = [*newest[1:], expected[start] + local_sgd(client, expected[start], LR, STEPS)]
        expected.append(sum(newest) / window)
    assert_same(played(experiment(strategy, updates=UPDATES))[1], expected, UPDATES + 1)


def test_fedfa_with_a_server_rate() -> None:
    """x ← x + η_g (mean of the window now − mean before)."""
    strategy = {"name": "fedfa", "local_lr": LR, "server_lr": 0.6, "window": 4, "local": SGD}
    newest, expected = [START] * 4, [START]
    for client, start in always_busy(UPDATES):
        before = sum(newest) / 4
        newest = [*newest[1:], expected[start] + local_sgd(client, expected[start], LR, STEPS)]
        expected.append(expected[-1] + 0.6 * (sum(newest) / 4 - before))
    assert_same(played(experiment(strategy, updates=UPDATES))[1], expected, UPDATES + 1)


@pytest.mark.parametrize("window", [1, 3, 7])
def test_fedfa_delta(window: int) -> None:
    """x ← x + η_g (1/K) Σ of the K newest differences, zeros before; one is used in K steps."""
    strategy = {"name": "fedfa", "form": "delta", "local_lr": LR, "server_lr": 0.6, "window": window}
    newest, expected = [np.zeros(2)] * window, [START]
    for client, start in always_busy(UPDATES):
        newest = [*newest[1:], local_sgd(client, expected[start], LR, STEPS)]
        expected.append(expected[-1] + 0.6 * sum(newest) / window)
    assert_same(played(experiment(strategy | {"local": SGD}, updates=UPDATES))[1], expected, UPDATES + 1)
