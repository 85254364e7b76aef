"""One run in progress: from its checkpoint, or its beginning, to its record, or to its next checkpoint."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import device
from benchmarks.messages import Advanced, BegunAnew, Finished, one_line
from benchmarks.recording import Recording
from benchmarks.stopwatch import Clock
from benchmarks.tasks import RunTask
from benchmarks.tracking.outbox import Result
from fl_core.execution.one_by_one import Execution, Need
from fl_core.loop.simulation import Simulation
from fl_core.problems.problem import World
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder
from fl_core.server.jobs import Job

SAVE_EVERY = 1.0  # seconds of a run's own between two checkpoints
SAVE_SHARE = 0.05  # of its time goes into checkpoints at most
TELL_EVERY = 0.2  # seconds of its own between two messages


class Leave(Exception):  # noqa: N818 - not an error
    """Computing ends before the task does; its checkpoint is written."""


class Attempt:
    """A run that goes from need to need, and does not notice what is computed beside it.

    While it goes on, the clock's time is charged to it.
    """

    def __init__(
        self,
        task: RunTask,
        recording: Recording,
        saved: Path,
        clock: Clock,
        *,
        build: Callable[[RunTask], World],
        tell: Callable[[RunTask, Advanced | BegunAnew], None],
        leave: Callable[[], bool],
    ) -> None:
        self.task, self.recording, self.saved, self.clock = task, recording, saved, clock
        self.build, self.tell, self.leave = build, tell, leave
        self.watch = recording.watch
        self.together = 1  # the most runs that were open with it, itself among them
        self.recorder: Recorder | None = None  # once it is open
        self.need: Need | None = None  # what it waits for
        self._needs = self._all_needs()
        self._looked_at: list[Job] = []

    def go_on(self) -> bool:
        """On to its next need; False at the end of the run. Raises Leave if `leave()`, after an event."""
        self.need = next(self._needs, None)
        return self.need is not None

    def save(self) -> None:
        """Write a checkpoint; before the run is open there is nothing to write."""
        if self.recorder is not None:
            self.watch.save()  # before the checkpoint, which must not know of more rows
            checkpoint.save(self.recorder, self.saved)

    @property
    def computed(self) -> int:
        """How many of its jobs were computed when its last need was filled."""
        return sum(job.delta is not None for job in self._looked_at)

    def end(self, execution: Execution) -> Finished:
        """The run has ended; leaves its record in the outbox."""
        assert self.recorder is not None
        record, world = self.recorder.finish(), self.recorder.simulation.world
        self.watch.stamp(len(record.curve))
        self.watch.here += self.clock.lap()
        beside = f", {self.together} runs side by side" if self.together > 1 else ""
        about = {"execution": execution.label + beside, "device": device.label(), "data": world.fingerprint}
        result = self.recording.simulated(record, about)
        return self._told(result, record.curve[-1].get(self.task.problem.metric))

    def fail(self, error: Exception) -> Finished:
        """The run ends in an error; leaves that in the outbox."""
        self.watch.here += self.clock.lap()
        trace = "".join(traceback.format_exception(error))
        return self._told(self.recording.failed(one_line(error), trace))

    def _told(self, result: Result, value: float | None = None) -> Finished:
        self.saved.unlink(missing_ok=True)
        self.watch.path.unlink(missing_ok=True)
        self.clock.lap()  # nobody's: its own record is written already
        return Finished.of(result, value)

    def _all_needs(self) -> Iterator[Need]:
        world = self.build(self.task)
        recorder = self.recorder = self._resumed(world) or self._begun(world)
        watch, simulation, curve = self.watch, recorder.simulation, recorder.record.curve
        watch.here += self.clock.lap()
        next_message, next_save = 0.0, SAVE_EVERY
        for event in simulation.events():
            if isinstance(event, Need):
                yield self._watched(event)
                continue
            if recorder.see(event):
                watch.stamp(len(curve))
            watch.here += self.clock.lap()
            if watch.here > next_message:
                self.tell(self.task, Advanced(simulation.share, curve[-1].get(self.task.problem.metric)))
                next_message = watch.here + TELL_EVERY
            if self.leave():
                raise Leave
            if watch.here > next_save:
                self.save()
                cost = self.clock.lap()
                watch.here += cost
                next_save = watch.here + max(SAVE_EVERY, cost / SAVE_SHARE)

    def _new(self, world: World) -> Recorder:
        experiment = self.task.run.experiment
        return Recorder(Simulation(experiment, world), self.task.run.diagnostics.possible(experiment))

    def _begun(self, world: World) -> Recorder:
        """The run at its beginning, its first model evaluated."""
        recorder = self._new(world)
        recorder.start()
        self.watch.stamp(len(recorder.record.curve))
        return recorder

    def _resumed(self, world: World) -> Recorder | None:
        """The run where its checkpoint left it, or None if there is none that can be taken up."""
        if not self.saved.exists():
            return None
        recorder = self._new(world)
        try:
            checkpoint.load(recorder, self.saved)
            self.watch.load(len(recorder.record.curve))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it: the run begins anew
            traceback.print_exc()
            self.tell(self.task, BegunAnew(one_line(error)))
            return None
        return recorder

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
