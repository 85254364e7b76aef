"""The exact rules of the loop, each with a test (docs/rules.md lists them)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from worlds import Everyone, Scripted, play, recorded, scenario

from fl_core.arrangements import Arrangement
from fl_core.arrangements import Rounds as LateRounds
from fl_core.experiment import Experiment
from fl_core.local_work import SGD, LocalWork, Scaffold
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.server.jobs import Send, Update
from fl_core.server.server import Server
from fl_core.strategies.afa_cd import AFACD
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedfix import FedFix
from fl_core.strategies.strategy import Strategy
from fl_core.timing.availability import Availability


def test_1_order_within_an_event() -> None:
    """Clock, flight, local.receive, receive, the client's queued job, broadcast, next, dispatch, yield."""
    log: list[Any] = []

    class Noting(LocalWork):
        def receive(self, server: Server, update: Update) -> None:
            queued = update.client in {job.client for job in server.jobs}
            log.append(("local.receive", server.now, server.in_flight, queued))

        def broadcast(self, server: Server) -> dict[str, torch.Tensor]:
            log.append(("broadcast", server.version))
            return {}

        def client_state(self, server: Server, client: int) -> dict[str, torch.Tensor]:
            log.append(("begin", client, server.now))
            return {}

    def receive(server: Server, update: Update) -> None:
        log.append(("receive", server.version))
        if server.updates == 1:
            server.step(update.delta)

    def following(server: Server) -> list[int]:
        log.append(("next", server.version, server.updates))
        return [0, 0] if server.updates == 0 else [1] if server.updates == 1 else []

    simulation = Simulation(
        Experiment(
            scenario=scenario([3, 1], updates=2),
            strategy=Scripted(on_receive=receive, on_next=following, local=Noting()),
        )
    )
    first = next(iter(simulate(simulation)))
    assert (first.kind, first.time, first.version, first.stepped) == (EventKind.ARRIVAL, 3, 1, True)
    assert log == [
        ("broadcast", 0),
        ("next", 0, 0),
        ("begin", 0, 0),
        ("local.receive", 3, 1, True),  # the job has left flight, the queued one has not begun
        ("receive", 0),
        ("begin", 0, 3),
        ("broadcast", 1),
        ("next", 1, 1),
        ("begin", 1, 3),
    ]


def test_1_next_is_asked_after_start_arrival_tick_and_return() -> None:
    """Four occasions; a client's leaving is none."""
    asked: list[float] = []

    def following(server: Server) -> list[int]:
        asked.append(server.time)
        return [1] if server.now == 0 else []

    away = {"name": "dropouts", "share": 0.5, "at": 2, "back": 7}
    strategy = Scripted(on_begin=lambda server: server.wake(5), on_next=following)
    play(strategy, scenario([9, 4], availability=away, time=20))
    assert asked == [0, 4, 5, 7]


def test_2_ties_arrival_before_return_before_tick_then_client() -> None:
    """At one tick: arrivals by client, then returns, then the alarm."""
    away = {"name": "dropouts", "share": 1, "at": 1, "back": 6}
    strategy = Scripted(
        on_begin=lambda server: server.wake(6), on_next=lambda s: [2, 1, 0] if s.now == 0 else []
    )
    _, seen = play(strategy, scenario([6, 6, 6, 1], availability=away, time=6))
    assert [(e.kind, e.client) for e in seen] == [
        *((EventKind.ARRIVAL, client) for client in range(3)),
        *((EventKind.PRESENCE, client) for client in range(4)),
        (EventKind.TICK, None),
    ]


def test_2_fedfix_window_includes_an_arrival_at_its_end() -> None:
    """Jobs of length 1 and windows of 1/2: every second tick has everyone, the others nobody."""
    simulation, seen = play(FedFix(local_lr=0.5), scenario([1, 1], centres=[[1.0], [1.0]], time=2))
    assert [e.kind for e in seen] == [
        EventKind.TICK,
        EventKind.ARRIVAL,
        EventKind.ARRIVAL,
        EventKind.TICK,
    ] * 2
    # d_i = 2 p_i, so one full step of rate .5 · 2 reaches the optimum.
    assert simulation.server.model.item() == pytest.approx(1)


def test_a_strategy_without_receive_is_told_what_to_write() -> None:
    """When it is described, before anything runs."""

    class Mine(Strategy):
        title: ClassVar[str] = "Mine"

    with pytest.raises(ValueError, match=r"Mine has no receive: write `def receive\(self, server, update\)`"):
        Mine()


