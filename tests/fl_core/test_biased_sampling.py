"""FedAvg with biased sampling, and the windows that make up for the bias; plain loops are in `oracles`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from worlds import play, scenario

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.problem import InvalidProblemError
from fl_core.scenario import Scenario
from fl_core.strategies.fedavg import FedAvg

TIMES = ["1", "2.1", "3.7", "7.9"]
CENTRES = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0], [4.0, 1.0]])


def fedavg(sampling: str, local_lr: float = 0.1, **fields: Any) -> FedAvg:
    """Two of four clients a round."""
    return FedAvg.model_validate(
        {"local_lr": local_lr, "sampling": {"name": sampling, "sample": 2, **fields}}
    )


def versions(strategy: FedAvg, seed: int = 0, **where: Any) -> np.ndarray:
    """Every version [versions, 2], the first model left out."""
    where = {"times": TIMES, "centres": CENTRES.tolist(), "updates": 200} | where
    simulation = Simulation(Experiment(scenario=scenario(**where), strategy=strategy, seed=seed))
    return np.array([simulation.server.model.numpy() for event in simulate(simulation) if event.stepped])


def test_the_highest_loss_of_one_minimises_the_largest_loss() -> None:
    """m = 1 is a subgradient method on max_i L_i: the centre of the smallest circle around the centres.

    That is the middle of (−1, −1) and (4, 1), the two farthest apart, as the others lie inside.
    """
    found = versions(fedavg(sampling="highest_loss", sample=1, local_lr=0.01), updates=2000)
    assert found[-500:].mean(0) == pytest.approx([1.5, 0.0], abs=0.03)


def rounds_of(strategy: FedAvg, seed: int = 0, **where: Any) -> tuple[np.ndarray, list[dict[int, float]]]:
    """Every version [versions, 2], and the weights of the round that made it."""
    where = {"times": TIMES, "centres": CENTRES.tolist(), "updates": 200} | where
    simulation = Simulation(Experiment(scenario=scenario(**where), strategy=strategy, seed=seed))
    models, rounds, now = [], [], {}
    for event in simulate(simulation):
        if event.stepped:
            models.append(simulation.server.model.numpy())
            rounds.append(now)
        now = simulation.server.memory.round
    return np.array(models)[1:], rounds[1:]  # the first round was sent before the first event


@pytest.mark.parametrize(("sampling", "window"), [("fastest", 2), ("highest_loss", 3), ("highest_loss", 5)])
def test_the_expected_weights_of_a_window_are_those_of_unbiased_rounds(sampling: str, window: int) -> None:
    """Σ over a window of E d_i = W p_i: the first round's weights, and W − 1 times the odds of a draw."""
    strategy = fedavg(sampling=sampling, window=window)
    simulation = Simulation(
        Experiment(scenario=scenario(TIMES, centres=CENTRES.tolist(), updates=50 * window), strategy=strategy)
    )
    server = simulation.server
    seen, windows = -1, 0
    for _ in simulate(simulation):
        if server.version == seen:
            continue
        seen = server.version
        given = np.array([server.memory.round.get(client, 0.0) for client in range(4)])
        assert given.sum() == pytest.approx(1)
        if (server.memory.rounds - 1) % window == 0:
            owed = np.array(server.memory.owed)
            assert given + (window - 1) * owed / owed.sum() == pytest.approx(window * server.p)
            windows += 1
        else:
            assert set(np.unique(given)) <= {0, 0.5, 1}
            assert given[np.array(server.memory.owed) == 0].sum() == 0
    assert windows > 20


def test_windows_go_on_when_those_who_are_owed_have_left() -> None:
    """Drop-outs may leave only clients that had their share: they are drawn by p then."""
    away = {"name": "dropouts", "share": 0.5, "at": 20}
    for seed in range(4):
        where = scenario(TIMES, centres=CENTRES.tolist(), availability=away, updates=100)
        simulation, _ = play(fedavg(sampling="fastest", window=2), where, seed)
        assert simulation.reason == "budget of client updates"


@pytest.mark.parametrize(
    "fields",
    [
        {"sampling": "uniform", "window": 3},
        {"sampling": "full"},
        {"sampling": "fastest", "window": 3, "unbiased_every": 2},
        {"sampling": "highest_loss", "sample": None},
    ],
    ids=str,
)
def test_options_without_sense_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        fedavg(**fields)


