"""Computed claims on Generalized AsyncSGD: checks that can fail, and the quadratic run against invariants."""

from types import SimpleNamespace

import numpy as np
import pytest

from asyncfl.claims.computed import asyncsgd as claims
from asyncfl.claims.computed import asyncsgd_costs as costs
from asyncfl.claims.computed import asyncsgd_simulated as simulated
from asyncfl.claims.theory import queues
from fl_core.theory.jackson import Occupancy


def path(start: list[int], rounds: int) -> queues.Path:
    stream = np.random.default_rng(0)
    return queues.simulate(np.full(4, 0.25), simulated.SPEEDS, np.array(start), rounds, stream)


def test_one_task_is_never_late():
    alone = path([0, 0, 0, 0], 200)
    models, virtual = simulated.generalized_asyncsgd(
        alone, np.full(4, 0.25), lr=0.1, stream=np.random.default_rng(1)
    )
    np.testing.assert_array_equal(models, virtual)


def test_late_steps_are_made_up_for():
    """What virtual and real models differ by are the steps of the tasks that are away."""
    crowded, rounds = path([1, 2, 1, 1], 200), 200
    models, virtual = simulated.generalized_asyncsgd(
        crowded, np.full(4, 0.25), lr=0.1, stream=np.random.default_rng(1)
    )
    steps = -np.diff(virtual)
    for t in range(rounds):
        away = [s for s in range(t + 1) if crowded.delays[s] < 0 or s + crowded.delays[s] > t]
        assert models[t + 1] - virtual[t + 1] == pytest.approx(steps[away].sum(), abs=1e-12)


@pytest.mark.parametrize("bound", ["G", "H"])
def test_a_bound_that_is_too_low_is_seen(monkeypatch, bound):
    shares, honest = [0.4, 0.3, 0.2, 0.1], simulated.generalized_asyncsgd
    assert simulated.bound_slack(bound=bound, p=shares, rounds=300) >= 1

    def astray(*given, **more):
        models, virtual = honest(*given, **more)
        return models + 1000, virtual

    monkeypatch.setattr(simulated, "generalized_asyncsgd", astray)
    assert simulated.bound_slack(bound=bound, p=shares, rounds=300) < 1


def test_a_wrong_delay_is_seen():
    samples = np.random.default_rng(0).normal(2.0, 1.0, (10_000, 2))
    assert simulated._within(samples, np.array([2.0, 2.0]), blocks=50)
    assert not simulated._within(samples, np.array([2.0, 2.1]), blocks=50)


def test_kept_rounds_have_all_come_back():
    _, seen, kept = simulated._simulated("small", [0.5, 0.3, 0.2], 500)
    assert 400 < kept <= 500
    assert np.all(seen.delays[:kept] >= 0)


def test_one_value_a_cluster_stands_for_its_clients():
    by_cluster = claims.rounds(network="5.2", routing=[1, 1, 1], time=3000)
    assert by_cluster == pytest.approx(claims.rounds(network="5.2", routing="uniform", time=3000))


def test_accuracy_of_the_slowest_by_hand():
    clients = {"mean_time": np.array([1.0, 3.0, 2.0]), "accuracy": np.array([0.9, 0.5, 0.7])}
    runs = [SimpleNamespace(files=SimpleNamespace(clients=clients))]
    assert claims.slowest_accuracy(runs) == 0.5
    assert claims.other_accuracy(runs) == pytest.approx(0.8)


@pytest.mark.parametrize("tasks", [2, 5])
def test_counted_formulas_give_what_the_library_computes(tasks):
    loads, tally = np.array([0.5, 0.3, 0.9]), costs.Tally()
    counted = [costs.CountedNumber(load, tally) for load in loads]
    law = Occupancy(loads, tasks)
    z = costs.normalizers(counted, tasks)
    assert z[-2].value / z[-1].value == pytest.approx(law.throughput)
    found = np.array([one.value for one in costs.means(counted, tasks)]) / z[-1].value
    np.testing.assert_allclose(found, law.mean, rtol=1e-12)
    covariance = np.array([law.covariance_with(unit) for unit in np.eye(3)])
    mixed = covariance + np.outer(law.mean, law.mean)  # E[N_i N_j]
    pairs = np.array([one.value for one in costs.products(counted, tasks)]) / z[-1].value
    np.testing.assert_allclose(pairs, mixed[~np.eye(3, dtype=bool)], rtol=1e-12)


def test_multiplications_by_hand():
    """Two clients, two tasks: ρ₁, ρ₁²; ρ₂ Z_0, ρ₂ Z_1. Means: two squares, and two products a client."""
    assert costs.multiplications(formula="normalizers", clients=2, tasks=2) == 4
    assert costs.multiplications(formula="means", clients=2, tasks=2) == 4 + 2 + 4
    assert costs.multiplications(formula="products", clients=2, tasks=2) == 4 + 2 + 2 * 2


# What our own code says of §5's networks, which the paper does not print.
@pytest.mark.parametrize(
    ("routing", "rounds"),
    [
        ("balanced", 16932.2),
        ("uniform", 687.2),
        ([0.0068, 0.0449, 0.0487], 3085.8),  # the printed p_H, scaled to 1
        ("H", 7043.4),
        ("G", 104.0),
    ],
)
def test_rounds_that_are_expected(routing, rounds):
    assert claims.rounds(network="5.2", routing=routing, time=3000) == pytest.approx(rounds, abs=0.05)


def test_the_vector_that_is_found_is_far_from_the_printed_one():
    """By 0.0702 − 0.0487 for a fast client."""
    found = claims.furthest(network="5.2", routing="H", printed=[0.0068, 0.0449, 0.0487])
    assert found == pytest.approx(0.0215, abs=5e-5)
    assert claims.furthest(network="5.2", routing="uniform", printed=[1 / 30] * 3) == pytest.approx(0)


@pytest.mark.parametrize(("ratio", "share"), [(1.2, 0.88), (2, 0.90), (10, 0.95)])
def test_third_term_of_two_clients(ratio, share):
    """Least at this share of the slow client; 76 = 4 · 19 under uniform routing, whatever the speeds."""
    assert claims.best_slow_share(ratio=ratio, tasks=20) == pytest.approx(share)
    assert claims.third_term(ratio=ratio, tasks=20, share=0.5) == pytest.approx(76)
