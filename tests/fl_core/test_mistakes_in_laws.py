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


@pytest.mark.parametrize(
    "given",
    [
        *(None, [3], [(1, 2, 3)], [(3, 2)], [(3, 3)], [(-1, 2)]),
        *([(math.nan, 2)], [(1, math.inf)], [("1", "2")], [(3, 4), (1, 2)]),
    ],
    ids=str,
)
def test_absences_of_a_law_of_ones_own_follow_one_another(given: Any) -> None:
    """A return before the leaving was made one a tick later, and a time that is none was time 0."""
    law = Given(given=given)
    with pytest.raises((TypeError, ValueError), match=r"^Given\.absences "):
        play(Scripted(), scenario([1, 1, 1], availability=law, time=9))


@pytest.mark.parametrize("exact", [0.5, (0.5,), (math.nan,), (Fraction(-1),), None])
def test_times_that_the_clock_must_hit_are_exact(exact: Any) -> None:
    with pytest.raises(TypeError, match=r"^Given\.times "):
        play(Scripted(), scenario([1], availability=Given(given=[], exact=exact)))
    with pytest.raises(TypeError, match=r"^Scripted\.times "):
        play(Scripted.model_construct(exact=exact), scenario([1]))
