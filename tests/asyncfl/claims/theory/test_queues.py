"""The plain simulation against the formulas, and the paper's lemmas on every path."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfl.claims.theory.queues import simulate
from fl_core.theory.routing import Network

P, SPEEDS, TASKS = np.array([0.5, 0.3, 0.2]), np.array([1.0, 2.0, 0.7]), 6


def within(samples, wanted, blocks=50):
    """Whether means of correlated samples [T, n] are within 4 standard errors, from means over blocks."""
    means = np.array([block.mean(0) for block in np.array_split(samples, blocks)])
    error = means.std(0, ddof=1) / np.sqrt(blocks)
    return np.all(np.abs(samples.mean(0) - wanted) <= 4 * error)


@pytest.fixture(scope="module")
def path():
    stream = np.random.default_rng(0)
    return simulate(P, SPEEDS, Network(P, SPEEDS, TASKS).left.draw(stream), 100_000, stream)


def test_stationary_means(path):
    network = Network(P, SPEEDS, TASKS)
    assert within(path.left, network.left.mean)
    assert within(path.lengths, 1 / network.throughput)


def test_relative_delay_is_the_mean_number_of_tasks(path):
    network = Network(P, SPEEDS, TASKS)
    delays = np.where(path.routed[:, None] == np.arange(3), path.delays[:, None], 0)[:-1000]
    assert np.all(path.delays[:-1000] >= 0)
    assert within(delays, network.relative_delay)  # E[D_i] = E[X_i], Theorem 3.1
    np.testing.assert_allclose(path.left.mean(0), network.relative_delay, rtol=0.05)


def test_covariance_of_the_tasks_left(path):
    left = Network(P, SPEEDS, TASKS).left
    covariance = [left.covariance_with(unit) for unit in np.eye(3)]
    np.testing.assert_allclose(np.cov(path.left.T), covariance, rtol=0.1, atol=0.02)


def test_overall_staleness_is_one_less_than_the_tasks(path):
    assert within(path.delays[:-1000], TASKS - 1)


def test_delay_law_without_product_form():
    """E[D_i] = E[X_i] for deterministic service, too, where E[X] has no formula."""
    stream = np.random.default_rng(1)
    path = simulate(P, SPEEDS, np.array([2, 2, 1]), 50_000, stream, service=lambda i, _: 1 / SPEEDS[i])
    delays = np.where(path.routed[:, None] == np.arange(3), path.delays[:, None], 0)[:-1000]
    assert within(delays - path.left[:-1000], 0.0)
    assert not within(path.left, Network(P, SPEEDS, TASKS).left.mean)


@given(st.integers(0, 2**32), st.integers(1, 200), st.integers(0, 2))
def test_lemma_c4_on_every_path(seed, rounds, client):
    """ΣX ≤ ΣD ≤ ΣX over R more rounds, for a client that starts empty."""
    start = np.full(3, 2)
    start[client] = 0
    path = simulate(P, SPEEDS, start, rounds + 200, np.random.default_rng(seed))
    mine = np.where(path.routed[:rounds] == client, path.delays[:rounds], 0)
    if np.any(mine < 0):
        return  # a task of the first rounds was still away at the end
    sent = np.flatnonzero(path.routed[:rounds] == client)
    last = (
        sent[-1] + path.delays[sent[-1]] if len(sent) else 0
    )  # the round in which the last of them completes
    assert path.left[:rounds, client].sum() <= mine.sum() <= path.left[: max(rounds, last + 1), client].sum()


@given(st.integers(0, 2**32))
def test_tasks_are_conserved_and_served_in_order(seed):
    path = simulate(P, SPEEDS, np.array([2, 1, 2]), 100, np.random.default_rng(seed))
    assert np.all(path.left.sum(1) == TASKS - 1)
    for client in range(3):
        done = (np.arange(100) + path.delays)[(path.routed == client) & (path.delays >= 0)]
        assert np.all(np.diff(done) > 0)
        assert np.all(path.completed[done] == client)
    assert np.all(path.lengths >= 0)


def test_a_path_worked_by_hand():
    """Services take 1 at client 0, 5/2 at client 1; two tasks are at client 0.

    Client 0 completes them at 1 and 2. Client 1 gets the first task at 0, the second at 1, and completes
    the first at 2.5. Client 0 gets the third at 2, the fourth at 2.5, and completes the third at 3.
    """

    class Routed:
        """Stands in for the random stream."""

        def choice(self, n, rounds, p):
            assert (n, rounds, list(p)) == (2, 4, [0.3, 0.7])
            return np.array([1, 1, 0, 0])

    path = simulate(
        np.array([0.3, 0.7]),
        np.ones(2),
        np.array([2, 0]),
        4,
        Routed(),
        service=lambda client, _: (1.0, 2.5)[client],
    )
    assert path.routed.tolist() == [1, 1, 0, 0]
    assert path.completed.tolist() == [0, 0, 1, 0]
    assert path.lengths.tolist() == [1, 1, 0.5, 0.5]
    assert path.left.tolist() == [[1, 1], [0, 2], [1, 1], [1, 1]]
    assert path.delays.tolist() == [2, -1, 1, -1]  # two were in flight at the end
