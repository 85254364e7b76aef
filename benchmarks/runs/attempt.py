"""A run in progress: from the beginning or a checkpoint to the record or the next checkpoint."""

import traceback
from collections.abc import Callable, Iterator

from benchmarks import device
from benchmarks.errors import no_room, summarised
from benchmarks.pool.job import Message
from benchmarks.runs.messages import Advanced, BegunAnew, Evaluated, Finished, NoRoom
from benchmarks.runs.recording import Recording
from benchmarks.suite.suite import PlannedRun
from benchmarks.tracking.run_result import RunResult
from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import World
from fl_core.recording import checkpoint
from fl_core.recording.interleave import RunSlot
from fl_core.recording.recorder import Recorder
from fl_core.schema import Status, Tag

SAVE_EVERY = 1.0  # seconds of a run's own between two checkpoints
SAVE_SHARE = 0.05  # of its time at most is spent on checkpoints
REPORT_EVERY = 0.2  # seconds of its own between two messages


class Attempt(RunSlot):
    """Attempt at a run, recorded, saved and reported at events, independently of companions."""

    def __init__(
        self,
        task: PlannedRun,
        recording: Recording,
        execution: Execution,
        *,
        world: Callable[[], World],
        tell: Callable[[Message], None],
        cancelled: Callable[[], bool],
    ) -> None:
        super().__init__()
        self.task, self.recording, self.execution = task, recording, execution
        self.world, self.tell, self.cancelled = world, tell, cancelled
        self.watch = recording.watch
        self.saved = recording.outbox.checkpoint(task.suite, task.key)
        self.recorder: Recorder | None = None  # once it has begun
        self._finished: Finished | None = None

    def events(self) -> Iterator[Event | ComputeRequest]:
        """Yield the simulation's events once recorded, and store the record at the end."""
        world = self.world()
        recorder = self.recorder = self._resumed(world) or self._begun(world)
        simulation, curve = recorder.simulation, recorder.record.curve
        self.charge()
        self.tell(Advanced(simulation.share, self._value(recorder)))  # where it begins, or goes on
        next_message, next_save = 0.0, SAVE_EVERY
        reported = self._report(0)
        for event in simulation.events():
            if not isinstance(event, ComputeRequest):
                if recorder.see(event):
                    self.watch.stamp(len(curve))
                    reported = self._report(reported)
                    if self.task.prunable and self.cancelled():
                        self._finished = self._ended(recorder, pruned=True)
                        return
                self.charge()
                if self.seconds > next_message:
                    self.tell(Advanced(simulation.share, self._value(recorder)))
                    next_message = self.seconds + REPORT_EVERY
                if self.seconds > next_save:
                    earlier_seconds = self.seconds
                    self.save()
                    self.charge()
                    next_save = self.seconds + max(SAVE_EVERY, (self.seconds - earlier_seconds) / SAVE_SHARE)
            yield event
        self._finished = self._ended(recorder)

    def save(self) -> None:
        """Write a checkpoint, unless the run has not begun."""
        if self.recorder is not None:
            self.watch.here = self.seconds
            checkpoint.save(self.recorder, self.saved, self.watch.state())

    def leave(self) -> None:
        """Save the run for a later session; record an error if saving fails."""
        try:
            self.save()
        except Exception as error:  # noqa: BLE001 - must not affect the runs beside it
            self.error = error
            self.finished()

    def finished(self) -> Finished | NoRoom:
        """Return the final message; the record, or the error's, is in the outbox unless the disk is full."""
        if self._finished is not None:
            return self._finished
        assert self.error is not None
        if reason := no_room(self.error):
            return NoRoom(reason)
        self.watch.here = self.seconds
        trace = "".join(traceback.format_exception(self.error))
        try:
            return self._cleaned(self.recording.failed(summarised(self.error), trace))
        except OSError as error:
            if reason := no_room(error):
                return NoRoom(reason)
            raise

    def _report(self, reported: int) -> int:
        """Send all rows of a prunable run's curve from row `reported` on; return the number of rows."""
        assert self.recorder is not None
        curve = self.recorder.record.curve
        if self.task.prunable:
            for row in range(reported, len(curve)):
                self.tell(Evaluated(row, curve[row]))
        return len(curve)

    def _ended(self, recorder: Recorder, *, pruned: bool = False) -> Finished:
        record, world = recorder.finish(clients=not self.task.curve_only), recorder.simulation.world
        if pruned:
            record.status, record.reason = Status.PRUNED, "stopped by the pruner"
        self.watch.stamp(len(record.curve))
        self.charge()
        self.watch.here = self.seconds
        companions = f", {self.beside} runs side by side" if self.beside > 1 else ""
        about = {
            Tag.EXECUTION: self.execution.label + companions,
            Tag.DEVICE: device.label(),
            Tag.MEMORY_FORMAT: world.memory_format,
            Tag.DATA: world.fingerprint,
        }
        return self._cleaned(self.recording.simulated(record, about), self._value(recorder))

    def _cleaned(self, result: RunResult, value: float | None = None) -> Finished:
        self.saved.unlink(missing_ok=True)
        return Finished(result, value)

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
        self.watch.stamp(len(recorder.record.curve))
        return recorder

    def _resumed(self, world: World) -> Recorder | None:
        """Return a recorder of the run at the last checkpoint, or None without a usable checkpoint."""
        if not self.saved.exists():
            return None
        recorder = self._new(world)
        try:
            self.watch.restore(checkpoint.load(recorder, self.saved))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the run restarts
            traceback.print_exc()
            self.tell(BegunAnew(summarised(error)))
            return None
        return recorder