def test_a_strategy_has_fields_and_no_state() -> None:
    with pytest.raises(TypeError, match=r"Mine has an __init__: replace it by fields"):

        class Mine(Strategy):
            def __init__(self, beta: float = 0.9) -> None:
                self.beta = beta

    def receive(server: Server, update: Update) -> None:
        strategy.velocity = update.delta  # type: ignore[attr-defined]

    strategy = Scripted(on_receive=receive)
    with pytest.raises(AttributeError, match=r"Scripted sets self.velocity: .* belongs into server.memory"):
        play(strategy, scenario([1], updates=1))


def test_4_due_and_idle() -> None:
    """Due: everyone at the start, then who arrived before the latest step."""
    due: list[list[int]] = []

    def receive(server: Server, update: Update) -> None:
        assert update.client in server.idle
        if server.updates % 2 == 0:
            server.step(update.delta)

    def following(server: Server) -> list[int]:
        due.append(server.due)
        return server.due

    play(Scripted(on_receive=receive, on_next=following), scenario([1, 2, 5], updates=6))
    # times: 0 and 1 arrive (step), both again; 0 at 3, 1 at 4 (step); 0 and 2 at 5 (step), …
    assert due[:6] == [[0, 1, 2], [], [0, 1], [], [0, 1], []]


def test_5_busy_client_queues_first_in_first_out_with_inputs_pinned() -> None:
    """Repetitions are separate jobs; model, K, η_l and index are pinned when sent, service starts in turn."""
    got: list[tuple[int, int, int, int, float]] = []

    def receive(server: Server, update: Update) -> None:
        got.append((update.version, update.steps, update.began, update.time, update.lr))
        server.step(update.delta)
        server.local_lr = 0.5

    def following(server: Server) -> list[Send | int]:
        return {0: [Send(0, steps=2), 0, Send(0, length=7)], 1: [0]}.get(server.updates, [])

    simulation, _ = play(Scripted(on_receive=receive, on_next=following), scenario([2, 1], updates=4))
    assert got == [(0, 2, 0, 2, 0.1), (0, 1, 2, 4, 0.1), (0, 1, 4, 11, 0.1), (1, 1, 11, 13, 0.5)]
    assert simulation.state.indices == [4, 0]


def test_5_no_job_is_shorter_than_a_tick() -> None:
    """Whatever its sender says."""
    sends = iter([[Send(0, length=0)], [Send(0, length=3)]])
    strategy = Scripted(on_next=lambda server: next(sends, []))
    _, seen = play(strategy, scenario([2], updates=2))
    assert [(event.began, event.time) for event in seen] == [(0, 1), (1, 4)]


def test_6_draw() -> None:
    """Distinct idle clients; busy and replace admit more; the stream counts draws, not versions."""
    draws: list[list[int]] = []

    def following(server: Server) -> list[int]:
        if server.updates == 0:
            assert sorted(server.draw(9)) == [0, 1, 2, 3]
            assert set(server.draw(3, np.array([1.0, 0, 1, 0]))) == {0, 2}
            assert server.draw(3, np.zeros(4)) == server.draw(3, np.zeros(4), replace=True) == []
            for wrong in (-1.0, np.nan, np.inf):
                with pytest.raises(ValueError, match=f"probabilities must be 0 or more, not {wrong:g}"):
                    server.draw(3, np.array([1.0, 0, 1, wrong]))
            assert len(server.draw(9, replace=True)) == 9
            assert server.draw(0) == []
            return [0, 1, 2]
        assert server.draw(2) and set(server.draw(5)) <= set(server.idle)
        draws.append(server.draw(50, busy=True, replace=True))
        assert server.draw(4, busy=True) != []
        return []

    simulation, _ = play(Scripted(on_next=following), scenario([1, 1, 1, 1], updates=1))
    assert set(draws[0]) == {0, 1, 2, 3}
    assert simulation.state.draws == 8 + 4  # none for zero clients

    def first_draws(step_between: bool) -> list[int]:
        found: list[int] = []

        def receive(server: Server, update: Update) -> None:
            if step_between:
                server.step(update.delta)

        def ask(server: Server) -> list[int]:
            found.extend(server.draw(1, busy=True))
            return [0] if server.in_flight == 0 else []

        play(Scripted(on_receive=receive, on_next=ask), scenario([1] * 8, updates=10))
        return found

    assert first_draws(True) == first_draws(False)


