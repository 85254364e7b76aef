"""Bounds G and H: published numbers, finite differences, closed forms, and dominance on quadratics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.theory.routing import G, H, QueueingNetwork, balanced, uniform
from tests.papers import asyncsgd
from tests.papers.asyncsgd import g_balanced, g_uniform, step_limit

CLUSTERS = np.repeat([0.01, 0.1, 1.0], 10)  # §5.2: mean service 100, 10 and 1
PER_ROUND = G(lr=0.01, gap=15, noise=209, rounds=3000)
PER_TIME = H(lr=0.01, gap=15, noise=209)


@st.composite
def networks(draw):
    n, tasks = draw(st.integers(2, 6)), draw(st.integers(1, 9))
    parts = draw(st.lists(st.floats(0.1, 1), min_size=n, max_size=n))
    speeds = draw(st.lists(st.floats(0.1, 10), min_size=n, max_size=n))
    return np.array(parts) / sum(parts), np.array(speeds), tasks


@given(networks())
def test_closed_forms(network):
    _, speeds, tasks = network
    n = len(speeds)
    assert PER_ROUND.value(QueueingNetwork(uniform(n), speeds, tasks)) == pytest.approx(
        g_uniform(PER_ROUND, n, tasks)
    )  # whatever the speeds
    even = QueueingNetwork(balanced(speeds), speeds, tasks)
    assert PER_ROUND.value(even) == pytest.approx(g_balanced(PER_ROUND, speeds, tasks))
    assert even.throughput == pytest.approx(speeds.sum() * tasks / (n + tasks - 1))
    np.testing.assert_allclose(even.relative_delay, (tasks - 1) / n, atol=1e-12)


def test_published_numbers_of_rounds():
    published = np.repeat([0.0068, 0.0449, 0.0487], 10)  # adds up to 1.004
    rounds = [
        3000 * QueueingNetwork(p, CLUSTERS, 30).throughput
        for p in (balanced(CLUSTERS), uniform(30), published / published.sum())
    ]
    assert rounds == pytest.approx([16932.2, 687.2, 3085.8], abs=0.05)


@pytest.mark.parametrize(("ratio", "best"), [(1.2, 0.88), (2, 0.90), (10, 0.95)])
def test_third_term_of_g_wants_the_slowest(ratio, best):
    """Figure 1: two clients, 20 tasks, Σ E[D_i]/p_i² against the share of the slow one."""
    shares = np.linspace(0.01, 0.99, 99)
    term = [
        np.sum(QueueingNetwork(p, np.array([1, ratio]), 20).relative_delay / p**2)
        for p in np.stack([shares, 1 - shares], 1)
    ]
    assert shares[np.argmin(term)] == pytest.approx(best, abs=1e-9)
    assert term[49] == pytest.approx(76)
    turns = np.count_nonzero(np.diff(np.sign(np.diff(term))))
    assert turns == 3  # down, up, down, up: not monotone


def test_thousand_clients_and_tasks():
    stream = np.random.default_rng(0)
    p, speeds = stream.dirichlet(np.full(1000, 5.0)), np.exp(stream.normal(size=1000))
    for bound in (PER_ROUND, PER_TIME):
        slope = bound.gradient(QueueingNetwork(p, speeds, 1000))
        away = stream.normal(size=1000) * p
        ends = [bound.value(QueueingNetwork(p + sign * 1e-6 * away, speeds, 1000)) for sign in (1, -1)]
        assert slope @ away == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


def generalized_asyncsgd(path, p, *, lr, centres, noise, stream):
    """Models w_t [T + 1] and virtual models μ_t [T + 1] of one run on F_i = (w − c_i)²/2 along a path.

    The gradient of a task is drawn when it is sent; tasks that are there from the start have no effect.
    """
    n, rounds = len(p), len(path.routed)
    models, virtual = np.full(rounds + 1, 4.0), np.full(rounds + 1, 4.0)
    owner = {
        t + path.delays[t]: t for t in range(rounds) if path.delays[t] >= 0
    }  # round of completion → of sending
    steps = np.zeros(rounds)
    for t in range(rounds):
        client = path.routed[t]
        gradient = models[t] - centres[client] + noise * stream.normal()
        steps[t] = lr / (n * p[client]) * gradient
        virtual[t + 1] = virtual[t] - steps[t]
        models[t + 1] = models[t] - (steps[owner[t]] if t in owner else 0.0)
    return models, virtual


@pytest.mark.parametrize("shares", [(0.25, 0.25, 0.25, 0.25), (0.4, 0.3, 0.2, 0.1)])
def test_eight_g_and_eight_h_dominate(shares):
    p, speeds, tasks, rounds = np.array(shares), np.array([0.3, 1.0, 2.0, 5.0]), 6, 1500
    centres, noise = np.array([1.0, -2.0, 3.0, -2.0]), 0.5
    spread = np.max((centres - centres.mean()) ** 2)  # M² ≥ ‖∇f − ∇f_i‖²
    network = QueueingNetwork(p, speeds, tasks)
    lr = step_limit(network)
    stream = np.random.default_rng(0)
    squares, weighted, decrease = [], [], []
    for _ in range(12):
        path = asyncsgd.simulate(p, speeds, network.left.draw(stream), rounds, stream)
        models, virtual = generalized_asyncsgd(path, p, lr=lr, centres=centres, noise=noise, stream=stream)
        slope = (models[:-1] - centres.mean()) ** 2
        loss = (virtual - centres.mean()) ** 2 / 2
        squares.append(slope.mean())
        weighted.append((path.lengths * slope).mean())
        decrease.append((path.lengths * -np.diff(loss)).mean())
    gap = (4 - centres.mean()) ** 2 / 2
    g = G(lr=lr, gap=gap, noise=noise**2 + 2 * spread, rounds=rounds)
    h = H(lr=lr, gap=network.throughput * np.mean(decrease), noise=noise**2 + 2 * spread)
    assert np.mean(squares) < 8 * g.value(network)
    assert np.mean(weighted) < 8 * h.value(network)


WORKED = QueueingNetwork(np.array([1 / 4, 3 / 4]), np.array([1.0, 1 / 2]), 3)  # loads as 1 to 6
STEEP = {"lr": 0.1, "gap": 3, "noise": 5, "smoothness": 2}


def test_network_worked_by_hand():
    """4^k Z_k = Σ 6^j, j ≤ k: 1, 7, 43, 259."""
    assert WORKED.throughput == pytest.approx(4 * 43 / 259)
    # (7 + 1)/43 and (6·7 + 36)/43
    assert WORKED.relative_delay == pytest.approx([8 / 43, 78 / 43])
    assert WORKED.staleness == pytest.approx([32 / 43, 104 / 43])
    # E[ξ] = (43 + 7 + 1)/259 and (6·43 + 36·7 + 216)/259, over 4·43/259 (1/4, 3/4)
    assert WORKED.sojourn == pytest.approx([51 / 43, 726 / 129])


def test_bounds_worked_by_hand():
    # 3/(.1·10) + .2·5/4 (4 + 4/3) + .04·5·3/4 (8·16 + 78·16/9)/43
    g = G(**STEEP, rounds=9)
    assert g.value(WORKED) == pytest.approx(3 + 4 / 3 + 40 / 43)
    # 3/.1 + .2·5/4 (4 + 4/3) + .04·5·3/4 (51·16 + 726·16/9)/259, over 4·43/259
    assert H(**STEEP).value(WORKED) == pytest.approx((30 + 4 / 3 + 316 / 259) * 259 / 172)
    # L = 1 unless given: half and a quarter
    assert G(0.1, 3, 5, 9).value(WORKED) == pytest.approx(3 + 2 / 3 + 10 / 43)
    assert H(0.1, 3, 5).value(WORKED) == pytest.approx((30 + 2 / 3 + 79 / 259) * 259 / 172)
    # 3 + .2·5 (1 + .2·3·2)
    assert g_uniform(g, 7, 3) == pytest.approx(5.2)
    # 3 + .2·5·7/9 (1 + 1/2 + 1/4) + .04·5·3·2·49/27 (1 + 1/4 + 1/16)
    assert g_balanced(g, np.array([1.0, 2.0, 4.0]), 3) == pytest.approx(3 + 49 / 36 + 1.2 * 343 / 144)


@pytest.mark.parametrize(
    ("tasks", "limit"),
    [
        (1, 3 / 16),  # S₁ = (4 + 4/3)/4, and no delay
        (2, 3 / 16),  # S₂ = 2/4 (16 + 6·16/9)/7 = 40/21, and 1/√(8 S₂) = .256
        (3, 43**0.5 / 40),  # S₂ = 3/4 (8·16 + 78·16/9)/43 = 200/43
    ],
)
def test_step_limit_worked_by_hand(tasks, limit):
    network = QueueingNetwork(WORKED.p, WORKED.speeds, tasks)
    assert step_limit(network) == pytest.approx(limit)
