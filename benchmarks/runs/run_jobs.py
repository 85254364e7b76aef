"""A suite's tasks as jobs of a pool: runs, possibly side by side, and centralised baselines; their recording.

`Session` and the driver of tuning submit them; workers call `compute`. Runs side by side share the calls that
compute local work, and nothing else: each is saved, timed and recorded separately, and fails alone. Apart
from the writing of records, the times of all runs add up to that of the process.

Fixed: a run has the same result alone, beside others, resumed or retried. Free: the limits of time and
memory.
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
from benchmarks.mlflow_store import tags_and_metrics
from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.mlflow_store.provenance import provenance
from benchmarks.mlflow_store.run_result import MlflowStatus, RunResult, now, params_of, texts_of
from benchmarks.mlflow_store.tags_and_metrics import tags_of_end, target_metrics, total_metrics
from benchmarks.pool.job import Capacity, Message, PoolJob, Worker
from benchmarks.redaction import redacted
from benchmarks.runs.messages import Advanced, Evaluated, Finished, NoRoom, Notice
from benchmarks.suite.suite import AnyTask, PlannedRun, PooledTask, Task
from fl_core.execution.auto import Auto, largest
from fl_core.execution.cuda_graphs import Graphed
from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import Problem, World
from fl_core.recorded_names import TRACEBACK, MlflowTag, Status, Tag, Total
from fl_core.recording import checkpoint
from fl_core.recording.interleave import RunSlot, interleave
from fl_core.recording.recorder import Record, Recorder

EXECUTIONS: dict[str, Callable[[], Execution]] = {
    "one_by_one": OneByOne,
    "all_in_flight": AllInFlight,
    "graphed": Graphed,
    "auto": Auto,
}

MAX_SIDE_BY_SIDE = {"cpu": 8, "cuda": 64}  # runs in a worker
MODELS_PER_CLIENT = 4  # that a run may hold in memory: a start, an update, its gradient, a row of a table

# Seconds of computation of the run itself, without that of companions:
SAVE_SECONDS = 1.0  # between two checkpoints, longer if …
MAX_SAVE_FRACTION = 0.05  # … of its time would be spent on checkpoints
REPORT_SECONDS = 0.2  # between two messages on its progress

_own_provenance = cache(provenance)  # once a process


class Recording:
    """Recording of a task: real time over all attempts, time of each evaluation, and the end."""

    def __init__(self, outbox: Outbox, task: Task, provenance: dict[Tag, Any]) -> None:
        self.outbox, self.task = outbox, task
        self.tags = {**task.tags(), **provenance}  # read now: the user's code may be edited during the run
        self.began = now()  # of the first attempt; milliseconds since 1970
        self.evaluated: list[int] = []  # of each row; milliseconds since 1970
        self.attempt_seconds = 0.0  # seconds of this attempt
        self._earlier_seconds = 0.0  # seconds of earlier attempts

    @property
    def seconds(self) -> float:
        """Seconds of all attempts."""
        return self._earlier_seconds + self.attempt_seconds

    def stamp(self, rows: int) -> None:
        """Set the evaluation time of all new rows to now, given the curve's current number of rows."""
        self.evaluated += [now()] * (rows - len(self.evaluated))

    def state(self) -> tuple[int, float, list[int]]:
        """Return the state for `restore`, to be kept in a checkpoint: start, seconds, evaluation times."""
        return self.began, self.seconds, self.evaluated

    def restore(self, state: tuple[int, float, list[int]]) -> None:
        """Continue from the state of an earlier attempt."""
        self.began, self._earlier_seconds, self.evaluated = state

    def simulated(
        self,
        record: Record,
        tags: dict[Tag, Any],
        metrics: Mapping[str, float] | None = None,
        more: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> RunResult:
        """Store the result of an ended run, with further metrics and tables if given."""
        task = self.task
        assert isinstance(task, PlannedRun)
        values = {
            **total_metrics(record),
            **target_metrics(record, task.problem),
            **task.measures(record),
            **(metrics or {}),
        }
        return self._put(
            record.status,
            record.reason,
            tags=tags,
            metrics=values,
            tables={**tags_and_metrics.tables(record, task.curve_only), **(more or {})},
        )

    def trained(self, metrics: dict[str, float], tags: dict[Tag, Any]) -> RunResult:
        """Store the result of a trained baseline."""
        return self._put(Status.DONE, tags=tags, metrics=metrics)

    def failed(self, reason: str, trace: str = "") -> RunResult:
        """Store the result of a task ended by an error."""
        return self._put(Status.ERROR, reason, texts={TRACEBACK: redacted(trace)} if trace else {})

    def ended_by(self, error: BaseException) -> Finished | NoRoom:
        """Record an error as the end of the task, with the traceback, unless the disk is full."""
        if reason := no_room(error):
            return NoRoom(reason)
        trace = "".join(traceback.format_exception(error))
        try:
            return Finished(self.failed(summarised(error), trace))
        except OSError as failure:
            if reason := no_room(failure):
                return NoRoom(reason)
            raise

    def _put(
        self,
        status: Status,
        reason: str = "",
        *,
        tags: Mapping[Tag, Any] | None = None,
        metrics: Mapping[str, float] | None = None,
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> RunResult:
        """Write the result, with tags of task, provenance and end, and the files to the outbox."""
        task = self.task
        description = task.description()
        parameters = task.parameters if isinstance(task, PlannedRun) else {}
        all_tags = {**self.tags, **(tags or {}), **tags_of_end(task, status, reason, self.seconds)}
        result = RunResult(
            run_id="",
            experiment_id="",
            state=MlflowStatus.FAILED if status is Status.ERROR else MlflowStatus.FINISHED,
            start_time=self.began,
            end_time=now(),
            artifact_uri="",
            tags=texts_of(all_tags) | {MlflowTag.NAME: task.name},
            params=dict(params_of(parameters or description)),
            metrics={**(metrics or {}), Total.WALL_SECONDS: self.seconds},
            evaluated=self.evaluated if tables else [],
        )
        self.outbox.put(result, description, tables, texts)
        return result


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
        # The user's repository is on the driver's machine alone.
        repository = {Tag.REPOSITORY: self.provenance[Tag.REPOSITORY]}
        return replace(self, outbox=Outbox(folder), provenance=_own_provenance() | repository)

    def recording(self) -> Recording:
        """Return the writer of the task's record."""
        return Recording(self.outbox, self.task, self.provenance)

    def recorded(self) -> Finished | None:
        """Return the outcome of a record left by a worker killed before reporting, or None."""
        stored = self.outbox.get(self.task.suite, self.task.key)
        return Finished(stored) if stored else None

    def failed(self, reason: str) -> Finished:
        """Record an error of the task with the given reason."""
        return Finished(self.recording().failed(reason))


class BaselineJob(TaskJob[PooledTask]):
    """Baseline job: train a single model on all clients' data together."""

    def compute(self, worker: Worker) -> None:
        """Leave the baseline's metrics in the outbox."""
        recording, began = self.recording(), perf_counter()
        finished: Finished | NoRoom | None = self.recorded()
        if finished is None:
            worker.tell(self, Advanced(0.0))
            try:
                metrics = self.task.problem.pooled(self.task.seed, device.chosen())
                fingerprint = self.task.problem.world(self.task.seed).fingerprint.items()
                data = {name: digest for name, digest in fingerprint if name != "partition"}
                recording.attempt_seconds = perf_counter() - began
                result = recording.trained(metrics, {Tag.DATA: data})
                finished = Finished(result, metrics.get(self.task.problem.metric))
            except Exception as error:  # noqa: BLE001 - one task's error is recorded, and the others go on
                finished = recording.ended_by(error)
        worker.tell(self, finished)


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
            if event is None:  # the attempt has ended
                group.opened.remove(attempt)
                worker.tell(attempt.job, attempt.finished())
            if worker.stopping:
                for unfinished in group.opened:
                    unfinished.suspend()
                return


class Attempt(RunSlot):
    """Attempt at a run: from the beginning or a checkpoint, to the record or the next checkpoint.

    `interleave` advances it beside its companions; `RunSlot` counts its seconds (`charge`) and keeps its
    error.
    """

    def __init__(self, job: RunJob, execution: Execution, worker: Worker) -> None:
        super().__init__(self.events())
        self.job, self.task, self.execution, self.worker = job, job.task, execution, worker
        self.recording = job.recording()
        self.saved = job.outbox.checkpoint(self.task.suite, self.task.key)  # path; the file may be missing
        self.recorder: Recorder | None = None  # None before the first event
        self._finished: Finished | NoRoom | None = None

    def events(self) -> Iterator[Event | ComputeRequest]:
        """Yield the simulation's events, each after recording, and store the record at the end."""
        world = self.worker.shared(SharedWorlds).of(self.task.problem, self.task.seed)
        recorder = self.recorder = self._resumed(world) or self._begun(world)
        simulation, curve = recorder.simulation, recorder.record.curve
        self.charge()
        self._tell(Advanced(simulation.share, self._value(recorder)))  # share above 0 if it was resumed
        next_message, next_save = 0.0, SAVE_SECONDS
        reported = self._report(0)
        for event in simulation.events():
            if not isinstance(event, ComputeRequest):
                if recorder.see(event):
                    self.recording.stamp(len(curve))
                    reported = self._report(reported)
                    if self.task.prunable and self.worker.is_cancelled(self.job):
                        self._finished = self._ended(recorder, pruned=True)
                        return
                self.charge()
                if self.seconds > next_message:
                    self._tell(Advanced(simulation.share, self._value(recorder)))
                    next_message = self.seconds + REPORT_SECONDS
                if self.seconds > next_save:
                    earlier_seconds = self.seconds
                    self.save()
                    self.charge()
                    next_save = self.seconds + max(
                        SAVE_SECONDS, (self.seconds - earlier_seconds) / MAX_SAVE_FRACTION
                    )
            yield event
        self._finished = self._ended(recorder)

    def save(self) -> None:
        """Write a checkpoint, unless the run has not begun."""
        if self.recorder is not None:
            self.recording.attempt_seconds = self.seconds
            checkpoint.save(self.recorder, self.saved, self.recording.state())

    def suspend(self) -> None:
        """Save the run for a later session; record an error if saving fails."""
        try:
            self.save()
        except Exception as error:  # noqa: BLE001 - companions are still to be saved
            self.error = error
            self.finished()

    def finished(self) -> Finished | NoRoom:
        """Return the final message; the outbox has the record, or the error's, unless the disk is full."""
        if self._finished is None:
            assert self.error is not None
            self.recording.attempt_seconds = self.seconds
            self._finished = self.recording.ended_by(self.error)
        if isinstance(self._finished, Finished):
            self.saved.unlink(missing_ok=True)
        return self._finished

    def _tell(self, message: Message) -> None:
        self.worker.tell(self.job, message)

    def _report(self, reported: int) -> int:
        """Send all rows of a prunable run's curve from row `reported` on; return the number of rows."""
        assert self.recorder is not None
        curve = self.recorder.record.curve
        if self.task.prunable:
            for row in range(reported, len(curve)):
                self._tell(Evaluated(row, curve[row]))
        return len(curve)

    def _ended(self, recorder: Recorder, *, pruned: bool = False) -> Finished:
        """Store the record of an ended or pruned simulation, and return the final message."""
        record, world = recorder.finish(clients=not self.task.curve_only), recorder.simulation.world
        if pruned:
            record.status, record.reason = Status.PRUNED, "stopped by the pruner"
        self.recording.stamp(len(record.curve))
        self.charge()
        self.recording.attempt_seconds = self.seconds
        companions = f", {self.beside} runs side by side" if self.beside > 1 else ""
        tags = {
            Tag.EXECUTION: self.execution.label + companions,
            Tag.DEVICE: device.label(),
            Tag.MEMORY_FORMAT: world.memory_format,
            Tag.DATA: world.fingerprint,
        }
        return Finished(self.recording.simulated(record, tags), self._value(recorder))

    def _value(self, recorder: Recorder) -> float | None:
        """Return the latest value of the problem's metric."""
        return recorder.record.curve[-1].get(self.task.problem.metric)

    def _new(self, world: World) -> Recorder:
        run, experiment = self.task, self.task.experiment
        return Recorder(Simulation(experiment, world), run.diagnostics.possible(experiment), run.evaluate)

    def _begun(self, world: World) -> Recorder:
        """Return a recorder of the run at the beginning, with the first model evaluated."""
        recorder = self._new(world)
        recorder.start()
        self.recording.stamp(len(recorder.record.curve))
        return recorder

    def _resumed(self, world: World) -> Recorder | None:
        """Return a recorder of the run at the last checkpoint, or None without a usable checkpoint."""
        if not self.saved.exists():
            return None
        recorder = self._new(world)
        try:
            self.recording.restore(checkpoint.load(recorder, self.saved))
        except Exception as error:  # noqa: BLE001 - any damage of the checkpoint: the run restarts
            traceback.print_exc()
            self._tell(Notice.of_restart(error))
            return None
        return recorder


class Companions:
    """Runs side by side in a worker: the first run, and all companions joining later."""

    def __init__(self, first: RunJob, worker: Worker) -> None:
        self.first, self.worker = first, worker
        self.execution = EXECUTIONS[first.task.execution]()
        self.opened: list[Attempt] = []  # begun, and not yet ended
        self._max_runs: int | None = (
            None  # that fit into memory; None until a first job tells the model's size
        )

    def attempts(self) -> Iterator[Attempt | None]:
        """Yield each run as soon as capacity is free; yield None without capacity or a waiting companion.

        `interleave` asks for the next run between two rounds of computation.
        """
        job: RunJob | None = self.first
        reported = 1
        while job or self.opened:
            if job is None:
                yield None
            elif finished := job.recorded():
                self.worker.tell(job, finished)
            else:
                self.opened.append(Attempt(job, self.execution, self.worker))
                yield self.opened[-1]
            capacity = self._capacity()
            if self.opened and capacity != reported:
                reported = capacity
                self.worker.tell(self.opened[0].job, Capacity(capacity))
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
        if self._max_runs is None:
            request = next((attempt.request for attempt in self.opened), None)
            if request is None:
                return 1
            models = MODELS_PER_CLIENT * request.world.n * request.world.d
            limit = min(
                MAX_SIDE_BY_SIDE[request.job.start.device.type], int(largest(request.job.start)) // models
            )
            self._max_runs = max(1, limit)
        return self._max_runs


class SharedWorlds:
    """Worlds of a worker: open runs of equal problem and seed share a world, and the last world is kept."""

    def __init__(self) -> None:
        self._open: WeakValueDictionary[tuple[Problem, int], World] = WeakValueDictionary()
        self._last: World | None = None

    def of(self, problem: Problem, seed: int) -> World:
        """Return the world of a problem under a seed, on the chosen device."""
        world = self._open.get((problem, seed))
        if world is None:
            self._last = None  # frees its memory before the new world is built, unless an open run uses it
            world = self._open[problem, seed] = device.place(problem.world(seed))
        self._last = world
        device.set_precision(world)
        return world


def job_of(task: Task, outbox: Outbox, provenance: dict[Tag, Any]) -> RunJob | BaselineJob:
    """Return the job for computing a task and storing the record in the outbox."""
    if isinstance(task, PlannedRun):
        return RunJob(task, outbox, provenance)
    return BaselineJob(task, outbox, provenance)
