"""Rule 23 of the loop: a fresh model in mid-job; and rule 7, several alarms pending at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from test_network import ONE, crowded, linked, times
from worlds import Scripted, play, scenario

from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local.prox import Prox
from fl_core.local.sgd import SGD
from fl_core.loop.events import Kind
from fl_core.loop.simulation import Event, Simulation, simulate
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder
from fl_core.server.jobs import Job, Update
from fl_core.server.server import Server
from fl_core.strategies.buffered.fedbuff import FedBuff
from fl_core.testing import conformance, of_strategies


def refreshing(
    *ats: int, weight: float = 1.0, then: Any = None, **more: Any
) -> tuple[Any, Any, list[Update]]:
    """A job of length 10; at each of the ticks the server makes a version, 7 more, and refreshes the job."""
    updates: list[Update] = []

    def begin(server: Server) -> None:
        for number, at in enumerate(ats):
            server.wake(at, number)

    def tick(server: Server) -> None:
        server.step(server.zeros() + 7)
        for job in list(server.jobs):
            server.refresh(job, weight)
            if then:
                then(server, job)

    fields: dict[str, Any] = {
        "on_begin": begin,
        "on_tick": tick,
        "on_receive": lambda server, update: updates.append(update),
        "on_next": lambda server: [0] if server.now == 0 else [],
        "local": SGD(steps=4),
    }
    where = scenario([10, 3], centres=[[1.0], [0.0]], noise=0.5, updates=9)
    return *play(Scripted(**fields | more), where, seed=4), updates


def by_hand(
    simulation: Simulation, merges: dict[int, tuple[float, float]], mu: float = 0
) -> tuple[float, float]:
    """Return θ_end and the start as moved, of 4 plain steps; after so many of them β and θ are merged."""
    world, start = simulation.world, 0.0
    y = start
    for step, sample in enumerate(world.samples(0, 0, 4, 32)):
        if step in merges:
            weight, fresh = merges[step]
            y, start = (1 - weight) * y + weight * fresh, (1 - weight) * start + weight * fresh
        slope = world.gradient(torch.tensor([y], dtype=torch.float64), 0, sample).item()
        y -= 0.1 * (slope + mu * (y - start))
    return y, start


@pytest.mark.parametrize("weight", [1.0, 0.25])
@pytest.mark.parametrize("local", [SGD(steps=4), Prox(steps=4, mu=0.5)], ids=["sgd", "prox"])
@pytest.mark.parametrize(("at", "after"), [(1, 1), (2, 1), (3, 2), (5, 2), (6, 3), (7, 3)])
def test_23_merged_after_the_step_in_progress(at: int, after: int, local: Any, weight: float) -> None:
    """Steps end at 2.5, 5, 7.5, 10: the model received at 5 is used from the third on."""
    simulation, _, (update,) = refreshing(at, weight=weight, local=local)
    end, start = by_hand(simulation, {after: (weight, 7.0)}, mu=getattr(local, "mu", 0))
    assert (update.model.item(), update.start.item()) == (pytest.approx(end), pytest.approx(start))
    assert (update.version, update.staleness, update.steps, update.time) == (0, 1, 4, 10)
    assert [(fresh.version, fresh.after, fresh.weight) for fresh in update.refreshes] == [(1, after, weight)]


def test_23_too_late_in_the_last_step() -> None:
    simulation, _, (update,) = refreshing(8)
    assert update.model.item() == pytest.approx(by_hand(simulation, {})[0]) and not update.refreshes


def test_23_the_newest_of_several_counts_until_the_step_in_progress_ends() -> None:
    """Received at 3 and 4, amid the second step, and at 6, amid the third."""
    simulation, _, (update,) = refreshing(3, 4, 6, weight=0.5)
    end, _ = by_hand(simulation, {2: (0.5, 14.0), 3: (0.5, 21.0)})
    assert update.model.item() == pytest.approx(end)
    assert [(fresh.version, fresh.after) for fresh in update.refreshes] == [(2, 2), (3, 3)]


def test_23_a_collected_job_keeps_what_its_steps_used() -> None:
    """Collected at once, the model received has no step to come."""
    _, _, (update,) = refreshing(6, then=lambda server, job: server.collect(job))
    assert (update.steps, update.refreshes, update.start.item()) == (2, [], 0)


def test_23_only_jobs_in_service() -> None:
    def begin(server: Server) -> None:
        with pytest.raises(RuntimeError, match=r"server\.refresh: the job is not in service"):
            server.refresh(Job(0, 0, 0, server.model, {}, 1, 0.1, 0))

    def tick(server: Server) -> None:
        with pytest.raises(ValueError, match=r"weight 0 is not greater than 0 and at most 1"):
            server.refresh(next(server.jobs), weight=0)

    play(
        Scripted(on_begin=lambda server: server.wake(1) or begin(server), on_tick=tick),
        scenario([9], updates=1),
    )


# Of a job of 4 steps: download until 2, computation until 6, upload until 10; a model takes 2 down.
@pytest.mark.parametrize(
    ("ats", "after", "down"),
    [
        ([1], [2], 16),  # still downloaded: the fresh model follows, from 2 to 4
        ([3], [3], 16),  # from 3 to 5
        ([3.5], [], 16),  # to 5.5, amid the last step
        ([5], [], 12),  # given up at 6, when half of it was sent
        ([8], [], 8),  # uploading: nothing is sent
        ([2, 3], [3], 20),  # the second in place of the first, of which half was sent
        ([0.5, 1], [2], 16),  # of two before the steps begin the second is sent
    ],
    ids=str,
)  # fmt: skip
def test_23_with_a_network_a_refresh_is_a_download(ats: list[float], after: list[int], down: int) -> None:
    def begin(server: Server) -> None:
        for number, at in enumerate(ats):
            server.wake(int(at * 1_000_000), number)

    updates: list[Update] = []
    strategy = Scripted(
        on_begin=begin,
        on_tick=lambda server: server.step() or server.refresh(next(server.jobs)),
        on_receive=lambda server, update: updates.append(update),
        on_next=lambda server: [0] if server.now == 0 else [],
        local=SGD(steps=4),
    )
    simulation, seen = play(strategy, linked(scenario([4], time=40), downlink=ONE / 2, uplink=ONE / 4))
    assert times(seen) == [(0, 10.0)]
    assert [fresh.after for fresh in updates[0].refreshes] == after
    assert simulation.state.sent == {"down": down, "up": 8}


class Refreshed(FedBuff):
    """FedBuff whose clients at work are sent every new version (of no paper)."""

    linear: ClassVar[str] = "a job's steps start from several models"

    def receive(self, server: Server, update: Update) -> None:
        before = server.version
        super().receive(server, update)
        if server.version > before:
            for job in list(server.jobs):
                if job.began is not None:
                    server.refresh(job, 1 / (1 + server.version - job.version))


@pytest.mark.parametrize("check", conformance.checks(Refreshed(local=SGD(steps=3))))
def test_23_conforms(check: conformance.Check) -> None:
    """Repeated, stacked and resumed alike; error terms are refused."""
    check()


def test_23_resumed_and_stacked_amid_transfers(tmp_path: Path) -> None:
    """With shared links that are too small, stopped after each of several events."""
    strategy = Refreshed(local=SGD(steps=7), uplink=None)
    experiment = Experiment(scenario=crowded(), strategy=strategy, seed=2)
    of_strategies.is_the_same_in_stacks(experiment)
    recorder, stops = Recorder(Simulation(experiment)), (3, 11, 12, 20)
    whole: list[tuple[Event, float]] = []
    for number, event in enumerate(simulate(recorder.simulation, AllInFlight()), 1):
        recorder.see(event)
        whole.append((event, recorder.simulation.server.model.sum().item()))
        if number in stops:
            checkpoint.save(recorder, tmp_path / str(number))
    assert any(job.refreshes for job in recorder.simulation.server.jobs)
    for stop in stops:
        again = Recorder(Simulation(experiment))
        checkpoint.load(again, tmp_path / str(stop))
        rest = [(event, again.simulation.server.model.sum().item()) for event in simulate(again.simulation)]
        assert [event for event, _ in rest] == [event for event, _ in whole[stop:]]
        assert [model for _, model in rest] == pytest.approx([model for _, model in whole[stop:]])


def test_7_several_alarms_by_number() -> None:
    """Those of one tick ring in the order of their numbers; each is moved or cancelled by itself."""
    rang: list[tuple[int, int | None]] = []

    def begin(server: Server) -> None:
        assert server.ringing is None
        for alarm, at in {5: 4, 2: 4, 7: 6, -1: 4, 8: 2}.items():
            server.wake(at, alarm)
        server.wake(9, 5)

    def tick(server: Server) -> None:
        rang.append((server.now, server.ringing))
        if server.ringing == 8:
            server.wake(None, 7)
            server.wake(None, 99)
            server.wake(4, 5)

    _, seen = play(Scripted(on_begin=begin, on_tick=tick), scenario([1], time=20))
    assert rang == [(2, 8), (4, -1), (4, 2), (4, 5)]
    assert [event.time for event in seen if event.kind is Kind.TICK] == [at for at, _ in rang]
