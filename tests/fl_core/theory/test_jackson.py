"""The closed network's law against all of its states, exact rationals and mean value analysis."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.theory.jackson import Occupancy

LOADS = st.lists(st.floats(0.05, 20), min_size=1, max_size=4)


def enumerate_states(load, tasks):
    """All states [S, n] and their probabilities [S]."""
    states = [s for s in itertools.product(range(tasks + 1), repeat=len(load)) if sum(s) == tasks]
    states = np.array(states)
    mass = np.prod(np.asarray(load, float) ** states, axis=1)
    return states, mass / mass.sum(), mass.sum()


def mean_value_analysis(load, tasks):
    """Throughput and E[N] [n] (Reiser & Lavenberg, 1980): an arriving task sees one task less."""
    mean, throughput = np.zeros(len(load)), 0.0
    for j in range(1, tasks + 1):
        wait = load * (1 + mean)
        throughput = j / wait.sum()
        mean = throughput * wait
    return throughput, mean


@given(LOADS, st.integers(0, 6))
def test_against_all_states(load, tasks):
    load = np.array(load)
    states, chance, mass = enumerate_states(load, tasks)
    network = Occupancy(load, tasks)
    mean = chance @ states
    covariance = (states * chance[:, None]).T @ states - np.outer(mean, mean)
    np.testing.assert_allclose(network.mean, mean, rtol=1e-9, atol=1e-12)
    for client, unit in enumerate(np.eye(len(load))):
        found = network.covariance_with(unit)
        np.testing.assert_allclose(found, covariance[client], rtol=1e-7, atol=1e-9)
    for k in range(1, tasks + 1):
        np.testing.assert_allclose(network.tail[:, k - 1], chance @ (states >= k), rtol=1e-9, atol=1e-12)
    if tasks:
        assert network.throughput == pytest.approx(enumerate_states(load, tasks - 1)[2] / mass, rel=1e-9)
    weight = np.arange(1.0, len(load) + 1)
    np.testing.assert_allclose(network.covariance_with(weight), covariance @ weight, rtol=1e-7, atol=1e-8)


def test_the_printed_second_moment_is_wrong_on_the_diagonal():
    load, tasks = np.array([2.0, 1.0, 0.5]), 5
    states, chance, _ = enumerate_states(load, tasks)
    z = [enumerate_states(load, k)[2] for k in range(tasks + 1)]
    pairs = [(k, j) for k in range(1, tasks) for j in range(1, tasks - k + 1)]
    printed = sum(load[0] ** (k + j) * z[tasks - k - j] / z[tasks] for k, j in pairs)
    network = Occupancy(load, tasks)
    true = chance @ states[:, 0] ** 2
    assert network.covariance_with(np.eye(3)[0])[0] + network.mean[0] ** 2 == pytest.approx(true)
    assert printed < 0.8 * true


def test_against_exact_rationals():
    load = [Fraction(1, k) for k in range(1, 13)]
    column = [Fraction(1)] * len(load)
    normalizers = [Fraction(1)]
    for _ in range(30):
        column = list(itertools.accumulate(rho * z for rho, z in zip(load, column, strict=True)))
        normalizers.append(column[-1])
    network = Occupancy(np.array(load, float), 30)
    mean = [sum(rho**k * normalizers[30 - k] for k in range(1, 31)) / normalizers[30] for rho in load]
    np.testing.assert_allclose(network.mean, np.array(mean, float), rtol=1e-13)
    assert network.throughput == pytest.approx(float(normalizers[29] / normalizers[30]), rel=1e-13)


def test_thousand_clients_and_tasks_of_equal_load():
    network = Occupancy(np.full(1000, 3.0), 1000)
    states = math.comb(1999, 1000)  # 10^601: beyond the range of floats
    np.testing.assert_allclose(network.mean, 1, rtol=1e-11)
    pairs = (
        math.comb(1999, 998) / states
    )  # E[N choose 2]: both of a pair of tasks are put at the client first
    assert network.covariance_with(np.eye(1000)[0])[0] == pytest.approx(2 * pairs, rel=1e-9)


@pytest.mark.parametrize("spread", [0.01, 1.0, 5.0])
def test_thousand_clients_and_tasks_of_unequal_load(spread):
    load = np.exp(spread * np.random.default_rng(0).normal(size=1000))
    network = Occupancy(load, 1000)
    throughput, mean = mean_value_analysis(load, 1000)
    np.testing.assert_allclose(network.mean, mean, rtol=1e-10)
    assert network.throughput == pytest.approx(throughput, rel=1e-10)
    assert network.mean.sum() == pytest.approx(1000, rel=1e-11)
    weight = np.random.default_rng(1).random(1000)
    through = network.covariance_with(weight)
    assert abs(through.sum()) < 1e-6 * np.abs(through).sum()  # the total number of tasks has no variance


@given(LOADS, st.integers(1, 30), st.floats(1e-200, 1e200))
def test_only_relative_loads_matter(load, tasks, scale):
    load = np.array(load)
    one, other = Occupancy(load, tasks), Occupancy(scale * load, tasks)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    assert one.throughput == pytest.approx(other.throughput * scale, rel=1e-9)


def test_draws_follow_the_law():
    load, tasks = np.array([2.0, 0.5, 1.0]), 4
    states, chance, _ = enumerate_states(load, tasks)
    network, stream = Occupancy(load, tasks), np.random.default_rng(0)
    draws = np.array([network.draw(stream) for _ in range(20_000)])
    seen = np.array([(draws == state).all(1).mean() for state in states])
    assert np.all(np.abs(seen - chance) <= 4 * np.sqrt(chance * (1 - chance) / len(draws)))


@pytest.mark.parametrize("load", [[1.0, 0.0], [1.0, np.inf], [-1.0, 1.0]])
def test_loads_that_make_no_network(load):
    with pytest.raises(ValueError, match="positive, finite loads"):
        Occupancy(np.array(load), 3)


def test_a_network_without_tasks():
    empty = Occupancy(np.array([2.0, 1.0]), 0)
    assert empty.throughput == 0
    assert empty.mean.tolist() == [0, 0]
    assert empty.covariance_with(np.ones(2)).tolist() == [0, 0]
    assert empty.draw(np.random.default_rng(0)).tolist() == [0, 0]
