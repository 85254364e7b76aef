"""Scenarios that decide themselves who works on what."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from worlds import Everyone, play, scenario

from fl_core.arrangements.rounds import Rounds
from fl_core.server.jobs import Send
from fl_core.strategies.buffered.afa_cd import AFACD


def test_dynamic_steps_of_a_round_reach_from_one_to_2c() -> None:
    """600 draws of 1 … 6: one of the six is missing with a chance below 6 (5/6)^600 = 10^−46."""
    arrangement = Rounds(workers=600, most_steps=6)
    server: Any = SimpleNamespace(
        version=0,
        in_flight=0,
        stream=lambda *name: np.random.default_rng(0),
        draw=lambda count, p, replace: [0] * count,
    )
    drawn = [send.steps for send in arrangement.next(server) if isinstance(send, Send)]
    assert Counter(drawn).keys() == {1, 2, 3, 4, 5, 6}
    assert len(drawn) == 600


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
