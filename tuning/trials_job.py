"""A batch of trials as a job of a pool: all their seeds are simulated side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Self

from benchmarks import device
from benchmarks.errors import summarised
from benchmarks.pool.job import Final, Message, PoolJob, Worker
from fl_core.execution.auto import Auto
from fl_core.execution.execution import ComputeRequest
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Event, Simulation
from fl_core.metrics import TRAINING, named
from fl_core.problems.problem import Problem, World
from fl_core.recording.interleave import RunSlot, interleave
from fl_core.recording.recorder import Recorder
from fl_core.scenario import Scenario
from fl_core.schema import ITERATION, TIME, UPDATES, Name, Status
from fl_core.strategies.strategy import Strategy
from tuning.objective import Curve, CurvePoint, Measured, Objective

AT_ONCE = 32  # simulations side by side


@dataclass(frozen=True, slots=True)
class Evaluated(Message):
    """The `row`-th point of a learning curve; points sent earlier from there on are void."""

    trial: int  # its number
    seed: int  # the place of the seed
    row: int
    point: CurvePoint


@dataclass(frozen=True, slots=True)
class SeedEnded(Message):
    """The simulation of a seed has ended, or was stopped (`RUNNING`)."""

    trial: int
    seed: int
    status: Status
    error: str = ""


@dataclass(frozen=True, slots=True)
class TrialsEnded(Final):
    """All seeds of all trials have ended."""


@dataclass(frozen=True, slots=True)
class StopTrial:
    """A note to the job: this trial must stop."""

    trial: int


@dataclass(frozen=True, slots=True)
class TrialsJob(PoolJob):
    """Trials of one study: a strategy each, simulated under all seeds."""

    study: str
    scenario: Scenario
    strategies: dict[int, Strategy]  # by the number of the trial
    seeds: tuple[int, ...]
    metric: str
    by_seed: bool = False  # all trials under one seed, then under the next: a pruner may stop some in between

    @property
    def key(self) -> str:
        """The study and its trials."""
        return f"{self.study} {' '.join(map(str, self.strategies))}"

    def retries(self) -> Sequence[Self]:
        """Each trial by itself."""
        return [replace(self, strategies={trial: strategy}) for trial, strategy in self.strategies.items()]

    def compute(self, worker: Worker) -> None:
        """Simulate all, and report every evaluation; an error ends its trial, and the others go on."""
        seeds = range(len(self.seeds))
        stopped: set[int] = set()
        for part in [[seed] for seed in seeds] if self.by_seed else [seeds]:
            places = [(trial, seed) for seed in part for trial in self.strategies if trial not in stopped]
            self._simulate(places, stopped, worker)
        worker.tell(self, TrialsEnded())

    def _simulate(self, places: Sequence[tuple[int, int]], stopped: set[int], worker: Worker) -> None:
        worlds = worker.shared(TrialWorlds)
        slots = (SeedOfTrial(self, trial, seed, worlds, stopped) for trial, seed in places)
        for slot, event in interleave(slots, AT_ONCE, Auto()):
            points = slot.new_points()
            for row, point in points:
                worker.tell(self, Evaluated(slot.trial, slot.seed, row, point))
            if event is None:
                worker.tell(self, slot.ended())
            if event is None or points:
                while (note := worker.note(self)) is not None:
                    stopped.add(note.trial)


class SeedOfTrial(RunSlot):
    """A trial under one seed; it goes on until its trial is stopped."""

    def __init__(self, job: TrialsJob, trial: int, seed: int, worlds: TrialWorlds, stopped: set[int]) -> None:
        super().__init__()
        self.job, self.trial, self.seed = job, trial, seed
        self.worlds, self.stopped = worlds, stopped
        self.recorder: Recorder | None = None  # once it has begun
        self._reported = 0  # rows of the curve

    def events(self) -> Iterator[Event | ComputeRequest]:
        """Each event once the recorder has seen it."""
        scenario, seed = self.job.scenario, self.job.seeds[self.seed]
        experiment = Experiment(scenario=scenario, strategy=self.job.strategies[self.trial], seed=seed)
        recorder = self.recorder = Recorder(
            Simulation(experiment, self.worlds.of(scenario.problem, seed)),
            evaluate="clients" if self.job.metric in TRAINING else "test",
        )
        recorder.start()
        for event in recorder.simulation.events():
            if self.trial in self.stopped:
                return
            if not isinstance(event, ComputeRequest):
                recorder.see(event)
            yield event
        recorder.end()

    def new_points(self) -> list[tuple[int, CurvePoint]]:
        """What was evaluated since the last call: rows of the curve, and where they stand in it."""
        curve = self.recorder.record.curve if self.recorder is not None else []
        first, self._reported = self._reported, len(curve)
        return [(row, _point(values, self.job.metric)) for row, values in enumerate(curve[first:], first)]

    def ended(self) -> SeedEnded:
        """How it ended; an error stops the trial's other seeds."""
        if self.error is not None:
            self.stopped.add(self.trial)
            return SeedEnded(self.trial, self.seed, Status.ERROR, summarised(self.error))
        assert self.recorder is not None
        return SeedEnded(self.trial, self.seed, self.recorder.simulation.status)


def _point(row: Mapping[str, float], metric: str) -> CurvePoint:
    iteration, updates, uploads = (int(row[name]) for name in (ITERATION, UPDATES, Name.UPLOADS))
    worst = row.get(named(metric).worst_client.name)
    return CurvePoint(iteration, updates, row[TIME], row.get(metric, nan), uploads, worst)


class TrialWorlds:
    """The worlds of one worker: those of the last problem, one for each seed."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._worlds: dict[int, World] = {}

    def of(self, problem: Problem, seed: int) -> World:
        """The problem's world under a seed, on the chosen device."""
        if self._problem != problem:
            self._problem, self._worlds = problem, {}
        if seed not in self._worlds:
            self._worlds[seed] = device.place(problem.world(seed))
        device.set_precision(self._worlds[seed])
        return self._worlds[seed]


def measured(scenario: Scenario, strategy: Strategy, seed: int, objective: Objective) -> Measured:
    """Simulate a strategy under one seed, here and alone; return what a leaderboard reads off it."""
    metric = objective.metric.name
    slot = SeedOfTrial(TrialsJob("", scenario, {0: strategy}, (seed,), metric), 0, 0, TrialWorlds(), set())
    for _ in interleave([slot]):
        pass
    if slot.error is not None:
        raise slot.error
    points = [point for _, point in slot.new_points()]
    return objective.measured(Curve(points, slot.ended().status))