@pytest.mark.parametrize(
    ("moves", "rings"),
    [({}, [3]), ({2: 6}, [6]), ({1: 2}, [2]), ({1: 8, 2: 3}, [3]), ({1: 2, 4: 7, 5: 6}, [2, 6])],
    ids=str,
)
def test_7_one_alarm_that_carries_no_update(moves: dict[int, int], rings: list[int]) -> None:
    """A second alarm takes the place of a pending one, earlier or later; it must lie ahead."""

    def begin(server: Server) -> None:
        with pytest.raises(ValueError, match="is not later than now"):
            server.wake(0)
        server.wake(3)

    def receive(server: Server, update: Update) -> None:
        if server.now in moves:
            server.wake(moves[server.now])

    rang: list[int] = []
    ring, idle = (lambda server: rang.append(server.now)), (lambda server: list(server.idle))
    strategy = Scripted(on_begin=begin, on_receive=receive, on_tick=ring, on_next=idle)
    simulation, seen = play(strategy, scenario([1], time=9))
    assert rang == rings == [e.time for e in seen if e.kind is EventKind.TICK]
    assert (simulation.status, simulation.server.updates) == ("done", 9)
    assert not any(e.stepped or e.client is not None for e in seen if e.kind is EventKind.TICK)


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
    assert [event.time for event in seen if event.kind is EventKind.TICK] == [at for at, _ in rang]


def test_8_dismiss() -> None:
    """No update and no state; the client is due at once or its next queued job begins; the index is spent."""
    got: list[tuple[int, int]] = []

    class Remembering(SGD):
        def receive(self, server: Server, update: Update) -> None:
            got.append((update.client, update.time))

    def receive(server: Server, update: Update) -> None:
        if server.updates == 1:
            jobs = {(job.client, job.index): job for job in server.jobs}
            server.dismiss(jobs[1, 0])  # client 1 has a second job waiting
            server.dismiss(jobs[2, 0])  # client 2 has none
            with pytest.raises(RuntimeError, match="the job is not in flight"):
                server.dismiss(jobs[2, 0])
            assert server.due == [2]
            assert server.in_flight == 1

    def following(server: Server) -> list[int]:
        return [0, 1, 1, 2] if server.updates == 0 else [2] if server.updates == 1 else []

    strategy = Scripted(on_receive=receive, on_next=following, local=Remembering())
    simulation, _ = play(strategy, scenario([1, 5, 9], updates=9))
    assert got == [(0, 1), (1, 6), (2, 10)]  # both began at time 1
    assert simulation.state.indices == [1, 2, 2]
    assert (simulation.status, simulation.state.serving, simulation.server.in_flight) == ("stalled", 0, 0)


def test_8_what_has_arrived_cannot_be_dismissed() -> None:
    """Nor can it be dismissed by the way: the client's next job goes on."""
    first: list[Any] = []

    def following(server: Server) -> list[int]:
        if server.updates == 1:
            with pytest.raises(RuntimeError, match="the job is not in flight"):
                server.dismiss(first[0])
        return server.due

    def receive(server: Server, update: Update) -> None:
        server.step(update.delta)

    def begin(server: Server) -> None:
        server.wake(server.ticks(Fraction(1, 2)))

    strategy = Scripted(
        on_begin=begin,
        on_tick=lambda server: first.extend(server.jobs),
        on_receive=receive,
        on_next=following,
        exact=(Fraction(1, 2),),
    )
    simulation, seen = play(strategy, scenario([1], updates=3))
    assert [event.client for event in seen if event.kind is EventKind.ARRIVAL] == [0, 0, 0]
    assert (len(first), simulation.status) == (1, "done")


def test_9_absent_clients_deliver_and_jobs_sent_to_them_wait() -> None:
    """Client 0 works through its absence; a job sent meanwhile begins at its return."""
    got: list[tuple[int, int, int, int]] = []

    def receive(server: Server, update: Update) -> None:
        got.append((update.client, update.version, update.began, update.time))
        server.step(update.delta)

    def following(server: Server) -> list[int]:
        if server.updates == 0 and server.now == 0:
            return [0]
        return [0] if server.updates == 1 and server.in_flight == 0 else []

    away = {"name": "dropouts", "share": 1, "at": 1, "back": 10}
    play(Scripted(on_receive=receive, on_next=following), scenario([3, 1], availability=away, updates=2))
    assert got == [(0, 0, 0, 3), (0, 1, 10, 13)]


