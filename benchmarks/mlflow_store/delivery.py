"""Delivery of records from the outbox to MLflow, on a separate thread, while workers compute.

`runs.session.delivering` opens it for every command that computes or syncs. It calls `Tracking`, the only
writer to MLflow, and no error of MLflow stops a computation: records wait in the outbox until a later attempt
or session.

Fixed: a record leaves the outbox only when MLflow has it. Free: sizes of batches, and times between attempts.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from benchmarks.errors import UserError, summarised, warn
from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.outbox import Announcement, Outbox, read
from benchmarks.mlflow_store.run_result import RunRequirements, RunResult
from benchmarks.mlflow_store.store import WAIT_SECONDS, Store, StoreInUseError, Turn
from benchmarks.redaction import one_line, redacted
from fl_core.recorded_names import Status

if TYPE_CHECKING:
    from benchmarks.mlflow_store.writer import Tracking
    from benchmarks.suite.suite import AnyTask, Task

T = TypeVar("T")

BATCH_SIZE = 50  # records written together, which takes a second or two
RETRY_SECONDS = 30.0  # until another attempt, after a store did not answer

# MLflow's error codes for requests that would fail again.
PERMANENT_ERRORS = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST"}


class Delivery:
    """Delivery of records to MLflow; while the store is unreachable, records wait, and nothing is lost."""

    def __init__(self, store: Store, outbox: Outbox, turn: Turn | None = None) -> None:
        database.check(store.tracking_uri)
        self.store, self.outbox = store, outbox
        self.turn = turn  # lock for each write; None if the caller holds the lock of the store
        # Reasons why MLflow cannot be used; empty while it can:
        self.outage = ""  # any reason, at the last attempt
        self.full_disk = ""  # a full disk of this machine
        self.failure = ""  # a reason that a retry alone will not remove
        self.unread = False  # whether a group lacks its mean, since a seed's curve could not be read
        self.refused: dict[str, str] = {}  # key of a record that MLflow does not take → reason
        self._announced: Announcement | None = None  # the suite of this session
        self._tracking: Tracking | None = (
            None  # None until needed, and after an error or a write of another process
        )
        self._was_opened = False  # whether MLflow has opened the store at least once
        self._described_by: Tracking | None = None  # the instance that has described the announced suite
        self._sent: list[Future[None]] = []  # scheduled attempts to send all records
        self._next_try = 0.0  # by `monotonic()`: no attempts before
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tracking")

    def _submit(self, work: Callable[[], T]) -> Future[T | None]:
        """Do some work on the thread; the result is None if MLflow cannot be reached."""
        return self._thread.submit(self._if_reachable, work)

    def _if_reachable(self, work: Callable[[], T]) -> T | None:
        """Do some work with MLflow; return None, and note the outage, if MLflow cannot be used."""
        if monotonic() < self._next_try:
            return None
        try:
            result = work()
        except StoreInUseError as error:
            self._reset()
            self.outage = str(error)
            return None
        except database.failures() as error:
            self._failed(error)
            self._next_try = monotonic() + RETRY_SECONDS
            self.full_disk = without_room(self.store, error)
            self.outage = self.full_disk or what_happened(error)
            self.failure = "" if database.does_not_answer(error) else self.outage
            return None
        self.outage = self.full_disk = self.failure = ""
        return result

    def missing(self, tasks: Sequence[AnyTask]) -> list[AnyTask]:
        """Return the tasks of a suite without a valid result in MLflow or in the outbox.

        Not valid are errors, runs recorded without the training losses that are wanted now, and runs made by
        the user's code or data before an edit.

        Raises:
            UserError: The MLflow store exists and cannot be used.
        """
        requirements = _requirements(tasks)
        (suite,) = {task.suite for task in tasks} or {""}
        finished = self._finished(suite, requirements)
        remaining = []
        for task in tasks:
            result = self.outbox.get(suite, task.key)
            lacks = result and not result.requirements.serves(requirements[task.key])
            if result and (lacks or result.status is Status.ERROR):
                self.outbox.drop(suite, task.key)
                result = None
            if result is None and task.key not in finished:
                remaining.append(task)
        return remaining

    def _finished(self, suite: str, requirements: Mapping[str, RunRequirements]) -> set[str]:
        """Return a suite's finished keys in MLflow (see `Tracking.finished`); none without a database."""
        if database.is_new(self.store.tracking_uri):
            if self.store.lost_its_database:
                warn(
                    f"{self.store.folder} has artifacts but no mlflow.db: all runs are computed again. "
                    "To avoid this, stop and restore a copy of mlflow.db"
                )
            return set()
        return self._submit(lambda: self._open_tracking().finished(suite, requirements)).result() or set()

    def results(self, suite: str, keys: AbstractSet[str]) -> dict[str, RunResult]:
        """Return the results of finished runs by key, from the outbox and from MLflow."""
        found_results = {}
        for key in keys:  # the outbox first: records sent in between are then found in MLflow
            if result := self.outbox.get(suite, key):
                found_results[key] = result

        def read_rest() -> dict[str, RunResult]:
            if self.turn is not None:
                self._reset()  # others may have written
            return self._open_tracking().results(suite, keys - found_results.keys())

        if found_results.keys() != keys and not database.is_new(self.store.tracking_uri):
            found_results |= self._submit(read_rest).result() or {}
        return found_results

    def announce(self, announcement: Announcement) -> None:
        """Describe a suite, and select the current runs (see `Tracking.select`)."""
        self._announced = announcement
        self._described_by = None
        self.send()

    def send(self) -> None:
        """Schedule the sending of all waiting records; raise errors of earlier attempts."""
        for future in self._sent:
            if future.done():
                future.result()  # raises its error, if any
        self._sent = [future for future in self._sent if not future.done()]
        self._sent.append(self._submit(self._send_all))

    def flush(self) -> None:
        """Wait until all scheduled records are sent, or the store is found unreachable."""
        for future in self._sent:
            future.result()

    def close(self) -> None:
        """Send all waiting records now, and stop the thread; raises unforeseen errors."""
        self._next_try = 0.0
        try:
            self._submit(self._send_all).result()
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self.flush()

    @property
    def pending_records(self) -> int:
        """Number of records not yet in MLflow."""
        return len(self.outbox.waiting())

    @property
    def pending_reason(self) -> str:
        """Reason for records still waiting; empty if MLflow has all."""
        return self.outage or next(iter(self.refused.values()), "")

    @property
    def failing(self) -> bool:
        """Whether records wait for another reason than an unresponsive store."""
        return bool(self.failure or self.refused)

    def _failed(self, error: Exception) -> None:
        """Reset after an error; raise UserError if a local file is damaged or cannot be opened by MLflow."""
        self._reset()
        unusable = not self._was_opened or database.is_damage(error)
        if unusable and database.file(self.store.tracking_uri) is not None:
            raise UserError(f"{self.store.tracking_uri} cannot be used: {what_happened(error)}") from None

    def _reset(self) -> None:
        """Drop the possibly outdated index of the store; the next call reads the store again."""
        self._was_opened |= self._tracking is not None and self._tracking.opened
        self._tracking = None

    def _open_tracking(self) -> Tracking:
        """Return the interface to MLflow, with a new index after a reset."""
        from benchmarks.mlflow_store.writer import Tracking

        if self._tracking is None:
            database.create(self.store.tracking_uri)
            self._tracking = Tracking(self.store)
        return self._tracking

    def _describe(self) -> Tracking:
        """Return MLflow's interface, after describing the announced suite."""
        tracking = self._open_tracking()
        if self._announced and self._described_by is not tracking:
            suite = self._announced.suite
            tracking.describe(suite, self._announced.description, self._announced.highlight)
            if self._announced.studies:
                tracking.describe_studies(suite, self._announced.studies)
            tracking.select(suite, self._announced.places, self._announced.conditions)
            self._described_by = tracking
        return tracking

    def _send_all(self) -> None:
        """Send all waiting records, holding the lock if other processes share the store."""
        if self.turn is None:
            self._send_waiting()
            return
        with self.turn.taken(WAIT_SECONDS) as unchanged:
            if not unchanged:
                self._reset()  # another process may have written
            self._send_waiting()

    def _send_waiting(self) -> None:
        """Send all waiting records in batches, after describing the announced suite."""
        waiting = [folder for folder in self.outbox.waiting() if folder.name not in self.refused]
        if self._announced:
            self._describe()
        for at in range(0, len(waiting), BATCH_SIZE):
            results = []
            for folder in waiting[at : at + BATCH_SIZE]:
                if result := read(folder):
                    results.append(result)
                else:
                    self.refused[folder.name] = f"{folder} is damaged"  # renamed by the next session's sweep
            if results:
                self._send_batch(results)

    def _send_batch(self, results: Sequence[RunResult]) -> None:
        """Send results together or, after a failure, singly: a refused result must not hold up the rest."""
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import IntegrityError

        tracking = self._describe()
        try:
            tracking.write(*results)
        except Exception as error:
            hopeless = isinstance(error, MlflowException) and error.error_code in PERMANENT_ERRORS
            refused = (hopeless or isinstance(error, IntegrityError)) and not database.is_damage(error)
            failed = isinstance(error, database.failures()) and not refused
            self._reset()  # a record may be half written
            if len(results) > 1:
                for result in results:
                    self._send_batch([result])
                return
            if failed:
                raise
            self.refused[results[0].key] = what_happened(error) if refused else summarised(error)
        for result in results:
            if result.key not in self.refused:
                self.outbox.drop(result.suite, result.key)
        self.unread |= tracking.unread


