"""A server slower than its strategy's timer, by a clock that only the test moves."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from fractions import Fraction
from heapq import heappop, heappush
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from fl_core.experiment import Experiment
from fl_core.live import real_time
from fl_core.live.client import train
from fl_core.live.replay import InvalidLogError
from fl_core.live.run import LiveRun, SavedRun
from fl_core.live.transport import JobMessage, LostClients, UpdateMessage
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Event
from fl_core.recorded_names import TIME, Name, Status
from fl_core.strategies.favas import FAVAS
from fl_core.strategies.fedfix import FedFix
from fl_core.strategies.mindflayer import MindFlayer
from fl_core.strategies.strategy import Strategy
from fl_core.testing.check_experiments import changed
from tests.fl_core.live.in_threads import held_to
from tests.fl_core.worlds import scenario

TIMES = (2, 3, "7/2", 5)  # of the clients' jobs
STEP_SECONDS = 0.4  # that the server takes at each event
UNIT = 1.0  # seconds


class Clock:
    """Seconds since the start, moved by waiting and by the server's work."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Instant:
    """A transport to clients that answer exactly at the ends of their jobs."""

    def __init__(self, experiment: Experiment, clock: Clock) -> None:
        self.world = experiment.scenario.problem.world(experiment.seed)
        self.local, self.clock = experiment.strategy.local, clock
        self.answers: list[tuple[float, int, UpdateMessage]] = []  # a heap, the earliest first
        self.waiting: dict[tuple[int, int], tuple[JobMessage, float]] = {}  # to be collected, and since when
        self.polls = 0

    def send(self, message: JobMessage) -> None:
        if message.waits:
            self.waiting[message.client, message.index] = message, self.clock()
        else:
            self.answer(message, self.clock() + message.seconds, message.steps)

    def answer(self, message: JobMessage, seconds: float, steps: int) -> None:
        answer = train(message, self.world, self.local, steps)
        heappush(self.answers, (seconds, message.client, answer))

    def dismiss(self, client: int, index: int) -> None: ...

    def collect(self, client: int, index: int) -> None:
        message, came = self.waiting.pop((client, index))
        self.answer(message, self.clock(), message.finished(self.clock() - came))

    def stop(self) -> None: ...

    def poll(self, timeout: float) -> UpdateMessage | LostClients | None:
        assert timeout >= 0
        self.polls += 1
        until = self.clock() + timeout
        if self.answers and self.answers[0][0] <= until:
            comes, _, answer = heappop(self.answers)
            self.clock.seconds = max(self.clock.seconds, comes)
            return answer
        self.clock.seconds = max(until, self.clock.seconds + 1e-6)
        return None


class Windows(FedFix):
    """FedFix with a second alarm, of a period of its own, and with one that an update puts off."""

    def times(self) -> tuple[Any, ...]:
        return (*super().times(), Fraction("1/8"))

    def begin(self, server: Any) -> None:
        super().begin(server)
        server.wake(server.now + server.ticks(Fraction("3/8")), 1)
        server.wake(server.now + server.ticks(Fraction("1/4")), -7)

    def tick(self, server: Any) -> None:
        if server.ringing == -1:
            super().tick(server)
        else:
            server.wake(server.now + server.ticks(Fraction("1/8")), server.ringing)

    def receive(self, server: Any, update: Any) -> None:
        super().receive(server, update)
        server.wake(None if update.client % 2 else server.now + server.ticks(Fraction("1/8")), -7)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for name in ("monotonic", "time"):
        monkeypatch.setattr(real_time, name, clock)
    return clock


def experiment(strategy: Strategy, availability: Any = "always", **budget: Any) -> Experiment:
    where = scenario(TIMES, noise=0.3, availability=availability, evaluations=4, **budget)
    return Experiment(scenario=where, strategy=strategy, seed=1)


def events(run: LiveRun, clock: Clock, step_seconds: float = STEP_SECONDS) -> Iterator[Event]:
    """The events of a run whose server works for some seconds at each."""
    transport = Instant(run.simulation.experiment, clock)
    for event in run.events(transport):
        yield event
        clock.seconds += step_seconds


def lateness(run: LiveRun, clock: Clock, kind: EventKind) -> list[float]:
    """Seconds from the time of each event of a kind to its turn at the server."""
    return [clock() - UNIT * run.simulation.time for event in events(run, clock) if event.kind is kind]


def prepared(experiment: Experiment) -> LiveRun:
    return LiveRun(experiment, experiment.scenario.problem.world(experiment.seed), UNIT)


def frequent(strategy: type[Strategy] = FedFix) -> Strategy:
    """A strategy with alarms that are more frequent than the server's steps end."""
    return changed(strategy(), period="1/8")


