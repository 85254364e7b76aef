"""Table 2 of Fraboni et al.: exact values, schedules played through, and sampling enumerated."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfl.claims.computed.fraboni_schedules import equal, hardware
from asyncfl.claims.theory import schemes
from fl_core.theory import weights

TIMES = st.lists(st.fractions(Fraction(1, 4), 3, max_denominator=4), min_size=2, max_size=4)


def oldest_update(times, rounds):
    """Largest staleness of asynchronous FedAvg, from the schedule in exact time."""
    events = sorted((k * time, i) for i, time in enumerate(times) for k in range(1, rounds))
    version, worst = [0] * len(times), 0
    for n, (now, client) in enumerate(events):
        if now > (rounds - 1) * min(times):
            break  # the fastest client has no more events
        worst = max(worst, n - version[client])
        version[client] = n + 1
    return worst


def test_published_values_of_asynchronous_fedavg():
    four, two, ten = (schemes.async_fedavg(equal(m), hardware(m, x)) for m, x in [(4, 80), (2, 50), (10, 80)])
    assert (four.window, four.delay) == (732, 10)
    assert (two.window, two.delay, two.weights) == (3, 2, (Fraction(3, 2), Fraction(3, 4)))
    assert ten.window == 79_656_329_334
    rates = [float(sum(1 / time for time in hardware(m, 80))) for m in (10, 20, 50)]  # aggregations a unit
    assert rates == pytest.approx([21.28, 41.31, 101.61], abs=5e-3)


def test_published_values_of_fedfix():
    half, fifth = (schemes.fedfix(equal(4), hardware(4, 80), Fraction(1, k)) for k in (2, 5))
    assert (half.window, fifth.window) == (2, 60)
    assert (half.delay, fifth.delay) == (1, 4)


@pytest.mark.parametrize("duration", [Fraction(1), Fraction(7, 2), Fraction(100)])
def test_aggregations_in_a_time(duration):
    p, times = equal(4), hardware(4, 80)
    assert schemes.fedavg(p, times).aggregations(duration) == math.floor(duration)
    assert schemes.async_fedavg(p, times).aggregations(duration) == sum(duration // t for t in times)
    assert schemes.fedfix(p, times, Fraction(1, 5)).aggregations(duration) == math.floor(duration * 5)


@given(TIMES)
def test_nobody_is_staler_than_said(times):
    scheme = schemes.async_fedavg(equal(len(times)), times)
    seen = oldest_update(times, 200)
    assert len(times) - 1 <= seen <= scheme.delay
    assert scheme.delay <= (len(times) - 1) * math.ceil(max(times) / min(times))
    slowest = max(times) / schemes.common_divisor(times)
    assert len(times) <= scheme.window <= len(times) * slowest ** (len(times) - 1)
    assert scheme.beta == max(scheme.weights) <= max(times) / min(times)


def test_the_said_staleness_is_reached():
    for clients, percent in [(4, 80), (2, 50)]:
        times = hardware(clients, percent)
        assert oldest_update(times, 400) == schemes.async_fedavg(equal(clients), times).delay


@given(TIMES, st.fractions(Fraction(1, 4), 4, max_denominator=4))
def test_bounds_of_fedfix(times, period):
    scheme = schemes.fedfix(equal(len(times)), times, period)
    slowest = math.ceil(max(times) / period)
    assert 0 <= scheme.delay < slowest
    assert 1 <= scheme.window <= slowest ** len(times)


@given(TIMES)
def test_limits(times):
    clients = len(times)
    p = equal(clients)
    synchronous, slow = schemes.fedavg(p, times), schemes.fedfix(p, times, max(times))
    assert (slow.weights, slow.delay, slow.window, slow.alpha, slow.beta) == (
        (synchronous.weights, 0, 1, synchronous.alpha, synchronous.beta)
    )
    unit = schemes.common_divisor(times)  # Δt → 0: d_i Δt → τ_i p_i, asynchronous weights up to a factor
    fast = weights.fedfix(p, times, unit)
    assert [d * unit for d in fast] == [time / clients for time in times]
    same = schemes.async_fedavg(p, [times[0]] * clients)
    assert (same.window, same.delay) == (clients, clients - 1)


@given(TIMES)
def test_common_multiple_and_divisor(times):
    cycle, unit = schemes.common_multiple(times), schemes.common_divisor(times)
    assert all((cycle / time).denominator == 1 and (time / unit).denominator == 1 for time in times)
    steps = range(1, int(cycle / times[0]))
    assert not any(all((k * times[0] / time).denominator == 1 for time in times) for k in steps)
    assert math.gcd(*(int(time / unit) for time in times)) == 1


@given(TIMES, st.data())
def test_sampling_against_enumeration(times, data):
    clients = len(times)
    size = data.draw(st.integers(1, clients))
    parts = data.draw(st.lists(st.integers(1, 5), min_size=clients, max_size=clients))
    p = [Fraction(part, sum(parts)) for part in parts]
    uniform, md = schemes.uniform_sampling(p, times, size), schemes.md_sampling(p, times, size)
    subsets = list(itertools.combinations(range(clients), size))
    draws = list(itertools.product(range(clients), repeat=size))
    for scheme, sets, chance in [
        (uniform, subsets, [Fraction(1, len(subsets))] * len(subsets)),
        (md, draws, [math.prod(p[i] for i in drawn) for drawn in draws]),
    ]:
        omega = [[scheme.weights[i] * drawn.count(i) for i in range(clients)] for drawn in sets]
        mean = [sum(c * w[i] for c, w in zip(chance, omega, strict=True)) for i in range(clients)]
        assert mean == p
        for i, j in itertools.combinations(range(clients), 2):
            joint = sum(c * w[i] * w[j] for c, w in zip(chance, omega, strict=True))
            assert joint == scheme.alpha * p[i] * p[j]
        for i in range(clients):  # γ_i = E[ω_i²] − α q_i² ≤ β q_i (Lemma 6)
            square = sum(c * w[i] ** 2 for c, w in zip(chance, omega, strict=True))
            assert square - scheme.alpha * p[i] ** 2 <= scheme.beta * p[i]
        longest = sum(c * max(times[i] for i in drawn) for c, drawn in zip(chance, sets, strict=True))
        assert scheme.periods == (longest,)


def test_uniform_sampling_of_equal_clients():
    scheme = schemes.uniform_sampling(equal(10), hardware(10, 80), 4)
    assert (scheme.alpha, scheme.beta) == (Fraction(10 * 3, 4 * 9), Fraction(10 - 4, 4 * 9))


def test_rounds_have_no_delay_and_are_unbiased_each():
    """One aggregation a round, of updates on the newest model: τ = 0 and W = 1."""
    p, times = equal(4), hardware(4, 80)
    for scheme in (
        schemes.fedavg(p, times),
        schemes.uniform_sampling(p, times, 2),
        schemes.md_sampling(p, times, 2),
    ):
        assert (scheme.delay, scheme.window) == (0, 1)


SHARES, LENGTHS = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(3), Fraction(2), Fraction(5, 2)]


def test_asynchronous_fedavg_worked_by_hand():
    """30 is the least common multiple, of 6, 4 and 5 halves; 1/3 + 1/2 + 2/5 = 37/30."""
    assert schemes.async_fedavg(SHARES, LENGTHS) == schemes.Scheme(
        weights=(Fraction(37, 20), Fraction(37, 45), Fraction(37, 72)),
        alpha=Fraction(0),
        beta=Fraction(37, 20),
        periods=tuple(LENGTHS),
        delay=1 + 2 + 2 - 1,
        window=10 + 15 + 12,
    )


def test_fedfix_worked_by_hand():
    """Δt = 1: every third, second and third aggregation."""
    assert schemes.fedfix(SHARES, LENGTHS, Fraction(1)) == schemes.Scheme(
        weights=(Fraction(3, 2), Fraction(2, 3), Fraction(1, 2)),
        alpha=Fraction(1),
        beta=Fraction(0),
        periods=(Fraction(1),),
        delay=2,
        window=6,
    )


def test_sampling_worked_by_hand():
    # α = 3·1/(2·2); 1/2 (3/2 − 3/4); the longest of two is 3 twice and 5/2 once
    uniform = schemes.uniform_sampling(SHARES, LENGTHS, 2)
    assert (uniform.alpha, uniform.beta) == (Fraction(3, 4), Fraction(3, 8))
    assert uniform.periods == (Fraction(17, 6),)
    # 2 (1/3)² + 5/2 ((1/2)² − (1/3)²) + 3 (1 − (1/2)²)
    md = schemes.md_sampling(SHARES, LENGTHS, 2)
    assert (md.alpha, md.beta, md.periods) == (Fraction(1, 2), Fraction(1, 2), (Fraction(203, 72),))
    # one client alone
    alone = schemes.uniform_sampling([Fraction(1)], [Fraction(2)], 1)
    assert (alone.alpha, alone.beta, alone.periods) == (1, 0, (Fraction(2),))