def test_9_a_return_does_not_disturb_the_job_in_service() -> None:
    """Client 0 is away from 1/2 to 1, in the middle of its first job; its second begins when that arrives."""
    got: list[tuple[int, int]] = []

    def receive(server: Server, update: Update) -> None:
        got.append((update.began, update.time))

    sends = iter([[0, 0]])
    strategy = Scripted(on_receive=receive, on_next=lambda server: next(sends, []))
    away = {"name": "dropouts", "share": 1, "at": "1/2", "back": 1}
    play(strategy, scenario([2], availability=away, updates=2))
    assert got == [(0, 4), (4, 8)]  # ticks of 1/2


class Blink(Availability):
    """Every client is away from 1.2 to 1.4, where the clock shows whole numbers."""

    def absences(self, client: int, n: int, seed: int) -> Iterator[tuple[Fraction, Fraction | None]]:
        yield Fraction(6, 5), Fraction(7, 5)


def test_9_an_absence_takes_a_tick_at_least() -> None:
    """Both times round to 1; the client is back at 2."""
    _, seen = play(ASGD(), scenario([1, 3], availability=Blink(), time=4))
    assert [event.time for event in seen if event.kind is EventKind.PRESENCE] == [2, 2]


def test_9_nobody_left_ends_the_run_and_barriers_go_on() -> None:
    """All leave for good: the last jobs arrive, then the run is done; half of them: FedAvg goes on."""
    everyone = {"name": "dropouts", "share": 1, "at": 2}
    simulation, _ = play(FedAvg(), scenario([3, 3, 1], availability=everyone, updates=100))
    assert (simulation.status, simulation.reason) == ("done", "no client is left")
    assert simulation.server.updates == 3
    simulation, _ = play(FedFix(), scenario([3, 3, 1], availability=everyone, updates=100))
    assert (simulation.status, simulation.reason) == ("done", "no client is left")

    half = {"name": "dropouts", "share": 0.5, "at": 2}
    simulation, seen = play(FedAvg(), scenario([3, 4], availability=half, updates=10))
    assert simulation.reason == "budget of client updates"
    assert len({event.client for event in seen[2:]}) == 1


def test_10_gradient_is_the_mean_corrected_gradient_and_delta_the_difference() -> None:
    """For plain SGD: delta = −η_l K gradient; with SCAFFOLD the correction is inside the gradient."""
    for local in (SGD(steps=3), Scaffold(steps=3)):

        def receive(server: Server, update: Update) -> None:
            torch.testing.assert_close(update.delta, -update.lr * update.steps * update.gradient)
            torch.testing.assert_close(update.model, update.start + update.delta)
            server.step(update.delta)

        play(Scripted(on_receive=receive, local=local), scenario([1, 2], noise=0.3, updates=12))

    def lengths(**fields: Any) -> list[int]:
        where = scenario([2, 1], updates=2).model_dump(serialize_as_any=True)
        where["timing"]["durations"] |= fields
        experiment = {"scenario": where, "strategy": {"name": "asgd", "local": {"name": "sgd", "steps": 5}}}
        return [event.time for event in simulate(Simulation(Experiment.model_validate(experiment)))]

    assert lengths() == [1, 2]
    assert lengths(per_step=True) == [5, 10]


@pytest.mark.parametrize(
    ("per_step", "dynamic", "means"),
    [(False, True, [2, 1]), (True, False, [8, 6]), (True, True, [9, Fraction(13, 2)])],
)
def test_10_mean_times_are_those_of_jobs_of_the_usual_length(
    per_step: bool, dynamic: bool, means: list[Fraction]
) -> None:
    """K = 4 and 6; where it is uniform in 1 … 2K, its mean is K + 1/2."""
    where = scenario([2, 1], updates=2).model_dump(serialize_as_any=True)
    where["timing"]["durations"]["per_step"] = per_step
    local = {"name": "sgd", "steps": [4, 6], "dynamic": dynamic}
    experiment = {"scenario": where, "strategy": {"name": "asgd", "local": local}}
    assert list(Simulation(Experiment.model_validate(experiment)).server.mean_time) == means