def test_a_server_slower_than_its_timer_takes_updates(clock: Clock) -> None:
    """Each is handled soon after it came, though alarms are overdue all the time."""
    run = prepared(experiment(frequent(), updates=20, time=10_000))
    late = lateness(run, clock, EventKind.ARRIVAL)
    record = run.finish()
    assert (record.status, len(late)) == (Status.DONE, 20)
    assert max(late) < real_time.MAX_LATENESS_SECONDS + 5 * STEP_SECONDS
    assert record.curve[-1][TIME] < 20 * max(2, 3, 3.5, 5)


@pytest.mark.parametrize("strategy", [FedFix, Windows, FAVAS, MindFlayer])
@pytest.mark.parametrize("availability", ["always", {"name": "spells", "mean_on": 5, "mean_off": 2}])
def test_a_replay_of_late_alarms_is_exact(strategy: type[Strategy], availability: Any, clock: Clock) -> None:
    of_jobs = strategy is MindFlayer  # its alarms are the ends of the jobs' times
    alarmed = changed(MindFlayer(), allotted=1) if of_jobs else frequent(strategy)
    run = prepared(experiment(alarmed, availability, time=100))
    list(events(run, clock, step_seconds=1.5))
    run.service.stop()
    assert run.log.slips[Name.SET] and EventKind.ARRIVAL in run.log.events[Name.KIND]
    assert held_to(run).bit_for_bit, held_to(run)


def test_the_clock_of_alarms_never_lags_far_behind(clock: Clock) -> None:
    """A late alarm rings after the messages that came before, and the next one a period later."""
    run = prepared(experiment(frequent(), time=40))
    most = real_time.MAX_LATENESS_SECONDS + len(TIMES) * STEP_SECONDS
    assert max(lateness(run, clock, EventKind.TICK)) <= most
    log = run.log
    rang = dict(zip(log.slips[Name.SET], log.slips[Name.RANG], strict=True))
    rows = zip(log.events[TIME], log.events[Name.KIND], strict=True)
    times = [time for time, kind in rows if kind == EventKind.TICK]
    assert rang.keys().isdisjoint(times)
    for time, following in pairwise(times):
        assert following == rang.get(time + 1 / 8, time + 1 / 8)


def test_an_alarm_rings_though_messages_keep_the_server_busy(clock: Clock) -> None:
    """Even where each step takes longer than an alarm may be late."""
    run = prepared(experiment(frequent(), time=100))
    kinds = [event.kind for event in events(run, clock, step_seconds=1.5)]
    most = max(len(list(group)) for kind, group in groupby(kinds) if kind is EventKind.ARRIVAL)
    assert most <= 2 * len(TIMES) < kinds.count(EventKind.TICK)


def test_a_late_clock_is_named_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    for step_seconds, warnings in ((STEP_SECONDS, 1), (0.01, 0)):
        caplog.clear()
        run = prepared(experiment(frequent(), time=20))
        list(events(run, clock, step_seconds))
        assert [record.levelno for record in caplog.records] == warnings * [logging.WARNING]
        assert bool(run.log.slips[Name.SET]) == bool(warnings)


def test_a_punctual_server_polls_no_more_than_before(clock: Clock) -> None:
    """It polls while it waits for an alarm, and not again when the alarm is due."""
    where = experiment(changed(FedFix(), period=1), time=20)
    run, transport = prepared(where), Instant(where, clock)
    count = len(list(run.events(transport)))
    waits = 20 / real_time.PULSE
    assert transport.polls <= waits + count + 20


def test_late_alarms_are_saved(clock: Clock, tmp_path: Path) -> None:
    run = prepared(where := experiment(frequent(), updates=30))
    for number, _ in enumerate(events(run, clock)):
        if number == 40:
            break
    assert run.log.slips[Name.SET]
    run.save(tmp_path / "checkpoint")
    again = prepared(where)
    again.load(tmp_path / "checkpoint")
    list(events(again, clock))
    assert again.log.slips[Name.SET][: len(run.log.slips[Name.SET])] == run.log.slips[Name.SET]
    saved = SavedRun.of(again)
    assert SavedRun.unpack(saved.pack()).replay().bit_for_bit


@pytest.mark.parametrize("rang", [0.0, -1.0, None])
def test_a_slip_that_is_no_delay_is_refused(rang: float | None, clock: Clock) -> None:
    run = prepared(experiment(frequent(), time=20))
    list(events(run, clock))
    run.log.slips[Name.RANG][1] = rang
    with pytest.raises(InvalidLogError, match=r"^slips, row 2: "):
        held_to(run)
