"""A session: computation and recording of the missing results of a suite.

`asyncfl run`, `live`, `claims run` and the leaderboard each open one. This process is the only one that
writes to MLflow; workers leave records in the outbox, and `delivering` sends them.

Fixed: a finished run is computed again only if the user's code or data changed, or if it lacks training
losses that are now asked for.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks import log_file
from benchmarks.engine import Engine
from benchmarks.errors import GO_ON, UserError, warn
from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Announcement, Outbox
from benchmarks.mlflow_store.provenance import provenance
from benchmarks.mlflow_store.store import Store, StoreInUseError, Turn
from benchmarks.pool.job import GivenUp
from benchmarks.pool.pool import Pool
from benchmarks.runs.messages import Finished, NoRoom, Notice
from benchmarks.runs.progress import Progress, news
from benchmarks.runs.run_jobs import TaskJob, job_of
from benchmarks.suite.suite import PlannedRun, Task, tasks
from fl_core.recorded_names import Status, Tag
from fl_core.text import many

log = logging.getLogger(__name__)

REFRESH_SECONDS = 0.25  # without a message after which the display is refreshed


class Runs(Protocol):
    """Protocol of the runs of a session: a suite, or the runs needed by claims."""

    @property
    def name(self) -> str:
        """Name of the suite in records."""

    @property
    def description(self) -> str:
        """Description of the runs in MLflow."""

    @property
    def highlighted(self) -> Sequence[str]:
        """Labels of the strategies drawn in ink in figures."""

    def runs(self) -> list[PlannedRun]:
        """Return all runs."""


class Session:
    """Computation of a suite's missing results; can be stopped at any time and resumed by another session."""

    def __init__(
        self,
        suite: Runs,
        store: Store,
        *,
        baselines: bool = True,
        job: Callable[[Any, Outbox, dict[Tag, Any]], TaskJob[Any]] = job_of,
    ) -> None:
        self.suite, self.store, self.job = suite, store, job  # `job` makes a job of a task
        self.tasks = [task for task in tasks(suite.runs()) if baselines or isinstance(task, PlannedRun)]
        self.finished_earlier = 0  # tasks of earlier sessions
        self.statuses: Counter[Status] = Counter()  # of the tasks that this session ended
        # The state of the delivery at the end:
        self.outage = ""  # why MLflow could not be reached; empty if it could
        self.pending_records = 0  # in the outbox, not in MLflow
        self.pending_reason = ""  # why; empty if there are none
        self.failing = False  # whether a sync alone would not help: MLflow refuses a record, or fails

    @property
    def size(self) -> str:
        """Text with the numbers of runs and baselines of the suite."""
        runs = sum(isinstance(task, PlannedRun) for task in self.tasks)
        baselines = len(self.tasks) - runs
        extra = f" and {many(baselines, 'centralised baseline')}" if baselines else ""
        return f"{many(runs, 'run')}{extra}"

    @property
    def finished(self) -> int:
        """Number of finished tasks, earlier sessions included."""
        return self.finished_earlier + sum(
            count for status, count in self.statuses.items() if status.terminated
        )

    @property
    def progress_text(self) -> str:
        """Text with the number of finished tasks and the size of the suite."""
        return f"{self.finished} of {len(self.tasks)} finished ({self.size})"

    def run(self, engine: Engine, show: Callable[[int], Progress]) -> None:
        """Compute all missing results; `show(n)` returns the display for n tasks.

        Before anything is computed, raises UserError, and a problem's own error if its data are missing;
        KeyboardInterrupt once all that is in progress is saved.
        """
        with delivering(self.store) as delivery:
            try:
                with log_file.phase("finding out what is left"):
                    remaining = self._remaining_tasks(delivery)
                log.info("%s: %s, %d of them left", self.suite.name, self.size, len(remaining))
                if delivery.outage:
                    warn(f"cannot read from MLflow which runs are finished: {delivery.outage}")
                self._announce(delivery)
                if remaining:
                    with log_file.phase("computing"):
                        self._compute(remaining, delivery, engine, show)
            finally:
                with log_file.phase("sending the last records to MLflow"):
                    delivery.close()
        self.pending_records, self.outage = delivery.pending_records, delivery.outage
        self.pending_reason, self.failing = delivery.pending_reason, delivery.failing
        if delivery.full_disk:
            raise self._no_room(delivery.full_disk)

    def warn_of_waiting(self) -> None:
        """Warn about records not yet in MLflow, with the command to send the records."""
        if self.pending_records:
            warn(
                f"not in MLflow: {many(self.pending_records, 'record')} ({self.pending_reason}), "
                f"kept in {self.store.outbox}; send them with asyncfl sync, or the next asyncfl run"
            )

    def _remaining_tasks(self, delivery: Delivery) -> list[Task]:
        """Return the tasks without a result, after a check of the data."""
        remaining = delivery.missing(self.tasks)
        self.finished_earlier = len(self.tasks) - len(remaining)
        check(remaining)
        return remaining

    def _announce(self, delivery: Delivery) -> None:
        """Describe the suite in MLflow, and send the remaining records of earlier sessions."""
        runs = [task for task in self.tasks if isinstance(task, PlannedRun)]
        announcement = Announcement(
            self.suite.name,
            self.suite.description,
            {run.key: run.place for run in runs},
            [*self.suite.highlighted],
            conditions={run.scenario: [*run.conditions] for run in runs},
        )
        catch_up(delivery)
        delivery.outbox.announce(announcement)
        delivery.announce(announcement)

    def _compute(
        self,
        remaining: Sequence[Task],
        delivery: Delivery,
        engine: Engine,
        show: Callable[[int], Progress],
    ) -> None:
        """Submit a job for each remaining task, and handle messages until the pool has no more jobs."""
        tags = provenance()
        worlds = {task.problem: task.seed for task in remaining}
        pool: Pool[TaskJob[Any], Any] = engine.pool(len(remaining), self.store.log, worlds)
        with show(len(remaining)) as progress, pool:
            # Baselines, which are short, come last: meanwhile the last runs are sent to MLflow.
            for task in sorted(remaining, key=lambda task: not isinstance(task, PlannedRun)):
                pool.submit(self.job(task, delivery.outbox, tags))
            while pool.busy:
                if delivery.full_disk:
                    raise self._no_room(delivery.full_disk)
                messages = pool.messages(REFRESH_SECONDS)
                for job, message in messages:
                    event = job.failed(message.reason) if isinstance(message, GivenUp) else message
                    if isinstance(event, NoRoom):
                        raise self._no_room(event.reason)
                    if isinstance(event, Notice) or (
                        isinstance(event, Finished) and event.result.status is not Status.DONE
                    ):
                        log.info("%s", news(job.task, event))
                    if isinstance(event, Finished):
                        self.statuses[event.result.status] += 1
                        delivery.send()
                    progress.see((job.task, event))
                if not messages:
                    progress.see(None)

    def _no_room(self, place: str) -> UserError:
        """Return the error of a session on a full disk."""
        return UserError(f"{place}: {self.progress_text}; {GO_ON}")