def _requirements(tasks: Sequence[Task]) -> dict[str, RunRequirements]:
    """Return the requirements of each task by key; common requirements of seeds are read once."""
    from benchmarks.suite.suite import PlannedRun  # imports torch, which asyncfl sync does not need

    shared: dict[tuple[object, ...], RunRequirements] = {}
    requirements = {}
    for task in tasks:
        parts: tuple[object, ...] = (task.key,)
        if isinstance(task, PlannedRun):
            experiment = task.experiment
            parts = id(experiment.scenario), id(experiment.strategy), str(task.evaluate)
        if parts not in shared:
            shared[parts] = _required(task)
        requirements[task.key] = shared[parts]
    return requirements


def _required(task: Task) -> RunRequirements:
    """Return the requirements of a task: the user's current code and, if any, data."""
    required = RunRequirements.of(task.tags())
    if not required.code:
        return required
    try:
        return replace(required, data=task.problem.data_digest())
    except Exception:  # noqa: BLE001 - data that are missing or damaged are reported where they are needed
        return required


def keep_page(store: Store, suite: str, page: Path) -> str:
    """Keep a report page in MLflow next to the runs; return the reason for a failure, or an empty text."""
    from benchmarks.mlflow_store.writer import Tracking

    try:
        Tracking(store).keep_page(suite, page)
    except database.failures() as error:
        return what_happened(error)
    return ""


def without_room(store: Store, error: Exception) -> str:
    """Return a message with the path on a full local disk if lack of room caused the error; otherwise empty.

    The message has to be searched: neither MLflow nor shutil, which copies artifacts, passes on the error
    number.
    """
    words, file = os.strerror(errno.ENOSPC), database.file(store.tracking_uri)
    if file is not None and "database or disk is full" in str(error):  # SQLite's
        return f"{file}: {words}"
    if not store.is_server and words in str(error):
        return f"{store.artifacts}: {words}"
    return ""


def what_happened(error: Exception) -> str:
    """Return the start of an MLflow error's message in a line; for a file's error, file and problem."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}")
    if "Max retries exceeded" in str(error):
        return "the server does not answer"
    message = str(database.sqlite_error(error) or error)  # MLflow's own message begins with SQLAlchemy's
    return redacted(message).strip().partition("\n")[0].partition(". ")[0][:300]
