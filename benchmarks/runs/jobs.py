"""A suite's tasks as jobs of a pool: runs, possibly side by side, and centralised baselines.

Runs side by side share calls, and nothing else: each is saved, timed and recorded separately, and fails
alone. Apart from the writing of records, the times of all runs add up to that of the process.
"""

import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, Self
from weakref import WeakValueDictionary

from benchmarks import device
from benchmarks.errors import no_room, summarised
from benchmarks.pool.job import Capacity, PoolJob, Worker
from benchmarks.runs.attempt import Attempt
from benchmarks.runs.messages import Advanced, Finished, NoRoom
from benchmarks.runs.recording import Recording
from benchmarks.suite.suite import AnyTask, PlannedRun, PooledTask, Task
from benchmarks.tracking.outbox import Outbox
from benchmarks.tracking.provenance import provenance
from fl_core.execution.auto import Auto, largest
from fl_core.execution.execution import Execution
from fl_core.execution.graphed import Graphed
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.problems.problem import Problem, World
from fl_core.recording.interleave import interleave
from fl_core.schema import Tag

EXECUTIONS: dict[str, Callable[[], Execution]] = {
    "one_by_one": OneByOne,
    "all_in_flight": AllInFlight,
    "graphed": Graphed,
    "auto": Auto,
}

AT_ONCE = {"cpu": 8, "cuda": 64}  # runs side by side at most
HELD = 4  # models for each client that a run may hold: a start, an update, its gradient, a row of a table

_provenance_here = cache(provenance)  # once a process


@dataclass(frozen=True, eq=False)
class TaskJob(PoolJob, Generic[AnyTask]):
    """Job of a pool for a task, with the outbox for the record."""

    task: AnyTask
    outbox: Outbox
    provenance: dict[Tag, Any]

    @cached_property
    def key(self) -> str:
        """Key of the task."""
        return self.task.key  # a hash of all its fields, which pools ask for again and again

    def files(self) -> dict[str, bytes]:
        """Return the files of the task's record, or of the task's checkpoint."""
        return self.outbox.files(self.task.suite, self.key)

    def put_files(self, files: Mapping[str, bytes]) -> None:
        """Take over the files of a record, or of a checkpoint, from another machine."""
        self.outbox.put_files(self.task.suite, self.key, files)

    def elsewhere(self, folder: Path) -> Self:
        """Return the job with an outbox in `folder`, and the provenance of the computing machine."""
        # The user's repository, which only the driver knows
        repository = {Tag.REPOSITORY: self.provenance[Tag.REPOSITORY]}
        return replace(self, outbox=Outbox(folder), provenance=_provenance_here() | repository)

    def recording(self) -> Recording:
        """Return the writer of the task's record."""
        return Recording(self.outbox, self.task, self.provenance)

    def recorded(self) -> Finished | None:
        """Return the outcome of an existing record, from a worker killed before reporting, or None."""
        stored = self.outbox.get(self.task.suite, self.task.key)
        return Finished(stored) if stored else None

    def failed(self, reason: str) -> Finished:
        """Record an error of the task with the given reason."""
        return Finished(self.recording().failed(reason))


class BaselineJob(TaskJob[PooledTask]):
    """Baseline job: train a single model on all clients' data together."""

    def compute(self, worker: Worker) -> None:
        """Leave the baseline's metrics in the outbox."""
        finished: Finished | NoRoom | None = self.recorded()
        if finished is None:
            worker.tell(self, Advanced(0.0))
            try:
                finished = self._trained()
            except OSError as error:
                if not no_room(error):
                    raise
                finished = NoRoom(no_room(error))
        worker.tell(self, finished)

    def _trained(self) -> Finished:
        recording, problem, began = self.recording(), self.task.problem, perf_counter()
        try:
            metrics = problem.pooled(self.task.seed, device.chosen())
            fingerprint = problem.world(self.task.seed).fingerprint.items()
            data = {name: digest for name, digest in fingerprint if name != "partition"}
        except Exception as error:  # noqa: BLE001 - one task's error is recorded, and the others go on
            return Finished(recording.failed(summarised(error), traceback.format_exc()))
        recording.watch.here = perf_counter() - began
        return Finished(recording.trained(metrics, {Tag.DATA: data}), metrics.get(problem.metric))


