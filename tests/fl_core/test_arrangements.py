"""Scenarios that decide themselves who works on what."""

from __future__ import annotations

from worlds import Everyone, play, scenario

from fl_core.arrangements import Rounds
from fl_core.strategies.afa_cd import AFACD


def test_no_more_versions_are_kept_than_an_arrangement_asks_for() -> None:
    """One, unless it says more; five for rounds from the last five."""
    for arrangement, kept in ((Everyone(), 1), (Rounds(), 5), (Rounds(history=1), 1)):
        simulation, _ = play(AFACD(buffer=5), scenario([1] * 5, arrangement=arrangement, updates=60))
        assert sorted(simulation.state.versions) == list(range(12 - kept + 1, 13))
        assert simulation.state.broadcasts.keys() == simulation.state.versions.keys()


def test_rounds_in_words() -> None:
    """What differs from one version to another of the experiments in the paper."""
    assert Rounds().label() == "rounds of 5 from the last 5 models"
    assert Rounds(workers=3, history=1).label() == "synchronous rounds of 3"
    some = Rounds(history=2, arrivals=(0.5, 0.3, 0.2), most_steps=6)
    assert some.label() == "rounds of 5 from the last 2 models, biased arrivals, 1 … 6 steps"
