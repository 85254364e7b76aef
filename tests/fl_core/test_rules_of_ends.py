"""Rules 12, 14 and 17 of the loop: a run ends with its budget, as diverged, or stalled."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from worlds import Scripted, leaving, play, recorded, scenario

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import Recorder
from fl_core.scenario import Budget
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.ace import ACE
from fl_core.strategies.aced import ACED
from fl_core.strategies.afa_cs import AFACS
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.ca2fl import CA2FL
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.fedfix import FedFix
from fl_core.strategies.malenia import Malenia
from fl_core.strategies.mifa import MIFA
from fl_core.strategies.ringleader import Ringleader
from fl_core.strategies.strategy import Strategy


def test_12_budget() -> None:
    """N iterations, U updates, or before the first event later than T, whichever comes first."""
    ends = {}
    for budget in ({"updates": 5}, {"time": 4}, {"updates": 99, "iterations": 3}, {"updates": 5, "time": 4}):
        simulation, seen = play(ASGD(), scenario([1, 2], **budget))
        ends[tuple(budget)] = (simulation.reason, len(seen), seen[-1].time)
    assert ends == {
        ("updates",): ("budget of client updates", 5, 4),  # arrivals at 1, 2, 2, 3, 4, 4
        ("time",): ("budget of virtual time", 6, 4),
        ("updates", "iterations"): ("budget of server iterations", 3, 2),
        ("updates", "time"): ("budget of client updates", 5, 4),
    }
    with pytest.raises(ValueError, match="needs 'updates' or 'time'"):
        Budget(iterations=5)


@pytest.mark.parametrize(
    ("strategy", "budget", "shares"),
    [
        (ASGD(), {"updates": 10}, [1 / 10, 2 / 10, 3 / 10, 4 / 10, 5 / 10, 6 / 10]),
        (ASGD(), {"updates": 10, "time": 5}, [1 / 5, 2 / 5, 2 / 5, 3 / 5, 4 / 5, 4 / 5]),
        (FedAvg(), {"updates": 20, "iterations": 4}, [1 / 20, 1 / 4, 1 / 4, 2 / 4, 2 / 4, 3 / 4]),
    ],
    ids=["updates", "time", "iterations"],
)
def test_12_the_largest_share_of_a_budget_that_is_used_up(
    strategy: Strategy, budget: dict[str, int], shares: list[float]
) -> None:
    """Arrivals at 1, 2, 2, 3, 4, 4; rounds of both clients end at 2, 4, 6."""
    simulation = Simulation(Experiment(scenario=scenario([1, 2], **budget), strategy=strategy))
    assert simulation.share == 0
    found = [simulation.share for _ in simulate(simulation)]
    assert found[: len(shares)] == pytest.approx(shares)


def test_14_divergence() -> None:
    """A rate far too large ends the run as diverged, before the update reaches the strategy."""
    received = []

    def receive(server: Server, update: Update) -> None:
        assert torch.isfinite(update.delta).all()
        received.append(update)
        server.step(update.delta)

    record = recorded(Scripted(local_lr=1e200, on_receive=receive), scenario([1, 1], updates=50)).record
    assert record.status == "diverged"
    assert "not finite" in record.reason
    assert 0 < len(received) < 10
    assert record.curve  # what was known before is kept


def test_14_an_update_that_is_not_finite_ends_the_run_before_anyone_takes_it() -> None:
    """Centres 0 and 1, η_l = 1e200: the second client moves to 1e200 at time 1, by −1e400 at time 2."""
    received = []

    def receive(server: Server, update: Update) -> None:
        received.append((update.client, float(update.delta)))
        server.step(update.delta)

    simulation, _ = play(Scripted(local_lr=1e200, on_receive=receive), scenario([1, 1], updates=50))
    assert received == [(0, 0.0), (1, 1e200), (0, 0.0)]
    assert simulation.server.updates == 3
    assert simulation.status == "diverged"
    assert simulation.reason == "the update of client 1 at time 2 is not finite"


def test_14_a_model_that_is_not_finite_ends_the_run_whatever_its_loss() -> None:
    """A coordinate without any effect on the loss may be infinite all the same."""
    infinite = torch.tensor([0.0, float("inf")], dtype=torch.float64)
    where = scenario([1], centres=[[1.0, 1.0]], updates=10, evaluations=10)
    strategy = Scripted(on_receive=lambda server, update: server.step(infinite))
    recorder = Recorder(Simulation(Experiment(scenario=where, strategy=strategy)))
    world = recorder.simulation.world
    seen = world.evaluate(recorder.simulation.server.model)
    world.evaluate = lambda model: seen  # type: ignore[method-assign]
    recorder.start()
    assert recorder.simulation.status == "running"
    for event in simulate(recorder.simulation):
        recorder.see(event)
    assert recorder.simulation.status == "diverged"
    assert recorder.simulation.reason == "version 1 is not finite"


@pytest.mark.parametrize(
    "strategy",
    [ACE(), ACE(start="when_all_heard"), ACED(), AFACS(start="first_pass"), MIFA(), Malenia(), Ringleader()],
    ids=lambda strategy: strategy.label(),
)
def test_17_stalled_at_once_by_clients_that_never_come(strategy: Any) -> None:
    """Two of five are away for good from time 0: nothing is computed, and they are named."""
    away = {"name": "dropouts", "share": 0.4, "at": 0}
    where = scenario([1, 2, 3, 4, 5], availability=away, updates=100)
    recorder = recorded(strategy, where)
    record = recorder.record
    first, second = leaving(where)
    assert record.status == "stalled"
    assert record.reason == f"waiting for clients that left permanently: {first}, {second}"
    assert recorder.simulation.server.updates == 0
    assert [row["iteration"] for row in record.curve] == [0]


@pytest.mark.parametrize(("lost", "said"), [(10, ""), (11, " …")])
def test_17_ten_lost_clients_are_named(lost: int, said: str) -> None:
    """Of more than that, the first ten."""
    away = {"name": "dropouts", "share": lost / 12, "at": 0}
    where = scenario([1] * 12, availability=away, updates=100)
    simulation, _ = play(ACE(), where)
    named = ", ".join(map(str, leaving(where)[:10]))
    assert simulation.reason == f"waiting for clients that left permanently: {named}{said}"


def test_17_other_strategies_go_on_without_them() -> None:
    """From zeros, or without a table, a lost client is no reason to stop."""
    away = {"name": "dropouts", "share": 0.4, "at": 0}
    for strategy in (AFACS(), MIFA(start="zeros"), CA2FL(buffer=2), ASGD(), FedAvg()):
        simulation, _ = play(strategy, scenario([1, 2, 3, 4, 5], availability=away, updates=30))
        assert (simulation.status, simulation.server.updates) == ("done", 30)


@pytest.mark.parametrize("strategy", [FedAvg(), FedFix(), ASGD(), ACE()])
def test_17_stalled_where_all_clients_left_before_any_update(strategy: Strategy) -> None:
    all_leave = scenario([3, 3, 1], availability={"name": "dropouts", "share": 1, "at": 0}, updates=100)
    simulation, seen = play(strategy, all_leave)
    assert (simulation.status, simulation.reason) == ("stalled", "no client is left, and no update came")
    assert seen == []


def test_17_stalled_when_the_last_job_of_a_lost_client_is_in() -> None:
    """Client 1 leaves at 2 and delivers at 3: Ringleader's rounds need it again, ACE's steps do not."""
    away = {"name": "dropouts", "share": 0.5, "at": 2}
    where = scenario([3, 3], availability=away, updates=40)
    (lost,) = leaving(where)
    ringleader, seen = play(Ringleader(), where)
    assert ringleader.status == "stalled"
    assert ringleader.reason == f"waiting for clients that left permanently: {lost}"
    # Client 1's update completes the table at 3. The second step of the round is client 0's, at 6 if it is
    # there; the next round then misses client 1.
    assert (ringleader.server.version, ringleader.server.now) == ((1, 3) if lost == 0 else (2, 6))
    assert len(seen) == (2 if lost == 0 else 3)
    ace, _ = play(ACE(), where)
    assert (ace.status, ace.server.updates) == ("done", 40)


def test_17_stalled_where_all_jobs_wait_at_a_lost_client() -> None:
    """Its second job never begins: nothing will arrive, although something is in flight."""
    strategy = Scripted(on_next=lambda server: [0, 0, 1, 1] if server.now == 0 else [])
    away = {"name": "dropouts", "share": 0.5, "at": 1}
    simulation, seen = play(strategy, scenario([2, 2], availability=away, updates=9))
    assert simulation.status == "stalled"
    assert len(seen) == 3
    (named,) = simulation.state.flight
    assert simulation.reason == f"waiting for clients that left permanently: {named}"


def test_17_stalled_where_a_buffer_waits_for_more_updates_than_there_are_clients() -> None:
    """Without a concurrency no client gets a second job before a step."""
    waiting, seen = play(FedBuff(buffer=4, concurrency=None), scenario([1, 2, 3], updates=9))
    assert waiting.status == "stalled" and "without a concurrency" in waiting.reason
    assert (len(seen), waiting.server.version) == (3, 0)
    going, _ = play(FedBuff(buffer=4, concurrency=3), scenario([1, 2, 3], updates=9))
    assert (going.status, going.server.version) == ("done", 2)
