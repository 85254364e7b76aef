"""Time to target: against a plain loop, and the rule for runs that never meet it, by hand."""

from math import inf, isfinite, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_core.time_to_target import first_meeting, meets, observed_until, restricted, time_to_target

VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, nan]), max_size=8)
TIMES = st.integers(1, 50).map(float)


@given(VALUES, st.sampled_from([0.25, 0.5, 0.6]), st.booleans())
def test_the_first_evaluation_as_good_as_the_target_counts(
    values: list[float], target: float, higher: bool
) -> None:
    clock = np.arange(len(values)) * 10.0
    expected = inf
    for time, value in zip(clock, values, strict=True):
        if value == target or (value > target if higher else value < target):
            expected = time
            break
    found = first_meeting(values, target, higher)
    assert time_to_target(clock, np.array(values), target, higher) == expected
    assert (inf if found is None else clock[found]) == expected
    assert [bool(meets(value, target, higher)) for value in values] == list(
        meets(np.array(values), target, higher)
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((20.0, 100.0), (50.0, 100.0), (20.0, 50.0)),  # both met it
        ((20.0, 100.0), (inf, 100.0), (20.0, 100.0)),  # the second was cut at its end
        ((80.0, 100.0), (inf, 60.0), (60.0, 60.0)),  # cut before the first met it: nothing is known
        ((inf, 100.0), (inf, 60.0), (60.0, 60.0)),  # both cut
        ((20.0, 100.0), (inf, inf), (20.0, 100.0)),  # diverged: never, as far as the other was seen
        ((inf, 100.0), (inf, inf), (100.0, 100.0)),  # cut against diverged
        ((inf, inf), (inf, inf), (0.0, 0.0)),  # both diverged
    ],
)
def test_two_runs_are_compared_up_to_the_first_cut(
    first: tuple[float, float], second: tuple[float, float], expected: tuple[float, float]
) -> None:
    assert restricted(first, second) == expected
    assert restricted(second, first) == expected[::-1]


@given(*[st.tuples(TIMES, TIMES, st.sampled_from(["met", "cut", "standstill"]))] * 2)
def test_restricted_times_are_finite_and_keep_the_order(
    one: tuple[float, float, str], two: tuple[float, float, str]
) -> None:
    runs = []
    for time, rest, outcome in (one, two):
        met = time if outcome == "met" else inf
        runs.append((met, observed_until(met, time + rest, outcome == "standstill")))
    first, second = restricted(*runs)
    assert isfinite(first) and isfinite(second)
    if runs[0][0] <= runs[1][0]:
        assert first <= second


def test_a_run_at_a_standstill_is_observed_for_ever_unless_it_met_the_target() -> None:
    assert observed_until(inf, 30.0, at_a_standstill=True) == inf
    assert observed_until(inf, 30.0, at_a_standstill=False) == 30
    assert observed_until(10.0, 30.0, at_a_standstill=True) == 30


@given(VALUES, st.integers(1, 4))
def test_the_mean_of_several_evaluations_is_asked_for(values: list[float], marks: int) -> None:
    expected = None
    for at in range(len(values) - marks + 1):
        if sum(values[at : at + marks]) / marks >= 0.6 - 1e-12:
            expected = at
            break
    assert first_meeting(values, 0.6, True, marks) == expected
