"""Exact time: ticks, rounding, common units."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.timing.clock import VirtualClock, common_unit
from fl_core.timing.durations import FX, Exponential, Iterations, Lengths

positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000)


@given(st.lists(positive, min_size=1, max_size=6))
def test_common_unit_divides_all_and_is_the_largest_that_does(times: list[Fraction]) -> None:
    unit = common_unit(times)
    multiples = [time / unit for time in times]
    assert all(multiple.denominator == 1 for multiple in multiples)
    assert math.gcd(*(multiple.numerator for multiple in multiples)) == 1


def test_common_unit_takes_no_notice_of_zero_and_needs_something_else() -> None:
    assert common_unit([Fraction(0), Fraction(3, 4)]) == Fraction(3, 4)
    for times in ([], [Fraction(0)]):
        with pytest.raises(ValueError, match="no unit: there is no time other than 0"):
            common_unit(times)


@given(positive, st.integers(0, 10**9))
def test_ticks_are_exact_both_ways(unit: Fraction, ticks: int) -> None:
    clock = VirtualClock(unit)
    assert clock.ticks(ticks * unit) == ticks
    assert clock.time(ticks) == float(ticks * unit)
    with pytest.raises(ValueError, match="is no whole number of ticks"):
        clock.ticks(ticks * unit + unit / 3)


@given(positive, st.one_of(positive, st.floats(1e-9, 1e6)))
def test_rounding_is_to_the_nearest_tick_and_never_to_none(unit: Fraction, time: Fraction | float) -> None:
    ticks = VirtualClock(unit).round(time)
    assert ticks >= 1
    if ticks > 1 or Fraction(time) >= unit:
        assert abs(ticks * unit - Fraction(time)) <= unit / 2


@pytest.mark.parametrize(
    ("time", "ticks"), [(0.1, 1), (0.74, 1), (Fraction(3, 4), 2), (1.2, 2), (1.25, 3), (10, 20), (0, 1)]
)
def test_rounding_by_hand(time: Fraction | float, ticks: int) -> None:
    """Ticks of 1/2: a half goes up, and none is less than one."""
    assert VirtualClock(Fraction(1, 2)).round(time) == ticks


def test_units_of_laws_that_draw() -> None:
    """Millionths of virtual time; whole iterations, where delays are counted in these."""
    assert Lengths(Exponential(), 3, 0).clock.unit == Fraction(1, 1_000_000)
    assert Lengths(Iterations(), 3, 0).clock.unit == 1


def test_a_clock_needs_a_positive_unit() -> None:
    with pytest.raises(ValueError, match="must be positive, not 0"):
        VirtualClock(Fraction(0))


def test_f80_with_four_clients_is_exact() -> None:
    """τ = (15, 11, 7, 3)/15, and one FedFix window of 1/5 is exactly three ticks."""
    lengths = Lengths(FX(), 4, 0, [Fraction(1, 5)])
    assert lengths.means == tuple(Fraction(k, 15) for k in (15, 11, 7, 3))
    assert lengths.clock.unit == Fraction(1, 15)
    assert [lengths(client, 7) for client in range(4)] == [15, 11, 7, 3]
    assert lengths.clock.ticks(Fraction(1, 5)) == 3


@pytest.mark.parametrize("n", [4, 20])
def test_windows_of_fedfix_are_counted_right_where_floats_fail(n: int) -> None:
    """⌈τ_i/Δt⌉ with Δt = .2: the fastest client fits one window, and in the published code's floats two."""
    period = Fraction(1, 5)
    lengths = Lengths(FX(), n, 0, [period])
    window = lengths.clock.ticks(period)
    windows = [-(-lengths(client, 0) // window) for client in range(n)]
    in_floats = [math.ceil((1 - i * 80.0 / 100 / (n - 1)) / 0.2) for i in range(n)]
    assert windows[-1] == 1
    assert in_floats[-1] == 2
    assert windows == [math.ceil(tau / period) for tau in lengths.means]
    if n == 4:
        assert windows == [5, 4, 3, 1]
