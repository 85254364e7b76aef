"""Theorems of ACE (2025), derived anew: claims, values worked by hand, dominance on quadratics."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.papers import ace
from tests.papers.theorems import theorem


@given(st.integers(2, 7), st.data())
def test_partial_bias_is_the_worst_case(n, data):
    deviations = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=n, max_size=n)))
    deviations -= deviations.mean()
    a = data.draw(st.integers(1, n))
    bound = ace.partial_bias(np.array([a]), n, np.max(deviations**2))
    assert deviations[:a].mean() ** 2 <= bound + 1e-12


def test_steps_beyond_the_theorems_are_refused():
    run = ace.Caching(lr=0.1, rounds=10, gap=1.0, noise=1.0, delay=10, reuse=1.0)
    with pytest.raises(ValueError, match=r"step size 0.1 is above the theorem's 0.035"):
        ace.ace(run, 5)
    with pytest.raises(ValueError, match=r"step size 0.1 is above the theorem's 0.025"):
        ace.aced(run, 5, 1, 0.0)


def test_best_learning_rate():
    run = ace.Caching(lr=1.0, rounds=10**10, gap=3.0, noise=2.0, delay=1, reuse=0.5, smoothness=2.0)
    best = ace.learning_rate(run)
    values = [ace.ace(replace(run, lr=best * factor), 5) for factor in (0.9, 1, 1.1)]
    assert min(values) == values[1]
    rounds = 500  # the paper's scaling, √(n/T)
    paper = [
        ace.learning_rate(replace(run, reuse=1 / n, rounds=rounds)) * (rounds / n) ** 0.5 for n in (10, 100)
    ]
    assert paper[0] == pytest.approx(paper[1])


def test_active_clients():
    order = np.random.default_rng(0).integers(100, size=4000)
    run = ace.cached(order, np.ones(100), np.zeros(100), lr=1e-3, noise=0.0, threshold=10)
    expected = 100 * (1 - (1 - 1 / 100) ** 11)  # heard in the last eleven iterations
    assert run.active[20:].mean() == pytest.approx(expected, abs=0.1)


def test_where_ace_ends_after_dropouts():
    curvature, centres = (
        np.array([1.0, 0.5, 2.0, 1.5]),
        np.array([[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.0, -4.0]]),
    )
    dropped = np.array([False, True, False, False])
    w, table = np.zeros(2), -curvature[:, None] * centres  # gradients at w^0 = 0
    last, held = table.copy(), np.zeros((4, 2))
    for t in range(4000):
        i = [0, 2, 3][t % 3]
        table[i] = curvature[i] * (held[i] - centres[i])
        w = w - 0.05 * table.mean(0)
        held[i] = w
    limit = ace.dropout_limit(curvature, centres, dropped, last)
    np.testing.assert_allclose(w, limit, atol=1e-9)
    nobody = ace.dropout_limit(curvature, centres, np.zeros(4, bool), last)
    np.testing.assert_allclose(nobody, curvature @ centres / curvature.sum())
    assert np.linalg.norm(limit - nobody) > 0.1


def test_partial_bias_worked_by_hand():
    # (1 + 1 + (2/3)² + 0)/4, times 3
    assert ace.partial_bias(np.array([1, 2, 3, 5]), 5, 3.0) == pytest.approx(3 * 22 / 36)


RUN = ace.Caching(lr=0.01, rounds=50, gap=3.0, noise=5.0, delay=4, reuse=0.7, smoothness=2.0)


def test_theorems_worked_by_hand():
    # 4·3/.5 + 5 (2·.7/50 + 14/6·.08²)
    assert ace.ace(RUN, 6) == pytest.approx(24 + 0.14 + 0.448 / 6)
    # 16/3 + 6·6/9 = 28/3 for 14/6, and 8·11
    assert ace.aced(RUN, 6, 3, 11.0) == pytest.approx(24 + 0.14 + 0.032 * 28 / 3 + 88)
    # L = 1 unless said: 24 + 5 (2·.7/100 + 14/6·.04²)
    plain = ace.Caching(lr=0.01, rounds=50, gap=3.0, noise=5.0, delay=4, reuse=0.7)
    assert ace.ace(plain, 6) == pytest.approx(24 + 0.07 + 0.112 / 6)
    # 2·3/(.7·2·5·50)
    assert ace.learning_rate(RUN) == pytest.approx((6 / 350) ** 0.5)


@pytest.mark.parametrize(
    ("theorem", "delay", "limit"),
    [
        (lambda run: ace.ace(run, 6), 0, 1 / 2),
        (lambda run: ace.ace(run, 6), 1, 1 / 8**0.5),
        (lambda run: ace.ace(run, 6), 5, 1 / (5 * 8**0.5)),
        (lambda run: ace.aced(run, 6, 3, 11.0), 0, 1 / 2),
        (lambda run: ace.aced(run, 6, 3, 11.0), 1, 1 / 4),
        (lambda run: ace.aced(run, 6, 3, 11.0), 5, 1 / 20),
    ],
)
def test_where_a_theorem_ends(theorem, delay, limit):
    """ηL: at the limit and a hair above it."""
    run = replace(RUN, delay=delay)
    theorem(replace(run, lr=limit / 2))
    with pytest.raises(ValueError, match="above the theorem's"):
        theorem(replace(run, lr=limit / 2 * (1 + 1e-9)))


def test_the_floor_of_cached_gradients_does_not_depend_on_n():
    """In the long run E‖∇F‖² is Lησ²/2 where clients take turns and ητ is small."""
    lr = 2.5e-3
    for n in (5, 20):
        run = ace.cached(
            ace.arrivals("turns", n, 12_000),
            np.ones(n),
            np.full(n, ace.FIRST),
            lr=lr,
            noise=1,
        )
        assert run.tail == pytest.approx(lr / 2, rel=0.25)
        assert run.bound.reuse == pytest.approx(1, abs=0.01)
        assert n - 1 <= run.bound.delay <= 2 * n


def test_arrivals_by_speed_are_as_frequent_as_they_are_fast():
    """Client i of four comes with probability (i + 1)/10, within four standard errors."""
    share = np.bincount(ace.arrivals("by-speed", 4, 10_000)) / 10_000
    assert share == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=4 * 0.5 / 100)
    assert ace.arrivals("turns", 3, 7).tolist() == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.slow
def test_vanilla_without_a_floor_falls_with_the_rate():
    """Clients alike in speed: the error is that of who arrives, ∝ η ∝ 1/√T, so 1/√32 of the shorter run's."""
    assert ace.vanilla_floor([1]) == pytest.approx(32**-0.5, rel=0.2)


# -- claims ----------------------------------------------------------------------------------------

test_after_dropouts = theorem(ace.after_dropouts, slow=True)
test_vanilla_floor = theorem(ace.vanilla_floor, slow=True)
test_bound_slack = theorem(ace.bound_slack)
test_noise_exponent = theorem(ace.noise_exponent, slow=True)
test_best_rate_exponent = theorem(ace.best_rate_exponent)