def test_11_time_is_exact() -> None:
    """Fractions stay exact, and FedFix's Δt refines the clock without changing any job's length."""
    times = [Fraction(15, 15), Fraction(11, 15), Fraction(7, 15), Fraction(3, 15)]
    free, _ = play(ASGD(), scenario(times, updates=50))
    fixed, _ = play(FedFix(period=Fraction(1, 7)), scenario(times, updates=50))
    assert free.lengths.clock.unit == Fraction(1, 15)
    assert fixed.lengths.clock.unit == Fraction(1, 105)
    assert [free.lengths(i, 0) * free.lengths.clock.unit for i in range(4)] == times
    assert [fixed.lengths(i, 0) * fixed.lengths.clock.unit for i in range(4)] == times


def test_13_evaluation_marks() -> None:
    """Marks at k/E of every budget, each version once, the end always."""

    def rows(strategy: Any, **where: Any) -> list[tuple[float, float, float]]:
        curve = recorded(strategy, scenario(**where)).record.curve
        return [(row["iteration"], row["updates"], row["time"]) for row in curve]

    # One client, a step a unit of time; the time mark at 2.5 sees version 2, at 5 what was there at 5.
    assert rows(ASGD(), times=[1], time=10, evaluations=4) == [
        (0, 0, 0),
        (2, 2, 2.5),
        (5, 5, 5),
        (7, 7, 7.5),
        (10, 10, 10),
    ]
    assert rows(ASGD(), times=[1], updates=10, evaluations=5) == [(k, k, k) for k in (0, 2, 4, 6, 8, 10)]
    # FedAvg of two clients: a version lasts two updates, and is evaluated once.
    assert rows(FedAvg(), times=[1, 2], updates=6, evaluations=6) == [
        (0, 0, 0),
        (1, 2, 2),
        (2, 4, 4),
        (3, 6, 6),
    ]
    # Two marks pass before each of two events; a version is the server's from the first of them on.
    assert rows(ASGD(), times=[5], time=10, evaluations=4) == [(0, 0, 0), (1, 1, 5), (2, 2, 10)]
    assert rows(ASGD(), times=[7], time=10, evaluations=4) == [(0, 0, 0), (1, 1, 7.5), (1, 1, 10)]
    # The last row has the time of the end, not that of a budget that was not used up.
    assert rows(ASGD(), times=[1], updates=3, time=100, evaluations=1) == [(0, 0, 0), (3, 3, 3)]
    # The end is a row even where nothing changed since the last.
    assert rows(FedAvg(), times=[1, 2], updates=5, evaluations=5)[-2:] == [(2, 4, 4), (2, 5, 5)]
    assert rows(FedAvg(), times=[1, 2], updates=5, evaluations=1)[-1] == (2, 5, 5)


def test_a_watcher_is_called_after_each_evaluation_of_a_run() -> None:
    """Between the first model and the end: one step at a time, a mark after every second."""
    rows: list[list[float]] = []
    experiment = Experiment(scenario=scenario([1], updates=10, evaluations=5), strategy=ASGD())
    record = run(
        experiment, watch=lambda recorder: rows.append([row["time"] for row in recorder.record.curve])
    )
    times = [0, 2, 4, 6, 8, 10]
    assert rows == [times[:length] for length in (2, 3, 4, 5, 6)]
    assert [row["time"] for row in record.curve] == times


def test_no_more_versions_are_kept_than_an_arrangement_asks_for() -> None:
    """One, unless it says more; five for rounds from the last five."""
    for arrangement, kept in ((Everyone(), 1), (LateRounds(), 5), (LateRounds(history=1), 1)):
        simulation, _ = play(AFACD(buffer=5), scenario([1] * 5, arrangement=arrangement, updates=60))
        assert sorted(simulation.state.versions) == list(range(12 - kept + 1, 13))
        assert simulation.state.broadcasts.keys() == simulation.state.versions.keys()


class Rounds(Arrangement):
    """Two clients a round, from a version up to two back, one of them with three steps."""

    title: ClassVar[str] = "rounds"
    history: int = 3

    def next(self, server: Server) -> list[Send]:
        if server.in_flight:
            return []
        old = max(0, server.version - 2)
        return [Send(client, old, steps=1 + 2 * client, length=1) for client in (0, 1)]


def test_an_arrangement_stands_in_for_next_and_versions_are_kept() -> None:
    """AFL's rounds: m workers start from an older version; the staleness is what was asked for."""
    where = scenario([5, 5], updates=8).model_copy(update={"arrangement": Rounds()})
    simulation, seen = play(FedAvg(), where)
    assert [event.staleness for event in seen] == [0, 0, 1, 1, 2, 2, 2, 2]
    assert [event.time for event in seen] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert sorted(simulation.state.versions) == [2, 3, 4]
