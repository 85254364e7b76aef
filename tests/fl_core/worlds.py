"""Small scenarios and strategies that the tests of the core share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fl_core.arrangements import Arrangement
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Event, Simulation, simulate
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Record, Recorder
from fl_core.scenario import Budget, Scenario
from fl_core.server.jobs import Send, Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy

ONE_OF_EACH_KIND = ("asgd", "ace", "asyncfeded", "fedavg", "fedbuff", "malenia", "quafl")


def quick_for_one_of_each_kind(names: Iterable[str]) -> list[Any]:
    """Strategies to parametrise with; most are slow: the conformance suite says much the same of all."""
    return [pytest.param(name, marks=() if name in ONE_OF_EACH_KIND else pytest.mark.slow) for name in names]


def scenario(
    times: Sequence[Any] = (1, 2),
    *,
    centres: Sequence[Sequence[float]] | None = None,
    noise: float = 0.0,
    availability: Any = "always",
    arrangement: Any = None,
    evaluations: int = 20,
    **budget: Any,
) -> Scenario:
    """Quadratics, one client for each of `times`, the fixed length of its jobs."""
    centres = centres or [[float(i)] for i in range(len(times))]
    return Scenario.model_validate(
        {
            "problem": {"name": "quadratic", "centres": centres, "noise": noise},
            "timing": {"durations": {"name": "fixed", "times": list(times)}, "availability": availability},
            "arrangement": arrangement,
            "budget": Budget(**(budget or {"updates": 20})),
            "evaluations": evaluations,
        }
    )


def events(simulation: Simulation) -> list[Event]:
    """All events of a simulation."""
    return list(simulate(simulation))


def play(strategy: Strategy, where: Scenario, seed: int = 0) -> tuple[Simulation, list[Event]]:
    """A simulation run to its end, and what happened."""
    simulation = Simulation(Experiment(scenario=where, strategy=strategy, seed=seed))
    return simulation, events(simulation)


def recorded(strategy: Strategy, where: Scenario, seed: int = 0) -> Recorder:
    """A run to its end, evaluated at its marks."""
    recorder = Recorder(Simulation(Experiment(scenario=where, strategy=strategy, seed=seed)))
    recorder.start()
    for event in simulate(recorder.simulation):
        recorder.see(event)
    recorder.finish()
    return recorder


class Everyone(Arrangement):
    """Synchronous rounds of all clients."""

    def next(self, server: Server) -> Iterable[int]:
        return () if server.in_flight else range(server.n)


class Scripted(Strategy):
    """A strategy whose methods are given as functions, for one test."""

    on_begin: Callable[[Server], None] = lambda server: None
    on_receive: Callable[[Server, Update], None] = lambda server, update: server.step(update.delta)
    on_tick: Callable[[Server], None] = lambda server: None
    on_next: Callable[[Server], Iterable[int | Send]] = lambda server: server.due
    exact: tuple[Fraction, ...] = ()

    def times(self) -> tuple[Fraction, ...]:
        return self.exact

    def begin(self, server: Server) -> None:
        self.on_begin(server)

    def receive(self, server: Server, update: Update) -> None:
        self.on_receive(server, update)

    def tick(self, server: Server) -> None:
        self.on_tick(server)

    def next(self, server: Server) -> Iterable[int | Send]:
        return self.on_next(server)


def leaving(where: Scenario) -> list[int]:
    """The clients that are ever absent."""
    law, n = where.timing.availability, where.problem.clients
    return [client for client in range(n) if list(law.absences(client, n, seed=0))]


def resumed_everywhere(experiment: Experiment, folder: Path) -> Record:
    """The record of a run that is saved after every event and taken up again by new objects."""
    recorder = Recorder(Simulation(experiment))
    recorder.start()
    saved = folder / "checkpoint.pt"
    while recorder.simulation.status == "running":
        for event in simulate(recorder.simulation):
            recorder.see(event)
            break
        else:
            break  # checkpoints are saved between two events, not after the last
        checkpoint.save(recorder, saved)
        recorder = Recorder(Simulation(experiment))
        checkpoint.load(recorder, saved)
    return recorder.finish()
