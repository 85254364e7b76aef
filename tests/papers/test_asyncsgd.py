"""Theorems of Alahyane et al. (2025): claims, and the simulated network against the formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.theory.jackson import Occupancy
from fl_core.theory.routing import QueueingNetwork
from tests.papers import asyncsgd
from tests.papers.asyncsgd import simulate
from tests.papers.theorems import theorem

P, SPEEDS, TASKS = np.array([0.5, 0.3, 0.2]), np.array([1.0, 2.0, 0.7]), 6


def within(samples, wanted, blocks=50):
    """Whether means of correlated samples [T, n] are within 4 standard errors, from means over blocks."""
    means = np.array([block.mean(0) for block in np.array_split(samples, blocks)])
    error = means.std(0, ddof=1) / np.sqrt(blocks)
    return np.all(np.abs(samples.mean(0) - wanted) <= 4 * error)


@pytest.fixture(scope="module")
def path():
    stream = np.random.default_rng(0)
    return simulate(P, SPEEDS, QueueingNetwork(P, SPEEDS, TASKS).left.draw(stream), 100_000, stream)


def test_stationary_means(path):
    network = QueueingNetwork(P, SPEEDS, TASKS)
    assert within(path.left, network.left.mean)
    assert within(path.lengths, 1 / network.throughput)


def test_relative_delay_is_the_mean_number_of_tasks(path):
    network = QueueingNetwork(P, SPEEDS, TASKS)
    delays = np.where(path.routed[:, None] == np.arange(3), path.delays[:, None], 0)[:-1000]
    assert np.all(path.delays[:-1000] >= 0)
    assert within(delays, network.relative_delay)  # E[D_i] = E[X_i], Theorem 3.1
    np.testing.assert_allclose(path.left.mean(0), network.relative_delay, rtol=0.05)


def test_covariance_of_the_tasks_left(path):
    left = QueueingNetwork(P, SPEEDS, TASKS).left
    covariance = [left.covariance_with(unit) for unit in np.eye(3)]
    np.testing.assert_allclose(np.cov(path.left.T), covariance, rtol=0.1, atol=0.02)


def test_delay_law_without_product_form():
    """E[D_i] = E[X_i] for deterministic service, too, where E[X] has no formula."""
    stream = np.random.default_rng(1)
    path = simulate(P, SPEEDS, np.array([2, 2, 1]), 50_000, stream, service=lambda i, _: 1 / SPEEDS[i])
    delays = np.where(path.routed[:, None] == np.arange(3), path.delays[:, None], 0)[:-1000]
    assert within(delays - path.left[:-1000], 0.0)
    assert not within(path.left, QueueingNetwork(P, SPEEDS, TASKS).left.mean)


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


def crowded_path(start: list[int], rounds: int) -> asyncsgd.Path:
    stream = np.random.default_rng(0)
    return asyncsgd.simulate(np.full(4, 0.25), asyncsgd.SPEEDS, np.array(start), rounds, stream)


def test_one_task_is_never_late():
    alone = crowded_path([0, 0, 0, 0], 200)
    models, virtual = asyncsgd.generalized_asyncsgd(
        alone, np.full(4, 0.25), lr=0.1, stream=np.random.default_rng(1)
    )
    np.testing.assert_array_equal(models, virtual)


def test_late_steps_are_made_up_for():
    """What virtual and real models differ by are the steps of the tasks that are away."""
    crowded, rounds = crowded_path([1, 2, 1, 1], 200), 200
    models, virtual = asyncsgd.generalized_asyncsgd(
        crowded, np.full(4, 0.25), lr=0.1, stream=np.random.default_rng(1)
    )
    steps = -np.diff(virtual)
    for t in range(rounds):
        away = [s for s in range(t + 1) if crowded.delays[s] < 0 or s + crowded.delays[s] > t]
        assert models[t + 1] - virtual[t + 1] == pytest.approx(steps[away].sum(), abs=1e-12)


@pytest.mark.parametrize("bound", ["G", "H"])
def test_a_bound_that_is_too_low_is_seen(monkeypatch, bound):
    shares, honest = [0.4, 0.3, 0.2, 0.1], asyncsgd.generalized_asyncsgd
    assert asyncsgd.bound_slack(bound=bound, p=shares, rounds=300) >= 1

    def astray(*given, **more):
        models, virtual = honest(*given, **more)
        return models + 1000, virtual

    monkeypatch.setattr(asyncsgd, "generalized_asyncsgd", astray)
    assert asyncsgd.bound_slack(bound=bound, p=shares, rounds=300) < 1


def test_a_wrong_delay_is_seen():
    samples = np.random.default_rng(0).normal(2.0, 1.0, (10_000, 2))
    assert asyncsgd._within(samples, np.array([2.0, 2.0]), blocks=50)
    assert not asyncsgd._within(samples, np.array([2.0, 2.1]), blocks=50)


def test_kept_rounds_have_all_come_back():
    _, seen, kept = asyncsgd._simulated("small", [0.5, 0.3, 0.2], 500)
    assert 400 < kept <= 500
    assert np.all(seen.delays[:kept] >= 0)


def test_one_value_a_cluster_stands_for_its_clients():
    by_cluster = asyncsgd.rounds(network="5.2", routing=[1, 1, 1], time=3000)
    assert by_cluster == pytest.approx(asyncsgd.rounds(network="5.2", routing="uniform", time=3000))


@pytest.mark.parametrize("tasks", [2, 5])
def test_counted_formulas_give_what_the_library_computes(tasks):
    loads, tally = np.array([0.5, 0.3, 0.9]), asyncsgd.Tally()
    counted = [asyncsgd.CountedNumber(load, tally) for load in loads]
    law = Occupancy(loads, tasks)
    z = asyncsgd.normalizers(counted, tasks)
    assert z[-2].value / z[-1].value == pytest.approx(law.throughput)
    found = np.array([one.value for one in asyncsgd.means(counted, tasks)]) / z[-1].value
    np.testing.assert_allclose(found, law.mean, rtol=1e-12)
    covariance = np.array([law.covariance_with(unit) for unit in np.eye(3)])
    mixed = covariance + np.outer(law.mean, law.mean)  # E[N_i N_j]
    pairs = np.array([one.value for one in asyncsgd.products(counted, tasks)]) / z[-1].value
    np.testing.assert_allclose(pairs, mixed[~np.eye(3, dtype=bool)], rtol=1e-12)


def test_multiplications_by_hand():
    """Two clients, two tasks: ρ₁, ρ₁²; ρ₂ Z_0, ρ₂ Z_1. Means: two squares, and two products a client."""
    assert asyncsgd.multiplications(formula="normalizers", clients=2, tasks=2) == 4
    assert asyncsgd.multiplications(formula="means", clients=2, tasks=2) == 4 + 2 + 4
    assert asyncsgd.multiplications(formula="products", clients=2, tasks=2) == 4 + 2 + 2 * 2


# -- claims ----------------------------------------------------------------------------------------

test_delay_law = theorem(asyncsgd.delay_law, slow=True)
test_mean_delay = theorem(asyncsgd.mean_delay, slow=True)
test_rounds = theorem(asyncsgd.rounds)
test_furthest = theorem(asyncsgd.furthest)
test_share = theorem(asyncsgd.share)
test_slowdown = theorem(asyncsgd.slowdown)
test_best_concurrency = theorem(asyncsgd.best_concurrency)
test_best_concurrency_falls = theorem(asyncsgd.best_concurrency_falls)
test_third_term_turns = theorem(asyncsgd.third_term_turns)
test_best_slow_share = theorem(asyncsgd.best_slow_share)
test_skew_grows = theorem(asyncsgd.skew_grows, slow=True)
test_falls_with_speed = theorem(asyncsgd.falls_with_speed)
test_grows_with_tasks = theorem(asyncsgd.grows_with_tasks)
test_best_tasks = theorem(asyncsgd.best_tasks)
test_has_interior_optimum = theorem(asyncsgd.has_interior_optimum)
test_growth = theorem(asyncsgd.growth, slow=True)
test_closed_form = theorem(asyncsgd.closed_form)
test_balanced_throughput = theorem(asyncsgd.balanced_throughput)
test_bound_slack = theorem(asyncsgd.bound_slack)