def test_a_window_that_is_too_short_is_refused() -> None:
    """One client of four weighs as much as in four unbiased rounds."""
    where = scenario(TIMES, updates=10)
    assert fedavg(sampling="fastest", sample=1, window=3).refuses(where)
    assert fedavg(sampling="fastest", sample=1, window=4).refuses(where) is None
    problem = {"name": "quadratic", "centres": CENTRES.tolist(), "importance": [0, 1, 1, 1]}
    unimportant = Scenario.model_validate(where.model_dump() | {"problem": problem})
    assert fedavg(sampling="fastest", sample=1, window=9).refuses(unimportant)  # the fastest holds nothing


def test_who_had_more_than_its_share_of_a_window_is_drawn_by_no_later_round() -> None:
    """One of three equal clients is there alone at first: weight 1, where a window of two has 2/3 for it.

    The others come back during its job, and the next round draws two of them, with replacement.
    """
    away = {"name": "dropouts", "share": 2 / 3, "at": 0, "back": "1/2"}
    where = scenario([1, 1, 1], availability=away, updates=40)
    for seed in range(3):
        strategy = fedavg(sampling="fastest", window=2)
        simulation = Simulation(Experiment(scenario=where, strategy=strategy, seed=seed))
        rounds: list[dict[int, float]] = []
        for event in simulate(simulation):
            if simulation.server.memory.round not in rounds[-1:]:
                rounds.append(simulation.server.memory.round)
            if event.stepped and simulation.server.version == 2:
                break
        (alone,) = rounds[0]
        assert rounds[0] == {alone: 1.0}
        assert alone not in rounds[1]
        assert sum(rounds[1].values()) == pytest.approx(1)


def test_no_more_draws_than_clients_that_are_there() -> None:
    """Two of four are left: three draws in proportion to p become two, of weight 1/2 each."""
    away = {"name": "dropouts", "share": 0.5, "at": 0}
    where = scenario(TIMES, centres=CENTRES.tolist(), availability=away, updates=60)
    _, rounds = rounds_of(fedavg(sampling="md", sample=3), availability=away)
    assert {len(weights) for weights in rounds} == {1, 2}
    assert {weight for weights in rounds for weight in weights.values()} == {0.5, 1.0}
    uniform, _ = play(fedavg(sampling="uniform", sample=3), where)
    assert set(uniform.server.memory.round.values()) == {0.5}  # (n/m) p_i = 4/2 · 1/4


def test_a_window_is_judged_under_each_seed_where_speeds_are_drawn() -> None:
    """Client 0 holds 7/10: two rounds make up for it alone, but not for another, which holds 1/10.

    Half of the clients are fast, of those the first is chosen: whether it is client 0 depends on the seed.
    """
    where = Scenario.model_validate(
        {
            "problem": {"name": "quadratic", "centres": CENTRES.tolist(), "importance": [7, 1, 1, 1]},
            "timing": {"durations": {"name": "two_speed", "share": 0.5}},
            "budget": {"updates": 10},
        }
    )
    strategy = fedavg(sampling="fastest", sample=1, window=2)
    assert strategy.refuses(where) is None
    fast = []
    for seed in range(6):
        fast.append(where.timing.durations.means(4, seed)[0] == 1)
        if fast[-1]:
            play(strategy, where, seed)
        else:
            with pytest.raises(InvalidProblemError):
                play(strategy, where, seed)
    assert not fast[0] and any(fast)  # seed 0 alone does not tell
    problem = {"name": "quadratic", "centres": [[0.0], [1.0]], "importance": [9, 1]}
    two = Scenario.model_validate(where.model_dump(serialize_as_any=True) | {"problem": problem})
    assert strategy.refuses(two) is None  # there are but two ways to draw one of two clients


def test_choosing_by_loss_has_no_error_terms() -> None:
    """The expected step would send to others: said beforehand, not found in the middle of a run."""
    assert fedavg(sampling="highest_loss").linear == "whom it sends to depends on the losses"
    assert fedavg(sampling="fastest").linear is True