def check(tasks_left: Sequence[Task]) -> None:
    """Load and split the data of every problem, to report errors and remarks before any computation."""
    for task in {(repr(task.problem), task.seed): task for task in tasks_left}.values():
        task.problem.check(task.seed)
    for task in {repr(task.problem): task for task in tasks_left}.values():
        for remark in task.problem.remarks(task.seed):
            warn(remark)
    runs = (task for task in tasks_left if isinstance(task, PlannedRun))
    for strategy in {repr(run.experiment.strategy): run.experiment.strategy for run in runs}.values():
        for remark in strategy.remarks():
            warn(remark)


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Outcome of a sync."""

    sent: int  # records
    pending_records: int  # still in the outbox
    pending_reason: str  # why they are; empty if none is


def sync(store: Store) -> SyncResult:
    """Send all records, oldest first, and tell MLflow the current runs of each suite.

    UserError if another process works on the store, or its MLflow store cannot be used.
    """
    database.check(store.tracking_uri)
    with delivering(store) as delivery:
        waiting = delivery.pending_records
        try:
            catch_up(delivery)
        finally:
            delivery.close()
    return SyncResult(waiting - delivery.pending_records, delivery.pending_records, delivery.pending_reason)


def catch_up(delivery: Delivery) -> None:
    """Send the remaining records of earlier sessions, after announcing the suites to MLflow."""
    for announcement in list(delivery.outbox.announced()):
        delivery.announce(announcement)
        delivery.flush()


@contextmanager
def delivering(store: Store, *, shared: bool = False) -> Iterator[Delivery]:
    """Open a delivery to MLflow, after a check of the outbox for damaged records.

    Args:
        store: Where records go.
        shared: Whether other processes may use the store, as in tuning: each locks it only while it writes.

    Raises:
        UserError: Another process has the store, or it cannot be written.
    """
    with ExitStack() as stack:
        turn = Turn(store)
        if not shared:
            stack.enter_context(turn.taken())
        stack.enter_context(log_file.to_file(store.session_log))
        outbox = Outbox(store.outbox)
        with (
            suppress(StoreInUseError),
            turn.taken() if shared else nullcontext(),
        ):  # the process that has it has swept
            for aside in outbox.sweep():
                warn(
                    f"{aside.with_suffix('')} is damaged and was renamed to {aside.name}. Its run is "
                    "computed again"
                )
        delivery = Delivery(store, outbox, turn if shared else None)
        try:
            yield delivery
        finally:
            if not (delivery.pending_records or delivery.outage or delivery.unread):
                outbox.drop_announcements()
