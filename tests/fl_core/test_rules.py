"""The exact rules of the loop, each with a test (docs/architecture.md lists them)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from worlds import Scripted, play, recorded, scenario

from fl_core.arrangements.arrangement import Arrangement
from fl_core.arrangements.iteration_delay import IterationDelay
from fl_core.arrangements.rounds import Rounds as FewWorkers
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local.scaffold import Scaffold
from fl_core.local.sgd import SGD
from fl_core.local.work import LocalWork
from fl_core.loop.events import Kind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Record, Recorder, run
from fl_core.scenario import Budget, Scenario
from fl_core.server.jobs import Send, Update
from fl_core.server.server import Server
from fl_core.strategies.buffered.ca2fl import CA2FL
from fl_core.strategies.buffered.fedbuff import FedBuff
from fl_core.strategies.every_arrival.asgd import ASGD
from fl_core.strategies.rounds.favas import FAVAS
from fl_core.strategies.rounds.fedavg import FedAvg
from fl_core.strategies.rounds.fedfix import FedFix
from fl_core.strategies.rounds.quafl import QuAFL
from fl_core.strategies.strategy import Strategy
from fl_core.strategies.tables.ace import ACE
from fl_core.strategies.tables.aced import ACED
from fl_core.strategies.tables.afa_cs import AFACS
from fl_core.strategies.tables.malenia import Malenia
from fl_core.strategies.tables.mifa import MIFA
from fl_core.strategies.tables.ringleader import Ringleader
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
    assert (first.kind, first.time, first.version, first.stepped) == (Kind.ARRIVAL, 3, 1, True)
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
        *((Kind.ARRIVAL, client) for client in range(3)),
        *((Kind.PRESENCE, client) for client in range(4)),
        (Kind.TICK, None),
    ]


def test_2_fedfix_window_includes_an_arrival_at_its_end() -> None:
    """Jobs of length 1 and windows of 1/2: every second tick has everyone, the others nobody."""
    simulation, seen = play(FedFix(local_lr=0.5), scenario([1, 1], centres=[[1.0], [1.0]], time=2))
    assert [e.kind for e in seen] == [Kind.TICK, Kind.ARRIVAL, Kind.ARRIVAL, Kind.TICK] * 2
    # d_i = 2 p_i, so one full step of rate .5 · 2 reaches the optimum.
    assert simulation.server.model.item() == pytest.approx(1)


def test_3_version() -> None:
    """At most one step an event, always +1, a new tensor; staleness counts versions before receive."""
    seen: list[tuple[int, int]] = []
    models: list[torch.Tensor] = []

    def receive(server: Server, update: Update) -> None:
        assert update.staleness == server.version - update.version
        before = server.model
        server.step()  # nothing changes, and yet it is a version
        assert server.version == update.version + update.staleness + 1
        with pytest.raises(RuntimeError, match="a second step in one event"):
            server.step()
        models.append(before)

    def following(server: Server) -> list[int]:
        seen.append((server.version, server.updates))
        return server.due

    play(Scripted(on_receive=receive, on_next=following), scenario([1, 3], updates=6))
    assert seen == [(k, k) for k in range(7)]

    kept = [torch.zeros(1, dtype=torch.float64)]

    def mix(server: Server, update: Update) -> None:
        old, value = server.model, server.model.clone()
        kept[0] += 1
        server.step(model=kept[0])
        assert torch.equal(old, value)
        assert server.model is not kept[0]

    play(Scripted(on_receive=mix), scenario(updates=3))


def scribble(server: Server, update: Update) -> None:
    server.model.add_(update.delta)


def scribble_and_step(server: Server, update: Update) -> None:
    server.model.mul_(0.9)
    server.step(update.delta)


def scribble_into_the_new_version(server: Server, update: Update) -> None:
    server.step(update.delta)
    server.model.mul_(0.9)


def scribble_by_another_name(server: Server, update: Update) -> None:
    memory = server.memory
    memory.average = getattr(memory, "average", server.model)
    memory.average.mul_(0.9).add_(0.1 * server.model)
    server.step(update.delta)


def scribble_into_the_start(server: Server, update: Update) -> None:
    server.step(update.delta)
    if update.staleness:
        update.start.add_(1)


@pytest.mark.parametrize(
    ("receive", "what"),
    [
        *((scribble, "the server's model"), (scribble_and_step, "the server's model")),
        (scribble_into_the_new_version, "the server's model"),
        (scribble_by_another_name, "the server's model"),
        (scribble_into_the_start, "update.start"),
    ],
)
def test_3_a_strategy_that_writes_into_a_version_is_named(receive: Any, what: str) -> None:
    """One line, in the event in which it happens."""
    with pytest.raises(RuntimeError, match=rf"^Scripted changes {what} in place, a version that .*clone\(\)"):
        play(Scripted(on_receive=receive), scenario([1, 3]))


@pytest.mark.parametrize("method", ["on_begin", "on_next"])
def test_3_nor_may_other_methods_write(method: str) -> None:
    """Before the first event, and when it is asked whom to send to."""

    def write(server: Server) -> list[int]:
        server.model.zero_()
        return server.due

    with pytest.raises(RuntimeError, match="Scripted changes the server's model in place"):
        play(Scripted(**{method: write}), scenario())


def test_3_the_model_is_not_set_either() -> None:
    """As in `server.model += update.delta`."""

    def receive(server: Server, update: Update) -> None:
        server.model = server.model + update.delta

    with pytest.raises(AttributeError, match=r"server\.model has no setter: make a new .* server\.step"):
        play(Scripted(on_receive=receive), scenario([1, 3]))


@pytest.mark.parametrize("given", [3.0, torch.ones(2)], ids=["number", "shape"])
def test_3_a_step_is_a_tensor_as_long_as_the_model(given: Any) -> None:
    for asked in ({"delta": given}, {"model": given}):
        with pytest.raises(TypeError, match=r"server\.step: must be a tensor of shape \[1\], not "):
            play(Scripted(on_receive=lambda server, _, asked=asked: server.step(**asked)), scenario([1, 3]))


def test_3_an_update_is_the_strategys_own() -> None:
    """It may scale what it received in place: nobody else holds it."""

    def receive(server: Server, update: Update) -> None:
        server.step(update.delta.mul_(0.5).add_(0 * update.gradient.mul_(2)))

    def out_of_place(server: Server, update: Update) -> None:
        server.step(0.5 * update.delta)

    for execution in (None, AllInFlight()):
        found = [
            run(
                Experiment(scenario=scenario([1, 3, 2]), strategy=Scripted(on_receive=method)),
                None,
                execution,
            )
            for method in (receive, out_of_place)
        ]
        assert found[0].curve == found[1].curve


def test_a_strategy_without_receive_is_told_what_to_write() -> None:
    """When it is described, before anything runs."""

    class Mine(Strategy):
        title: ClassVar[str] = "Mine"

    with pytest.raises(ValueError, match=r"Mine has no receive: write `def receive\(self, server, update\)`"):
        Mine()


def test_a_strategy_has_fields_and_no_state() -> None:
    with pytest.raises(TypeError, match=r"Mine has an __init__: write fields instead"):

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
                with pytest.raises(ValueError, match=f"probabilities are numbers ≥ 0, not {wrong:g}"):
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
    assert rang == rings == [e.time for e in seen if e.kind is Kind.TICK]
    assert (simulation.status, simulation.server.updates) == ("done", 9)
    assert not any(e.stepped or e.client is not None for e in seen if e.kind is Kind.TICK)


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
    assert [event.client for event in seen if event.kind is Kind.ARRIVAL] == [0, 0, 0]
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
    assert [event.time for event in seen if event.kind is Kind.PRESENCE] == [2, 2]


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


STRATEGIES = [
    FedAvg(local=Scaffold(steps=2)),
    FedFix(period=Fraction(1, 3)),
    FedBuff(buffer=2, concurrency=3),
    CA2FL(buffer=2, concurrency=3),
    ACE(local=Scaffold()),
    ASGD(concurrency=2),
    FAVAS(local=SGD(steps=3), period=Fraction(3, 2)),
    QuAFL(local=SGD(steps=3), period=Fraction(3, 2)),
]


def resumed_everywhere(experiment: Experiment, folder: Path) -> Record:
    """The record of a run that is saved after every event and taken up again by new objects."""
    recorder = Recorder(Simulation(experiment))
    recorder.start()
    saved = folder / "checkpoint.pt"
    while recorder.simulation.status == "running":
        for event in simulate(recorder.simulation):
            recorder.see(event)
            break
        checkpoint.save(recorder, saved)
        recorder = Recorder(Simulation(experiment))
        checkpoint.load(recorder, saved)
    return recorder.finish()


@pytest.mark.parametrize(
    "strategy",
    [pytest.param(one, marks=() if one.name == "fedfix" else pytest.mark.slow) for one in STRATEGIES],
    ids=lambda strategy: strategy.name,
)
def test_15_checkpoint_between_any_two_events(strategy: Any, tmp_path: Path) -> None:
    """Saved after every event and taken up by new objects: the same curve, bit for bit."""
    away = {"name": "dropouts", "share": 0.3, "at": 3, "back": 8}
    where = scenario([1, 2, "5/2", 4], noise=0.5, availability=away, updates=30)
    experiment = Experiment(scenario=where, strategy=strategy, seed=3)
    whole, resumed = run(experiment), resumed_everywhere(experiment, tmp_path)
    assert resumed.curve == whole.curve
    assert resumed.arrivals == whole.arrivals
    assert (resumed.status, resumed.reason) == (whole.status, whole.reason)


def test_15_absences_go_on_where_they_were(tmp_path: Path) -> None:
    """Of a law that makes one absence after the other: none is skipped, and none comes twice."""
    away = {"name": "spells", "mean_on": "1/2", "mean_off": "1/4"}
    where = scenario([1, "1/2", "3/2"], availability=away, updates=15)
    experiment = Experiment(scenario=where, strategy=ASGD())
    whole, resumed = run(experiment), resumed_everywhere(experiment, tmp_path)
    assert whole.curve[-1]["time"] > 4 * 3 / 4  # four absences of each client on average
    assert resumed.arrivals == whole.arrivals


class Count(IntEnum):
    """A number that is more than a number."""

    ONE = 1


REFUSED = [
    *((np.float64(0.5), "numpy.float64"), (np.int64(3), "numpy.int64"), (np.zeros(2), "numpy.ndarray")),
    *((Fraction(1, 3), "fractions.Fraction"), (deque([1]), "collections.deque"), ({1, 2}, "builtins.set")),
    *((defaultdict(int), "collections.defaultdict"), (Counter("a"), "collections.Counter")),
    *((Count.ONE, "test_rules.Count"), (SimpleNamespace(), "types.SimpleNamespace")),
]


def save_with(value: Any, path: Path) -> None:
    """A run whose strategy keeps `value` as `server.memory.kept` is saved."""
    simulation = Simulation(Experiment(scenario=scenario(), strategy=ASGD()))
    simulation.server.memory.kept = value
    checkpoint.save(Recorder(simulation), path)


@pytest.mark.parametrize(("value", "kind"), REFUSED, ids=[kind for _, kind in REFUSED])
def test_15_what_would_not_come_back_is_refused_when_it_is_saved(
    value: Any, kind: str, tmp_path: Path
) -> None:
    """By its key and type, however deep it lies; and no file is left."""
    nested = {"table": [0, (1.5, value)]}
    for kept, where in ((value, "kept"), (nested, "kept['table'][1][1]")):
        with pytest.raises(TypeError) as error:
            save_with(kept, tmp_path / "checkpoint.pt")
        assert str(error.value) == (
            f"server.memory.{where} is a {kind}: a run can save tensors, Python's own numbers, strings and "
            "None, and lists, tuples and dicts of these"
        )
    assert not list(tmp_path.iterdir())


def test_15_a_key_that_would_not_come_back_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"server\.memory\.kept\[np\.int64\(3\)\] is a numpy\.int64"):
        save_with({np.int64(3): 1}, tmp_path / "checkpoint.pt")


@pytest.mark.parametrize("rubbish", [b"", b"no checkpoint", b"PK\x03\x04"])
def test_15_a_damaged_checkpoint_is_named(rubbish: bytes, tmp_path: Path) -> None:
    saved = tmp_path / "checkpoint.pt"
    saved.write_bytes(rubbish)
    recorder = Recorder(Simulation(Experiment(scenario=scenario(), strategy=ASGD())))
    with pytest.raises(ValueError, match=rf"^{saved} is damaged or of an earlier version of asyncfl$"):
        checkpoint.load(recorder, saved)


def test_15_no_damage_to_a_checkpoint_changes_a_result(tmp_path: Path) -> None:
    """A flipped bit, a page of zeros, a lost end: refused before anything is used, or the same result."""
    experiment = Experiment(scenario=scenario(noise=0.5, updates=12), strategy=ACE())
    recorder = Recorder(Simulation(experiment))
    recorder.start()
    for _, event in zip(range(6), simulate(recorder.simulation), strict=False):
        recorder.see(event)
    saved = tmp_path / "checkpoint.pt"
    checkpoint.save(recorder, saved)
    whole, truth = saved.read_bytes(), run(experiment)
    bits = range(0, 8 * len(whole), 101)
    damaged = [
        whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :] for bit in bits
    ]
    damaged += [whole[:at] + bytes(512) + whole[at + 512 :] for at in range(0, len(whole), 512)]
    damaged += [whole[:at] for at in range(0, len(whole), 512)]
    for content in damaged:
        if content == whole:  # a page that is zero anyway
            continue
        saved.write_bytes(content)
        recorder = Recorder(Simulation(experiment))
        try:
            checkpoint.load(recorder, saved)
        except ValueError:
            continue
        for event in simulate(recorder.simulation):
            recorder.see(event)
        record = recorder.finish()
        assert (record.curve, record.arrivals) == (truth.curve, truth.arrivals)


def test_15_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    """A clear sentence, not a silently wrong state."""
    saved = tmp_path / "checkpoint.pt"
    checkpoint.save(Recorder(Simulation(Experiment(scenario=scenario(), strategy=ASGD()))), saved)
    other = Recorder(Simulation(Experiment(scenario=scenario(), strategy=ASGD(), seed=1)))
    with pytest.raises(ValueError, match="checkpoint of another run"):
        checkpoint.load(other, saved)


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


TABLES = [ACE(), ACED(), AFACS(start="first_pass"), ACE(form="direct"), ACED(stamp="model", max_age=2)]
SENDERS: list[dict[str, Any]] = [
    {"arrangement": IterationDelay(mean=3)},
    {"arrangement": FewWorkers(workers=2)},
    {"concurrency": 2},
]


@pytest.mark.parametrize("how", SENDERS, ids=["iteration delay", "rounds", "concurrency"])
@pytest.mark.parametrize("strategy", TABLES, ids=lambda strategy: strategy.label())
def test_16_first_pass(strategy: Any, how: dict[str, Any]) -> None:
    """The first n updates are one of each client, at version 0, by their lengths; then one step."""
    where = scenario([3, 1, 4, 2, 5, 5], noise=0.5, updates=40)
    where = where.model_copy(update={"arrangement": how.get("arrangement")})
    strategy = strategy.model_copy(update={"concurrency": how.get("concurrency")})
    simulation = Simulation(Experiment(scenario=where, strategy=strategy))
    first, deltas, after = [], {}, None
    for event in simulate(simulation):
        if len(first) < 6:
            assert simulation.server.in_flight >= 5 - len(first)
            assert event.stepped == (len(first) == 5)
            first.append((event.time, event.client, event.staleness))
            assert simulation.arrived is not None
            deltas[event.client] = simulation.arrived.delta
            after = simulation.server.model
    assert first == [(1, 1, 0), (2, 3, 0), (3, 0, 0), (4, 2, 0), (5, 4, 0), (5, 5, 0)]
    assert simulation.server.updates == 40
    # K = 1 and η_g = 1: the mean of all clients' updates, of w^0 = 0
    mean = torch.stack([deltas[client] for client in range(6)]).mean(0)
    torch.testing.assert_close(after, mean, rtol=0, atol=1e-12)


def test_16_first_pass_waits_for_absent_clients(tmp_path: Path) -> None:
    """Two clients come at 10: they begin then; saved and resumed after each event, it is the same run."""
    away = {"name": "dropouts", "share": 0.5, "at": 0, "back": 10}
    where = scenario([1, 2, 3, 4], noise=0.5, availability=away, updates=20)
    where = where.model_copy(update={"arrangement": IterationDelay()})
    experiment = Experiment(scenario=where, strategy=ACE())
    late = leaving(where)
    simulation = Simulation(experiment)
    seen = [event for event in simulate(simulation) if event.kind is Kind.ARRIVAL]
    assert [event.staleness for event in seen[:4]] == [0] * 4
    assert {event.client for event in seen[:2]} == {0, 1, 2, 3} - set(late)
    assert [(event.client, event.time) for event in seen[2:4]] == [(i, 11 + i) for i in late]
    assert all(event.began == 10 for event in seen[2:4])
    assert [event.version for event in seen[:6]] == [0, 0, 0, 1, 2, 3]
    assert resumed_everywhere(experiment, tmp_path).curve == run(experiment).curve


def test_16_when_all_heard_sends_as_usual_and_waits_for_clients_not_for_arrivals() -> None:
    """Drawn one by one, clients come twice before the last is heard: no step until then, or after that."""
    for strategy, after in (
        *((ACE(start="when_all_heard"), 1), (ACED(start="when_all_heard"), 1)),
        *((MIFA(), 0), (MIFA(start="next_round"), 1)),
    ):
        where = scenario([1] * 8, updates=60).model_copy(update={"arrangement": IterationDelay()})
        simulation, seen = play(strategy, where)
        first = next(number for number, event in enumerate(seen) if event.stepped)
        filled = first - after  # the arrival that fills the table
        assert len({event.client for event in seen[: filled + 1]}) == 8
        assert len({event.client for event in seen[:filled]}) == 7
        assert filled + 1 > 8  # in this draw; with n arrivals it would be 8
        assert simulation.server.version == 60 - first


def test_16_mifa_from_zeros_steps_after_its_first_round() -> None:
    """Of four clients two are there: the step is their mean update, halved by two rows of zeros."""
    away = {"name": "dropouts", "share": 0.5, "at": 0, "back": 50}
    centres = [[4.0]] * 4
    where = scenario([1] * 4, centres=centres, availability=away, updates=2)
    zeros, _ = play(MIFA(start="zeros", local_lr=0.5), where)
    assert (zeros.server.version, zeros.server.model.item()) == (1, 1.0)  # ½ · ½ · 4
    waits, _ = play(MIFA(local_lr=0.5), where)
    assert waits.server.version == 0


def leaving(where: Scenario) -> list[int]:
    """The clients that are ever absent."""
    law, n = where.timing.availability, where.problem.clients
    return [client for client in range(n) if list(law.absences(client, n, seed=0))]


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
