"""Anarchic FL's computed claims: models by hand, and checks that can fail."""

from dataclasses import replace

import numpy as np
import pytest

from asyncfl.claims.computed import anarchic_bounds as bounds
from asyncfl.claims.theory import anarchic
from asyncfl.claims.theory.anarchic import AnarchicSetting

RUN = AnarchicSetting(
    lr=0.1, server_lr=1.0, rounds=50, gap=1.0, workers=2, arrivals=2, noise=0.0, dissimilarity=1.0
)
PAIR, START = np.array([[1.0], [3.0]]), np.array([0.0])


def test_everybody_without_noise_is_gradient_descent():
    models, _ = bounds.played(RUN, PAIR, START, seeds=1)
    np.testing.assert_allclose(models[:, 0, 0], 2 - 2 * 0.9 ** np.arange(50), atol=1e-12)


def test_the_memory_keeps_what_the_other_worker_sent():
    """One of two in turn: G is the mean of a fresh gradient and of one that is a round old."""
    models, means = bounds.played(replace(RUN, arrivals=1, rounds=20), PAIR, START, memory=True, seeds=1)
    x, slots = 0.0, [-1.0, -3.0]
    for t in range(20):
        assert models[t, 0, 0] == pytest.approx(x)
        slots[t % 2] = x - PAIR[t % 2, 0]
        assert means[t, 0, 0] == pytest.approx(sum(slots) / 2)
        x -= 0.1 * sum(slots) / 2


def test_draws_have_the_given_chances_and_no_worker_twice():
    """Of the first worker alone: its gradient is the only one that is not 0."""
    lone = np.array([[1.0], [0.0], [0.0]])
    run = replace(RUN, workers=3, arrivals=1, rounds=4000, lr=1e-12)
    _, means = bounds.played(run, lone, START, chances=(0.5, 0.3, 0.2), seeds=5)
    assert np.mean(means < -0.5) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(20_000))
    _, both = bounds.played(replace(run, arrivals=3), lone, START, chances=(0.5, 0.3, 0.2), seeds=5)
    np.testing.assert_allclose(both, -1 / 3, atol=1e-6)


def test_noise_has_the_said_variance():
    run = replace(RUN, workers=1, arrivals=1, noise=4.0, rounds=5000, lr=1e-12)
    _, means = bounds.played(run, np.zeros((1, 3)), np.zeros(3), seeds=4)
    assert (means**2).sum(-1).mean() == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("theorem", ["general", "uniform", "silo"])
def test_a_bound_that_is_too_low_is_seen(monkeypatch, theorem):
    assert bounds.bound_slack(theorem=theorem, steps=1, delay=2, rounds=200) >= 1
    honest = getattr(anarchic, theorem)
    lower = lambda run: replace(honest(run), start=0.0, dissimilarity=0.0)  # noqa: E731
    monkeypatch.setitem(bounds.THEOREMS, theorem, lower)
    assert bounds.bound_slack(theorem=theorem, steps=1, delay=2, rounds=200) < 1


def test_step_sizes_outside_of_the_theorem_are_refused():
    with pytest.raises(ValueError, match="outside the theorem's conditions at T = 100"):
        bounds.speed_up(strategy="afa_cs", sizes=[8], horizons=[100], target=1.0)
