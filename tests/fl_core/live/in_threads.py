"""Runs in real time whose clients are threads: real messages and clocks, without the start of a process."""

from __future__ import annotations

from threading import Thread
from typing import Any

from fl_core.experiment import Experiment
from fl_core.live.client import serve
from fl_core.live.processes import LocalProcesses
from fl_core.live.replay import ReplayComparison, replay
from fl_core.live.run import LiveRun

UNIT = 0.004  # seconds


class Threads(LocalProcesses):
    """The transport of local processes, at whose other ends are threads."""

    def _start(self, context: Any, pipe: Any) -> Thread:
        thread = Thread(target=serve, args=(pipe,), daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        for sender in self.senders:
            sender.close()


def prepared(experiment: Experiment, **options: Any) -> LiveRun:
    return LiveRun(experiment, experiment.scenario.problem.world(experiment.seed), UNIT, **options)


def lived(experiment: Experiment) -> LiveRun:
    """A run to its end."""
    run, transport = prepared(experiment), Threads(experiment, 2)
    try:
        list(run.events(transport))
    finally:
        transport.stop()
    run.service.stop()
    return run


def held_to(run: LiveRun) -> ReplayComparison:
    """The replay of a run."""
    model = run.simulation.server.model.double().tolist()
    return replay(run.simulation.experiment, run.log.jobs, run.log.events, run.log.slips, model)
