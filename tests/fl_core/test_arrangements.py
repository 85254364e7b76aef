"""Scenarios that decide themselves who works on what."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from worlds import Everyone, play, scenario

from fl_core.arrangements.iteration_delay import IterationDelay
from fl_core.arrangements.rounds import Rounds
from fl_core.local.sgd import SGD
from fl_core.server.jobs import Send
from fl_core.strategies.buffered.afa_cd import AFACD
from fl_core.strategies.every_arrival.asgd import ASGD
from fl_core.strategies.rounds.fedavg import FedAvg


def test_rounds_of_m_workers_from_the_last_five_versions() -> None:
    """τ uniform in 0 … min(4, t), m distinct workers a round, one step a round."""
    simulation, seen = play(AFACD(buffer=5), scenario([1] * 10, arrangement=Rounds(), updates=4000))
    staleness = np.array([event.staleness for event in seen])
    rounds = np.array([event.client for event in seen]).reshape(-1, 5)
    assert simulation.server.version == 800
    assert all(len(set(workers)) == 5 for workers in rounds)
    assert set(staleness[:5]) == {0}
    assert max(staleness[5:10]) == 1
    shares = np.bincount(staleness[100:]) / len(staleness[100:])
    assert shares == pytest.approx([0.2] * 5, abs=4 * np.sqrt(0.16 / 3900))


def test_one_version_of_history_is_synchronous() -> None:
    """FedAvg over sampled workers."""
    _, seen = play(FedAvg(), scenario([1] * 10, arrangement=Rounds(history=1), updates=100))
    assert {event.staleness for event in seen} == {0}


def test_biased_arrivals_and_dynamic_steps() -> None:
    """AFL's p = (.19, .19, .1 × 6, .01, .01): the first two come often, the last two hardly; K in 1 … 2c."""
    p = (0.19, 0.19, *[0.1] * 6, 0.01, 0.01)
    biased = Rounds(arrivals=p, most_steps=10)
    _, seen = play(AFACD(local=SGD(steps=5)), scenario([1] * 10, arrangement=biased, updates=3000))
    counts = np.bincount([event.client for event in seen], minlength=10) / 600
    assert min(counts[:2]) > max(counts[2:8]) > min(counts[2:8]) > max(counts[8:])
    assert max(counts[8:]) < 0.15


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


def test_delay_counted_in_server_iterations() -> None:
    """Mean ⌊Exp(5)⌋ = 1/(e^{1/5} − 1) = 4.517 versions, whatever the clients' speeds."""
    _, seen = play(ASGD(), scenario([1, 9, 2], arrangement=IterationDelay(mean=5), updates=6000))
    staleness = np.array([event.staleness for event in seen][200:])
    assert staleness.mean() == pytest.approx(1 / (np.exp(0.2) - 1), abs=4 * staleness.std() / np.sqrt(5800))


def test_a_worker_may_come_twice_in_a_round_with_replacement() -> None:
    """Five uniform draws of ten repeat nobody with chance 10·9·8·7·6/10⁵ = .3024."""
    twice = Rounds(replacement=True)
    _, seen = play(AFACD(buffer=5), scenario([1] * 10, arrangement=twice, updates=4000))
    rounds = np.array([event.client for event in seen]).reshape(-1, 5)
    distinct = np.mean([len(set(workers)) == 5 for workers in rounds])
    assert distinct == pytest.approx(0.3024, abs=4 * np.sqrt(0.3024 * 0.6976 / 800))


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
