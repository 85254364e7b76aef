"""Runs in real time: a suite's runs repeated by the wall clock, with processes as clients.

`asyncfl live` plans them (`LiveSuite`) and computes them one after another (`LiveJob`). They are recorded
under other keys than runs in virtual time, with a log that `asyncfl replay` simulates again.

Fixed: `PlannedLiveRun.key` and `LiveSuite.name`, by which recorded runs are found.
"""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from time import monotonic
from typing import Any

from benchmarks.errors import UserError
from benchmarks.pool.job import Worker
from benchmarks.runs.messages import Advanced, Finished, NoRoom, Notice
from benchmarks.runs.run_jobs import Recording, SharedWorlds, TaskJob
from benchmarks.suite.suite import PlannedRun, Suite
from fl_core.keys import key
from fl_core.live.processes import LocalProcesses
from fl_core.live.real_time import MAX_LATENESS_SECONDS, StoppedError
from fl_core.live.run import LiveRun, refuses
from fl_core.recorded_names import EVENTS, JOBS, LIVE, MODEL, SLIPS, WALL, Name, Tag, Total

SAVE_SECONDS = 5.0  # between two checkpoints, during which clients wait
REPORT_SECONDS = 0.5  # between two messages on the progress

SLOW_SERVER = Notice(
    "the server is slower than the strategy's timer; alarms that it missed by more than "
    f"{MAX_LATENESS_SECONDS:g} s are dropped. Lengthen --unit, or the strategy's period"
)


@dataclass(frozen=True)
class PlannedLiveRun(PlannedRun):
    """A run of a suite in real time, with a different key from the run in virtual time."""

    unit: float = 1.0  # seconds in a unit of virtual time
    processes: int = 1  # among which the clients are divided; without influence on the key

    @cached_property
    def key(self) -> str:
        """Key of the run: a hash of the experiment and the unit."""
        return key([WALL, self.experiment.identity(), self.unit])

    def tags(self) -> dict[Tag, Any]:
        """Return the tags for searching and grouping runs."""
        return {**super().tags(), Tag.CLOCK: WALL, Tag.UNIT: self.unit}


@dataclass(frozen=True, slots=True)
class LiveSuite:
    """The runs of a suite, planned for real time and recorded under a separate name."""

    suite: Suite
    unit: float  # seconds in a unit of virtual time
    processes: int  # of clients

    @property
    def name(self) -> str:
        """Name of the suite, with the unit."""
        return f"{self.suite.name}{LIVE}{1000 * self.unit:g}ms"

    @property
    def description(self) -> str:
        """Description of the suite."""
        return self.suite.description

    @property
    def highlighted(self) -> Sequence[str]:
        """Labels of the strategies drawn in ink in figures."""
        return self.suite.highlighted

    def runs(self) -> list[PlannedRun]:
        """Return all runs.

        Raises:
            UserError: An experiment cannot run in real time.
        """
        return [self._live(run) for run in self.suite.runs()]

    def _live(self, run: PlannedRun) -> PlannedLiveRun:
        if reason := refuses(run.experiment):
            raise UserError(f"{self.suite.name}: {run.name} cannot run in real time: {reason}")
        left_out = {"suite", "diagnostics"}  # diagnostics would block the server while clients wait
        values = {field.name: getattr(run, field.name) for field in fields(run) if field.name not in left_out}
        return PlannedLiveRun(self.name, **values, unit=self.unit, processes=self.processes)


class LiveJob(TaskJob[PlannedLiveRun]):
    """Live job: run the server of a run, and the processes of the clients."""

    saves = True

    def compute(self, worker: Worker) -> None:
        """Leave the run's record in the outbox, or a checkpoint if stopped."""
        recording = self.recording()
        finished: Finished | NoRoom | None = self.recorded()
        if finished is None:
            try:
                finished = self._simulate(worker, recording)
            except StoppedError:
                return
            except (Exception, SystemExit) as error:  # noqa: BLE001 - one task's error is recorded, and the others go on
                finished = recording.ended_by(error)
        worker.tell(self, finished)

    def _simulate(self, worker: Worker, recording: Recording) -> Finished:
        """Run the server until the end of the budget, and store the record and the log.

        Raises:
            StoppedError: The worker is stopped; a checkpoint was saved.
        """
        task, began = self.task, monotonic()
        saved = self.outbox.checkpoint(task.suite, task.key)
        world = worker.shared(SharedWorlds).of(task.problem, task.seed)
        run = self._run(world, worker)
        if saved.exists():
            try:
                recording.restore(run.load(saved))
                worker.tell(self, _resumed(run))
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the run restarts
                traceback.print_exc()
                worker.tell(self, Notice.of_restart(error))
                run = self._run(world, worker)
        transport = LocalProcesses(task.experiment, task.processes)
        served, last_reported, last_saved = monotonic(), 0.0, monotonic()
        punctual = True  # False once an alarm was missed: users are warned once
        try:
            for _ in run.events(transport):
                end = monotonic()
                recording.attempt_seconds = end - began
                if punctual and run.log.slips[Name.SET]:
                    worker.tell(self, SLOW_SERVER)
                    punctual = False
                if end > last_reported + REPORT_SECONDS:
                    worker.tell(self, Advanced(run.simulation.share))
                    last_reported = end
                if end > last_saved + SAVE_SECONDS:
                    run.save(saved, recording.state())
                    last_saved = monotonic()
        except StoppedError:
            run.save(saved, recording.state())
            raise
        finally:
            transport.stop()
        busy = 1 - run.service.waited / (monotonic() - served)
        record = run.finish()
        recording.stamp(len(record.curve))
        recording.attempt_seconds = monotonic() - began
        processes = min(task.processes, world.n)
        result = recording.simulated(
            record,
            {Tag.EXECUTION: f"real time, {processes} client processes", Tag.DATA: world.fingerprint},
            {Total.SERVER_BUSY: busy},
            {
                JOBS.name: run.log.jobs,
                EVENTS.name: run.log.events,
                SLIPS.name: run.log.slips,
                MODEL.name: {Name.MODEL: run.simulation.server.model.double().cpu().numpy()},
            },
        )
        saved.unlink(missing_ok=True)
        return Finished(result, record.curve[-1].get(task.problem.metric) if record.curve else None)

    def _run(self, world: Any, worker: Worker) -> LiveRun:
        task = self.task
        return LiveRun(
            task.experiment, world, task.unit, evaluate=task.evaluate, stopping=lambda: worker.stopping
        )


def _resumed(run: LiveRun) -> Notice:
    """Return the notice of a resumption; jobs in service were lost with the server, and are sent again."""
    jobs = ", ".join(f"job {index} of client {client}" for client, index in run.in_service) or "none"
    return Notice(f"resumed at time {run.simulation.time:g}; lost with the server and sent again: {jobs}")
