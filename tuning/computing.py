"""The worker process of a campaign: a batch of trials comes, all their seeds are simulated side by side."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from benchmarks import device
from benchmarks.messages import one_line
from fl_core.execution.one_by_one import Need
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import Problem, World
from fl_core.recording.recorder import Recorder
from fl_core.recording.together import advance
from fl_core.scenario import Scenario
from fl_core.strategies.strategy import Strategy
from tuning.objective import Point

AT_ONCE = 32  # simulations side by side


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials of one study: a strategy each, simulated under all seeds."""

    scenario: Scenario
    strategies: tuple[Strategy, ...]
    seeds: tuple[int, ...]
    metric: str
    by_seed: bool = False  # all trials under one seed, then under the next, for who may stop some in between


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A point of a learning curve; the `row`-th, and what was told beyond it before is void."""

    trial: int  # its place in the batch
    seed: int  # the place of the seed
    row: int
    point: Point


@dataclass(frozen=True, slots=True)
class Ended:
    """A simulation has ended: done, diverged, stalled, running (it was stopped) or error."""

    trial: int
    seed: int
    status: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class BatchDone:
    """Nothing more comes of the batch."""


Message = Evaluated | Ended | BatchDone
Tell = Callable[[Message], None]


class Stoppable(Simulation):
    """A simulation that ends early when it is told to."""

    stopped = False

    def events(self) -> Iterator[Event | Need]:
        for event in super().events():
            if self.stopped:
                return
            yield event


class Computer:
    """Computes one batch after the other; keeps the worlds of the last problem."""

    def __init__(self, tell: Tell, stops: Callable[[], Iterator[int]]) -> None:
        self.tell, self.stops = tell, stops  # `stops` yields trials that are not to go on
        self._problem: Problem | None = None
        self._worlds: dict[int, World] = {}

    def compute(self, batch: Batch) -> None:
        """Simulate all; where something fails, each trial by itself, so that the others are not lost."""
        everyone = range(len(batch.strategies))
        try:
            self._together(batch, everyone)
        except Exception:  # noqa: BLE001 - a user's strategy may fail in any way
            for trial in everyone:
                try:
                    self._together(batch, [trial])
                except Exception as error:  # noqa: BLE001
                    self.tell(Ended(trial, 0, "error", one_line(error)))
        self.tell(BatchDone())

    def _together(self, batch: Batch, trials: Sequence[int]) -> None:
        places = [(trial, seed) for seed in range(len(batch.seeds)) for trial in trials]
        stopped: set[int] = set()
        if not batch.by_seed:
            self._simulated(batch, places, stopped)
            return
        for seed in range(len(batch.seeds)):
            left = [place for place in places if place[1] == seed and place[0] not in stopped]
            self._simulated(batch, left, stopped)

    def _simulated(self, batch: Batch, places: Sequence[tuple[int, int]], stopped: set[int]) -> None:
        begun: list[Recorder] = []
        told = [0] * len(places)

        def recorders() -> Iterator[Recorder]:
            for trial, seed in places:
                recorder = self._recorder(batch, trial, seed)
                recorder.start()
                begun.append(recorder)
                yield recorder

        for at, recorder in advance(recorders(), AT_ONCE):
            trial, seed = places[at]
            status = recorder.simulation.status
            if status != "running":
                recorder.finish()
            for row in range(told[at], len(recorder.record.curve)):
                found = recorder.record.curve[row]
                point = Point(
                    int(found["iteration"]), int(found["updates"]), found["time"], found[batch.metric]
                )
                self.tell(Evaluated(trial, seed, row, point))
            told[at] = len(recorder.record.curve)
            if status != "running":
                self.tell(Ended(trial, seed, status))
            stopped.update(self.stops())
            for place, one in zip(places, begun, strict=False):
                if place[0] in stopped and isinstance(one.simulation, Stoppable):
                    one.simulation.stopped = True

    def _recorder(self, batch: Batch, trial: int, seed: int) -> Recorder:
        experiment = Experiment(
            scenario=batch.scenario, strategy=batch.strategies[trial], seed=batch.seeds[seed]
        )
        return Recorder(Stoppable(experiment, self._world(batch.scenario.problem, batch.seeds[seed])))

    def _world(self, problem: Problem, seed: int) -> World:
        if self._problem != problem:
            self._problem, self._worlds = problem, {}
        if seed not in self._worlds:
            self._worlds[seed] = device.place(problem.world(seed))
        return self._worlds[seed]


def serve(pipe: Connection) -> None:
    """The process's main function: compute what comes, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches everyone, and the driver decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_die_with_the_driver, daemon=True).start()
    torch.set_num_threads(1)

    def tell(message: Message) -> None:
        try:
            pipe.send(message)
        except OSError:
            os._exit(1)  # the driver is gone

    def stops() -> Iterator[int]:
        while pipe.poll():
            yield pipe.recv()

    computer = Computer(tell, stops)
    with suppress(EOFError):
        while True:
            message = pipe.recv()
            if isinstance(message, Batch):  # else a wish to stop a trial that had ended by itself
                computer.compute(message)


def _die_with_the_driver() -> None:
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)
