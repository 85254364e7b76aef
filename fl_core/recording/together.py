"""Many simulations side by side: runs of one problem share stacked calls; a campaign becomes few large ones.

Each simulation is a generator that stops where it needs a result. When all open ones have stopped, their
needs are computed together, and each goes on. Their random streams are named, so they do not affect each
other. An error ends only its own simulation. Real time is charged to each: that of its own events, and a
share of every shared call, by the number of its jobs that were computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from time import perf_counter
from typing import TypeVar
from weakref import WeakValueDictionary

from fl_core.execution.execution import Execution, Need
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import Problem, World
from fl_core.recording.recorder import Record, Recorder
from fl_core.server.jobs import Job


class LaneClock:
    """Real time of a process, cut into laps without gaps; each is charged to one lane or shared."""

    def __init__(self) -> None:
        self._last = perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap ended."""
        last, self._last = self._last, perf_counter()
        return self._last - last


class Lane:
    """One of the simulations that run side by side; a subclass handles its events."""

    def __init__(self) -> None:
        self.place = 0  # how many lanes came before it
        self.seconds = 0.0  # real time charged to it
        self.beside = 1  # the most lanes open at once with it, itself included
        self.need: Need | None = None  # what it waits for; None before its start and after its end
        self.error: Exception | None = None  # the error that ended it, if any
        self.clock = LaneClock()  # shared by all lanes that run together
        self._looked_at: list[Job] = []
        self._events = self.events()

    def events(self) -> Iterator[Event | Need]:
        """All of it: each event after it happened, and each need that it waits for."""
        raise NotImplementedError

    def charge(self) -> None:
        """Charge the time since the last lap to this lane."""
        self.seconds += self.clock.lap()

    def until_need(self) -> Iterator[Event]:
        """Its events up to its next need, or its end."""
        self.need = None
        try:
            for event in self._events:
                if isinstance(event, Need):
                    self.need = self._watched(event)
                    break
                yield event
        except Exception as error:  # noqa: BLE001 - ends this lane only
            self.error = error
        self.charge()

    @property
    def computed(self) -> int:
        """How many of its jobs were computed when its need was filled."""
        return sum(job.delta is not None for job in self._looked_at)

    def _watched(self, need: Need) -> Need:
        """The need, with a note of the jobs that the execution looks at, to count those that it computes."""
        jobs, self._looked_at = need.jobs, [need.job]

        def looked_at() -> Iterator[Job]:
            self._looked_at = []
            for job in jobs():
                self._looked_at.append(job)
                yield job

        need.jobs = looked_at
        return need


class Simulated(Lane):
    """A simulation without a recorder."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        super().__init__()

    def events(self) -> Iterator[Event | Need]:
        """The events of the simulation."""
        return self.simulation.events()


class Recorded(Lane):
    """A started or restored recorder and its simulation; the recorder is finished at the end."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        super().__init__()

    def events(self) -> Iterator[Event | Need]:
        """Each event once the recorder has seen it."""
        for event in self.recorder.simulation.events():
            if not isinstance(event, Need):
                self.recorder.see(event)
            yield event
        self.recorder.finish()


L = TypeVar("L", bound=Lane)


def advance(
    lanes: Iterable[L | None], at_once: float = 16, execution: Execution | None = None
) -> Iterator[tuple[L, Event | None]]:
    """Advance lanes side by side; yields each event with its lane, and None at the end of a lane.

    At most `at_once` are open at a time; a lane is taken from its iterable only when there is room. An
    iterable that has none now but may have one later yields None; it is tried again in the next round.
    """
    execution = execution or AllInFlight()
    waiting, opened, clock, places = iter(lanes), list[L](), LaneClock(), count()
    while True:
        while len(opened) < at_once and (lane := next(waiting, None)):
            lane.clock, lane.place = clock, next(places)
            opened.append(lane)
        if not opened:
            return
        for lane in opened:
            lane.beside = max(lane.beside, len(opened))
        clock.lap()  # the time to find a lane is charged to none
        for lane in list(opened):
            for event in lane.until_need():
                yield lane, event
            if lane.need is None:
                opened.remove(lane)
                yield lane, None
                clock.lap()
        for lane in _fill(opened, execution, clock):
            opened.remove(lane)
            yield lane, None
        del lane  # so that an ended lane is freed before the next is made


def _fill(lanes: Sequence[L], execution: Execution, clock: LaneClock) -> list[L]:
    """Compute what the lanes need, in one call; returns the lanes that failed."""
    needs = [lane.need for lane in lanes if lane.need is not None]
    if not needs:
        return []
    try:
        execution.fill(needs)
    except Exception as error:  # noqa: BLE001
        if len(lanes) == 1:
            lanes[0].error = error
            lanes[0].charge()
            return list(lanes)
        # Computing each by itself shows which one failed.
        left = [lane for lane in lanes if lane.need is not None and lane.need.job.delta is None]
        return [failed for lane in left for failed in _fill([lane], execution, clock)]
    seconds, jobs = clock.lap(), [lane.computed for lane in lanes]
    for lane, computed in zip(lanes, jobs, strict=True):
        lane.seconds += seconds * computed / sum(jobs)
    return []


def run_together(
    experiments: Iterable[Experiment], at_once: int = 16, execution: Execution | None = None
) -> Iterator[tuple[int, Record]]:
    """Run experiments to their ends; yields the place and the record of each as soon as it has ended.

    The events of each are exactly those of `recorder.run`, its models equal up to the last bits of a sum. At
    most `at_once` are open at a time; an experiment is taken from its iterable only when there is room.
    An error in one is raised.
    """
    for lane, event in advance(_begun(experiments), at_once, execution):
        if lane.error is not None:
            raise lane.error
        if event is None:
            yield lane.place, lane.recorder.record


def simulate_together(
    simulations: Iterable[Simulation], at_once: int = 16, execution: Execution | None = None
) -> Iterator[tuple[int, Event | None]]:
    """The events of many simulations, each with the simulation's place; None at its end.

    An error in one is raised.
    """
    for lane, event in advance(map(Simulated, simulations), at_once, execution):
        if lane.error is not None:
            raise lane.error
        yield lane.place, event


def _begun(experiments: Iterable[Experiment]) -> Iterator[Recorded]:
    """Lanes of experiments; open runs of one problem and seed share a world."""
    worlds: WeakValueDictionary[tuple[Problem, int], World] = WeakValueDictionary()
    for experiment in experiments:
        key = experiment.scenario.problem, experiment.seed
        world = worlds.get(key) or key[0].world(key[1])
        worlds[key] = world
        recorder = Recorder(Simulation(experiment, world))
        recorder.start()
        yield Recorded(recorder)
