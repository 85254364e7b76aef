"""Optimised routings: recomputed numbers, another optimiser, and what the policy of starts promises."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fl_core.theory.optimum import optimise
from fl_core.theory.routing import G, H, QueueingNetwork, balanced, uniform

CLUSTERS = np.repeat([0.01, 0.1, 1.0], 10)  # §5.2
SLIGHT = np.exp(np.arange(1, 21) / 100)  # §5.1
PER_ROUND = G(lr=0.01, gap=15, noise=209, rounds=3000)
PER_TIME = H(lr=0.01, gap=15, noise=209)


def rounds(end, tasks=30):
    return 3000 * QueueingNetwork(end.p, CLUSTERS, tasks).throughput


def test_h_optimised_routing():
    (end,) = optimise(PER_TIME, CLUSTERS, 30, restarts=False)
    assert end.settled
    assert end.value == pytest.approx(1286.2, abs=0.05)
    assert rounds(end) == pytest.approx(7043.4, abs=0.05)
    np.testing.assert_allclose(end.p[[0, 10, 20]], [0.0023, 0.0276, 0.0702], atol=5e-5)


def test_a_search_that_ran_out_of_steps_says_so():
    (end,) = optimise(PER_TIME, CLUSTERS, 30, restarts=False, steps=3)
    assert (end.steps, end.settled) == (3, False)
    assert end.p.sum() == pytest.approx(1)


@pytest.mark.slow
def test_h_is_slightly_better_with_a_favourite():
    best = optimise(PER_TIME, CLUSTERS, 30)[0]
    assert best.start == "fastest"
    assert best.value == pytest.approx(1286.08, abs=5e-3)
    assert best.p.max() == pytest.approx(0.2417, abs=1e-3)


def test_g_optimised_routing_has_a_favourite():
    best = optimise(PER_ROUND, CLUSTERS, 30)[0]
    assert best.settled
    assert rounds(best) == pytest.approx(104.0, abs=0.05)
    assert np.argmax(best.p) < 10 and best.p.max() == pytest.approx(0.2885, abs=5e-5)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))])
def test_the_noise_of_the_start_does_not_matter(seed):
    (end,) = optimise(PER_ROUND, CLUSTERS, 30, restarts=False, seed=seed)
    assert rounds(end) == pytest.approx(104.0, abs=0.05)


def test_tied_routing_against_another_optimiser():
    end = optimise(PER_ROUND, CLUSTERS, 30, tied=True)[0]
    assert len(np.unique(end.p)) == 3
    assert rounds(end) == pytest.approx(326.7, abs=0.05)

    def value(theta):
        shares = np.exp(np.repeat([0, *theta], 10))
        return PER_ROUND.value(QueueingNetwork(shares / shares.sum(), CLUSTERS, 30))

    other = minimize(value, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert end.value == pytest.approx(other.fun, rel=1e-9)


def test_slowest_client_gets_half_of_the_tasks():
    (end,) = optimise(PER_ROUND, SLIGHT, 100, restarts=False)
    network = QueueingNetwork(end.p, SLIGHT, 100)
    assert end.p[0] == pytest.approx(0.5145, abs=5e-5)
    assert np.all(np.diff(end.p[1:]) < 0)  # the faster the fewer
    slower = [
        QueueingNetwork(p, SLIGHT, 100).throughput / network.throughput
        for p in (uniform(20), balanced(SLIGHT))
    ]
    assert slower == pytest.approx([9.35, 9.52], abs=5e-3)


def test_ends_are_local_minima():
    stream = np.random.default_rng(0)
    for end in optimise(PER_ROUND, SLIGHT, 20):
        assert end.settled and end.p.sum() == pytest.approx(1)
        for _ in range(20):
            p = end.p * np.exp(0.01 * stream.normal(size=20))
            assert PER_ROUND.value(QueueingNetwork(p / p.sum(), SLIGHT, 20)) >= end.value


class Squares:
    """Σ (μ_i p_i)², least where p_i ∝ 1/μ_i²."""

    def value(self, network):
        return np.sum(network.speeds**2 * network.p**2)

    def gradient(self, network):
        return 2 * network.speeds**2 * network.p


def plain_adam(speeds, theta, *, lr, steps):
    """Algorithm 1 of Kingma & Ba on Σ (μ_i p_i)², p = softmax(θ): the p of its last gradient."""
    m, v = np.zeros(len(speeds)), np.zeros(len(speeds))
    for t in range(1, steps + 1):
        p = np.exp(theta) / np.exp(theta).sum()
        jacobian = np.diag(p) - np.outer(p, p)  # ∂p_i/∂θ_j
        g = jacobian @ (2 * speeds**2 * p)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        theta = theta - lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_path_of_each_start(steps):
    speeds = [3, 1, 2, 4]
    ends = optimise(Squares(), speeds, 5, tied=True, lr=0.03, steps=steps)
    assert {end.start for end in ends} == {"uniform", "slowest", "fastest"}
    for end in ends:
        theta = 2.0 * np.array(
            {"uniform": [0] * 4, "slowest": [0, 1, 0, 0], "fastest": [0, 0, 0, 1]}[end.start]
        )
        plain = plain_adam(np.array(speeds), theta, lr=0.03, steps=steps)
        np.testing.assert_allclose(end.p, plain, rtol=1e-10)
        assert end.value == pytest.approx(np.sum((np.array(speeds) * plain) ** 2))
        assert (end.steps, end.settled) == (steps, False)
    assert [end.value for end in ends] == sorted(end.value for end in ends)


@pytest.mark.parametrize("tied", [False, True])
def test_every_start_finds_a_minimum_in_closed_form(tied):
    weight = np.array([1 / 9, 1, 1 / 4, 1])
    ends = optimise(Squares(), [3, 1, 2, 1], 5, tied=tied)
    assert len(ends) == 3
    for end in ends:
        assert end.settled
        np.testing.assert_allclose(end.p, weight / weight.sum(), rtol=1e-5)


@pytest.mark.parametrize(("difference", "settled"), [(0.99e-7, True), (1.01e-7, False)])
def test_when_a_search_has_settled(difference, settled):
    """μ = (1, 1 + δ), p = 1/2: the parts are 1/2 and δ more, the slopes ∓δ/2."""
    (end,) = optimise(Squares(), [1, 1 + difference], 5, tied=True, restarts=False, steps=1)
    assert (end.settled, end.steps) == (settled, 1)


def test_a_slight_noise_parts_clients_of_equal_speed():
    def first(**seed):
        (end,) = optimise(Squares(), np.ones(500), 5, restarts=False, steps=1, **seed)
        return np.log(end.p)

    assert first().std() == pytest.approx(1e-6, rel=0.1)
    assert np.array_equal(first(), first(seed=0))
    assert not np.array_equal(first(), first(seed=1))
