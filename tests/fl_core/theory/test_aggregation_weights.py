"""Fraboni's weights: published tables, and schedules played through with exact times."""

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.theory import weights
from tests.papers import fraboni
from tests.papers.fraboni import buffers, equal, hardware, one_by_one, ticks

TIMES = st.lists(st.fractions(Fraction(1, 4), 3, max_denominator=4), min_size=2, max_size=4)


def limit(schedule, d, phi, centres=(1.0, -2.0, 3.0, 0.5), average=2000):
    """Mean of the last models where each client's work is φ(θ_i* − θ), a quadratic's."""
    models = [0.0]
    for here in schedule:
        step = sum(d[i] * phi * (centres[i] - models[version]) for i, version in here.items())
        models.append(models[-1] + step)
    return np.mean(models[-average:])


def test_published_tables():
    d = weights.time_based(equal(4), hardware(4, 80))
    np.testing.assert_allclose([float(x) for x in d], [2.37662, 1.74286, 1.10909, 0.47532], atol=5e-6)
    assert weights.time_based(equal(2), hardware(2, 50)) == [Fraction(3, 2), Fraction(3, 4)]
    assert weights.fedfix(equal(4), hardware(4, 80), Fraction(1, 2)) == [
        Fraction(1, 2),
        Fraction(1, 2),
        Fraction(1, 4),
        Fraction(1, 4),
    ]
    assert [4 * x for x in weights.fedfix(equal(4), hardware(4, 80), Fraction(1, 5))] == [5, 4, 3, 1]


def test_floats_in_plain_floats_out():
    times = hardware(4, 80)
    for d, exact in [
        (weights.time_based(np.full(4, 0.25), times), weights.time_based(equal(4), times)),
        (
            weights.fedfix(np.full(4, 0.25), times, Fraction(1, 5)),
            weights.fedfix(equal(4), times, Fraction(1, 5)),
        ),
    ]:
        assert all(type(x) is float for x in d)
        assert d == [float(x) for x in exact]


@given(TIMES, st.data())
def test_a_window_of_arrivals_counts_everybody_as_wanted(times, data):
    parts = data.draw(st.lists(st.integers(1, 9), min_size=len(times), max_size=len(times)))
    p = [Fraction(part, sum(parts)) for part in parts]
    d, window = weights.time_based(p, times), fraboni.async_fedavg(p, times).window
    total = [Fraction(0)] * len(times)
    for (client,) in islice(one_by_one(times), window):
        total[client] += d[client]
    assert total == [window * p_i for p_i in p]


@given(TIMES, st.fractions(Fraction(1, 4), 4, max_denominator=4))
def test_a_window_of_ticks_counts_everybody_as_wanted(times, period):
    p = equal(len(times))
    d, window = weights.fedfix(p, times, period), fraboni.fedfix(p, times, period).window
    total = [Fraction(0)] * len(times)
    for here in islice(ticks(times, period), window):
        for client in here:
            total[client] += d[client]
    assert total == [window * p_i for p_i in p]


def test_exponential_times_need_other_weights_in_fedfix():
    times, period = [Fraction(1), Fraction(1, 2), Fraction(1, 5)], Fraction(1, 2)
    stream, rounds = np.random.default_rng(0), 40_000
    means = np.array(times, float)
    # A client restarts at the tick after its return; what is left of an exponential length has the same law.
    taken = stream.exponential(means, (rounds, 3)) <= float(period)
    q = taken.mean(0) * weights.fedfix_exponential(equal(3), times, period)
    np.testing.assert_allclose(q, 1 / 3, atol=4 * (1 / 3) / math.sqrt(rounds) * 1.3)
    printed = float(weights.fedfix(equal(3), times, period)[0]) * -math.expm1(-period / times[0])
    assert printed == pytest.approx(0.787 / 3, abs=2e-4)  # eq. (14) makes the slow client count for less


def test_relative_error_of_the_printed_weights_under_exponential_times():
    times, period = hardware(10, 80), Fraction(1, 2)
    printed = np.array(weights.fedfix(np.full(10, 0.1), times, period))
    ratio = printed / weights.fedfix_exponential(np.full(10, 0.1), times, period)
    ratio /= ratio.mean()
    assert (ratio.min(), ratio.max()) == pytest.approx((0.74, 1.33), abs=0.02)


@given(TIMES, st.integers(1, 4), st.integers(1, 60))
def test_participations_are_those_of_the_schedule(times, size, rounds):
    size = min(size, len(times))
    counts = [0] * len(times)
    for here in islice(buffers(times, size), rounds):
        for client in here:
            counts[client] += 1
    assert weights.fedbuff_participations(times, size, rounds) == counts


def test_no_weight_for_who_never_takes_part():
    with pytest.raises(ValueError, match=r"never take part: \[1\]"):
        weights.by_participation(equal(2), [3, 0], 3)


@pytest.mark.parametrize(
    ("by_weight", "phi", "wanted"),
    [
        (False, 0.1, 0.8125),
        # Recorded from the published code: .62378 and .61836, which exact times do not give. Float times
        # break exact ties by rounding; the limit of this loop then moves with the length of the run, .60–.69.
        (True, 0.1, 0.63081),
        (True, 0.01, 0.62558),
        (True, 0.001, 0.625),  # unbiased as φ → 0
    ],
)
def test_limits_of_buffers_in_the_published_event_loop(by_weight, phi, wanted):
    """The other schemes are simulated in tests/fl_core/test_worked_numbers.py."""
    times, rounds = hardware(4, 80), 12_000
    counts = weights.fedbuff_participations(times, 2, rounds)
    d = weights.by_participation([0.25] * 4, counts, rounds) if by_weight else [0.5] * 4
    ends = limit(islice(buffers(times, 2), rounds), d, phi)
    assert ends == pytest.approx(wanted, abs=5e-4)
