"""Many simulations side by side: runs of one problem share stacked calls; a campaign becomes few large ones.

Each simulation is a generator that stops where it needs a result. When all that are open have stopped, what
they need is computed together, and each goes on. Their randomness is named, so none notices the others. An
error ends the one that it is about, and real time is charged to each: that of its own events, and a part of
every shared call, by the number of its jobs that were computed.
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
    """Real time of a process, cut into laps without a gap; each is charged to a lane, or shared out."""

    def __init__(self) -> None:
        self._last = perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap ended."""
        last, self._last = self._last, perf_counter()
        return self._last - last


class Lane:
    """One of the simulations that go on side by side; what happens at its events is its own business."""

    def __init__(self) -> None:
        self.place = 0  # how many lanes came before it
        self.seconds = 0.0  # real time that is charged to it
        self.beside = 1  # the most lanes that were open with it, itself among them
        self.need: Need | None = None  # what it waits for; None before its beginning and after its end
        self.error: Exception | None = None  # what ended it, where that was an error
        self.clock = LaneClock()  # shared by all that go on together
        self._looked_at: list[Job] = []
        self._events = self.events()

    def events(self) -> Iterator[Event | Need]:
        """Its whole life: an event after it happened, or a need before it can go on."""
        raise NotImplementedError

    def charge(self) -> None:
        """The time since the last lap was spent on this lane."""
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
        except Exception as error:  # noqa: BLE001 - it ends this lane, and the others go on
            self.error = error
        self.charge()

    @property
    def computed(self) -> int:
        """How many of its jobs were computed when its need was filled."""
        return sum(job.delta is not None for job in self._looked_at)

    def _watched(self, need: Need) -> Need:
        """The need; which jobs the execution looks at is noted, to count those that it has computed."""
        jobs, self._looked_at = need.jobs, [need.job]

        def looked_at() -> Iterator[Job]:
            self._looked_at = []
            for job in jobs():
                self._looked_at.append(job)
                yield job

        need.jobs = looked_at
        return need


class Simulated(Lane):
    """A simulation, and nothing else."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        super().__init__()

    def events(self) -> Iterator[Event | Need]:
        """Those of the simulation."""
        return self.simulation.events()


class Recorded(Lane):
    """A recorder that was started, or loaded from a checkpoint, and its simulation; finished at the end."""

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
    iterable that has none now, and may have one later, yields None: it is asked again in the next round.
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
        clock.lap()  # what it takes to find a lane is charged to none
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
        del lane  # or one that has ended would be held while the next is made


def _fill(lanes: Sequence[L], execution: Execution, clock: LaneClock) -> list[L]:
    """Compute what the lanes need, in one call; those that end in an error."""
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
        # Whose error it is shows when each is computed by itself.
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

    The events of each are those of `measure.run` exactly, its models equal up to the last bits of a sum. At
    most `at_once` are open at a time; an experiment is taken from its iterable only when there is room.
    An error of one is raised.
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

    An error of one is raised.
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
