"""One run as `asyncfl run` computes it, in a process of its own: its parts, and how much it computes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

import torch

from benchmarks import device
from benchmarks.pool.fork_server import TRAINING
from benchmarks.runs.attempt import Attempt
from benchmarks.runs.jobs import EXECUTIONS
from benchmarks.runs.recording import Recording
from benchmarks.runs.session import Session
from benchmarks.runs.tasks import RunTask
from benchmarks.speed.whole.case import Amount, RunCase
from benchmarks.speed.whole.spent import (
    CHECKPOINTS,
    DATA,
    DATABASE,
    EVALUATION,
    LOCAL,
    PAGE,
    SERVER,
    START,
    TRACKING,
    WORLD,
    Spent,
)
from benchmarks.suite.suite import PlannedRun
from benchmarks.tracking.delivery import Delivery
from benchmarks.tracking.outbox import Outbox, Result
from benchmarks.tracking.provenance import provenance
from benchmarks.tracking.store import Store
from fl_core.execution.execution import Execution, Need
from fl_core.problems.problem import World
from fl_core.recording.recorder import Record
from fl_core.recording.together import advance

EVALUATES = ("evaluate", "test", "estimate", "losses")  # methods of a world

Report = Callable[[Store, str], None]  # shows a suite, as after the last of its runs


class OneRun:
    """A suite of a single run."""

    def __init__(self, run: PlannedRun) -> None:
        self.run = run
        self.name, self.description = run.suite, ""

    def runs(self) -> list[PlannedRun]:
        """The run."""
        return [self.run]


class Watched:
    """An execution whose calls are local work."""

    def __init__(self, execution: Execution, spent: Spent) -> None:
        self.execution = execution
        self._fill = spent.timed(LOCAL, execution.fill)

    @property
    def label(self) -> str:
        """That of the execution."""
        return self.execution.label

    def fill(self, needs: Sequence[Need]) -> int:
        """The same, timed."""
        return self._fill(needs)


class Kept(Recording):
    """Keeps what a run came to."""

    record: Record

    def simulated(self, record: Record, about: dict[str, Any]) -> Result:
        """The same, and the record is kept."""
        self.record = record
        return super().simulated(record, about)


def in_parts(case: RunCase, folder: Path, report: Report) -> tuple[dict[str, float], Amount, str]:
    """Seconds of each part, how much was computed, and how; for a process that has done nothing else."""
    spent = Spent(START)
    torch.set_num_threads(1)
    run = case.planned()
    store, task, problem = Store(folder), RunTask(run), run.experiment.scenario.problem
    for module in ("benchmarks.tracking.tracking", *([TRAINING] if hasattr(problem, "load") else [])):
        importlib.import_module(module)  # sooner or later it is
    outbox = Outbox(store.outbox)
    recording = Kept(outbox, task, provenance())
    with spent.on(DATABASE):
        _delivered(store, run)  # nothing yet: it is created
    if hasattr(problem, "load"):
        with spent.on(DATA):
            problem.load()
    with spent.on(WORLD):
        world = _watched(device.place(problem.world(task.seed)), spent)
    vars(recording)["simulated"] = spent.timed(TRACKING, recording.simulated)
    execution = Watched(EXECUTIONS[run.execution](), spent)
    attempt = Attempt(task, recording, execution, world=lambda: world, tell=lambda _: None)
    vars(attempt)["save"] = spent.timed(CHECKPOINTS, attempt.save)
    with spent.on(SERVER):
        for _ in advance([attempt], inf, execution):
            pass
        attempt.finished()
    with spent.on(TRACKING):
        _delivered(store, run)
    with spent.on(PAGE):
        report(store, task.suite)
    return spent.seconds(), _amount(run, recording.record), execution.label


def as_command(case: RunCase, folder: Path, report: Report) -> None:
    """The same as `asyncfl run` does it: a driver, a worker process, the results."""
    from benchmarks.engine import Local
    from benchmarks.runs.progress import display

    store, suite = Store(folder), OneRun(case.planned())
    session = Session(suite, store, baselines=False)
    computes = Local(workers=1)
    computes.warm_up("benchmarks.runs.jobs")
    session.run(computes, lambda tasks: display(tasks, quiet=True))
    report(store, suite.name)


def _delivered(store: Store, run: PlannedRun) -> None:
    """Send what waits in the outbox to MLflow."""
    delivery = Delivery(store, Outbox(store.outbox))
    delivery.announce(run.suite, "", {run.key: (run.scenario, run.strategy, str(run.experiment.seed))})
    delivery.close()


def _watched(world: World, spent: Spent) -> World:
    vars(world).update({name: spent.timed(EVALUATION, getattr(world, name)) for name in EVALUATES})
    return world


def _amount(run: PlannedRun, record: Record) -> Amount:
    local = run.experiment.strategy.local
    assert isinstance(local.steps, int)  # the same for all clients, as in all cases
    return Amount(
        updates=len(record.arrivals["time"]),
        steps=local.steps,
        batch=local.batch,
        tests=len({row["iteration"] for row in record.curve}),
        trainings=len({row["iteration"] for row in record.curve if "fp/loss" in row}),
    )
