"""Mistakes in a law of one's own are told in one line: absences out of order, times that are not exact."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from worlds import Scripted, play, scenario

from fl_core.timing.availability import Absence, Availability


class Given(Availability):
    """A law of a user's own, of these absences for all clients."""

    given: Any
    exact: Any = ()

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        absences: Iterator[Absence] = self.given
        return absences

    def times(self) -> tuple[Fraction, ...]:
        times: tuple[Fraction, ...] = self.exact
        return times


ORDER = r"absences are pairs \(leaves, returns\) of increasing times; None: never returns"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (None, "must yield absences, not return None"),
        ([3], rf"yields 3 for client 0, present from 0 on: {ORDER}"),
        ([(1, 2, 3)], rf"yields \(1, 2, 3\) for client 0, present from 0 on: {ORDER}"),
        ([(3, 2)], rf"yields \(3, 2\) for client 0, present from 0 on: {ORDER}"),
        ([(3, 3)], rf"yields \(3, 3\) for client 0, present from 0 on: {ORDER}"),
        ([(-1, 2)], rf"yields \(-1, 2\) for client 0, present from 0 on: {ORDER}"),
        ([(math.nan, 2)], rf"yields \(nan, 2\) for client 0, present from 0 on: {ORDER}"),
        ([(1, math.inf)], rf"yields \(1, inf\) for client 0, present from 0 on: {ORDER}"),
        ([("1", "2")], rf"yields \('1', '2'\) for client 0, present from 0 on: {ORDER}"),
        ([(3, 4), (1, 2)], rf"yields \(1, 2\) for client 0, present from 4 on: {ORDER}"),
    ],
)
def test_absences_of_a_law_of_ones_own_follow_one_another(given: Any, line: str) -> None:
    """A return before the leaving was made one a tick later, and a time that is none was time 0."""
    law = Given(given=given)
    with pytest.raises((TypeError, ValueError), match=rf"^Given\.absences {line}"):
        play(Scripted(), scenario([1, 1, 1], availability=law, time=9))


@pytest.mark.parametrize("exact", [0.5, (0.5,), (math.nan,), (Fraction(-1),), None])
def test_times_that_the_clock_must_hit_are_exact(exact: Any) -> None:
    line = "gives .*: exact times are whole numbers or Fractions, 0 or more"
    with pytest.raises(TypeError, match=rf"^Given\.times {line}"):
        play(Scripted(), scenario([1], availability=Given(given=[], exact=exact)))
    with pytest.raises(TypeError, match=rf"^Scripted\.times {line}"):
        play(Scripted.model_construct(exact=exact), scenario([1]))