class RunJob(TaskJob[PlannedRun]):
    """Run job: simulate a run and, side by side, companions."""

    saves = True

    @property
    def kind(self) -> Hashable:
        """Kind of the run: runs of equal kind can share calls; None if clients' jobs are computed singly."""
        run = self.task
        if run.execution in {"one_by_one", "graphed"}:
            return None
        return self.task.problem, run.experiment.strategy.local, run.execution

    def compute(self, worker: Worker) -> None:
        """Leave the records of the run and companions in the outbox, or checkpoints if stopped."""
        group = Companions(self, worker)
        for attempt, event in interleave(group.attempts(), inf, group.execution):
            if event is None:
                worker.tell(group.opened.pop(attempt), attempt.finished())
            if worker.stopping:
                for unfinished in group.opened:
                    unfinished.leave()
                return

    def attempt(self, execution: Execution, worker: Worker) -> Attempt:
        """Return an attempt at the run, from the beginning or the last checkpoint."""
        worlds = worker.shared(Worlds)
        return Attempt(
            self.task,
            self.recording(),
            execution,
            world=lambda: worlds.of(self.task.problem, self.task.seed),
            tell=lambda message: worker.tell(self, message),
            cancelled=lambda: worker.is_cancelled(self),
        )


class Companions:
    """Runs side by side in a worker: the first run, and all companions joining later."""

    def __init__(self, first: RunJob, worker: Worker) -> None:
        self.first, self.worker = first, worker
        self.execution = EXECUTIONS[first.task.execution]()
        self.opened: dict[Attempt, RunJob] = {}
        self._most: int | None = None  # that fit into memory, once a world is there

    def attempts(self) -> Iterator[Attempt | None]:
        """Yield each run as soon as capacity is free; yield None without free capacity or companion."""
        job: RunJob | None = self.first
        reported = 1
        while job or self.opened:
            if job is None:
                yield None
            elif finished := job.recorded():
                self.worker.tell(job, finished)
            else:
                attempt = job.attempt(self.execution, self.worker)
                self.opened[attempt] = job
                yield attempt
            capacity = self._capacity()
            if self.opened and capacity != reported:
                reported = capacity
                self.worker.tell(next(iter(self.opened.values())), Capacity(capacity))
            room = 0 < len(self.opened) < capacity
            companion = self.worker.companion() if room else None
            job = companion if isinstance(companion, RunJob) else None

    def _capacity(self) -> int:
        """Return the maximum number of runs side by side: limited by memory, and 1 until stacks prove faster.

        Under `auto` the first of a kind runs alone until it has measured that stacks are faster. Where they
        are not, as with most networks on a CPU, companions would gain nothing, and runs that end one after
        another are distributed more evenly.
        """
        if isinstance(self.execution, OneByOne | Graphed) or (
            isinstance(self.execution, Auto) and not self.execution.pays
        ):
            return 1
        if self._most is None:
            request = next((attempt.request for attempt in self.opened), None)
            if request is None:
                return 1
            models = HELD * request.world.n * request.world.d
            limit = min(AT_ONCE[request.job.start.device.type], int(largest(request.job.start)) // models)
            self._most = max(1, limit)
        return self._most


class Worlds:
    """Worlds of a worker: open runs of equal problem and seed share a world, and the last world is kept."""

    def __init__(self) -> None:
        self._open: WeakValueDictionary[tuple[Problem, int], World] = WeakValueDictionary()
        self._last: World | None = None

    def of(self, problem: Problem, seed: int) -> World:
        """Return the world of a problem under a seed, on the chosen device."""
        world = self._open.get((problem, seed))
        if world is None:
            self._last = None  # a world that is not in use any more is not held beside the new one
            world = self._open[problem, seed] = device.place(problem.world(seed))
        self._last = world
        device.set_precision(world)
        return world


def job_of(task: Task, outbox: Outbox, provenance: dict[Tag, Any]) -> RunJob | BaselineJob:
    """Return the job for computing a task and storing the record in the outbox."""
    if isinstance(task, PlannedRun):
        return RunJob(task, outbox, provenance)
    return BaselineJob(task, outbox, provenance)
