"""Recording of a task in the outbox: a result for MLflow with metrics of the whole run, and tables.

Workers call it at the end of a run or baseline (`runs/run_jobs.py`, `runs/live.py`).

Fixed: names of metrics, tags and tables (`fl_core/recorded_names.py`), which are stored, and read by reports.
"""

import traceback
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np

from benchmarks.errors import no_room, summarised
from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.mlflow_store.run_result import MlflowStatus, RunResult, now, params_of, texts_of
from benchmarks.redaction import redacted
from benchmarks.runs.messages import Finished, NoRoom
from benchmarks.suite.suite import PlannedRun, Task
from fl_core.diagnostics.diagnosis import summary
from fl_core.problems.problem import Problem
from fl_core.recorded_names import (
    ARRIVALS,
    CLIENTS,
    CURVE,
    DIAGNOSED,
    DIAGNOSTICS,
    PHASES,
    TO_TARGET,
    TRACEBACK,
    MlflowTag,
    Name,
    Status,
    Tag,
    Total,
)
from fl_core.recording.recorder import Record
from fl_core.time_to_target import first_meeting


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
            tables={**tables(record, task.curve_only), **(more or {})},
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
        all_tags: dict[Tag, Any] = {
            **self.tags,
            **(tags or {}),
            Tag.KIND: task.kind,
            Tag.KEY: task.key,
            Tag.SUITE: task.suite,
            Tag.STATUS: status,
            Tag.REASON: reason,
            Tag.WALL_SECONDS: round(self.seconds, 3),
        }
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


def tables(record: Record, curve_only: bool = False) -> dict[str, dict[str, Any]]:
    """Return a run's tables, or only the curve, by column."""
    if curve_only:
        return {CURVE.name: _by_column(record.curve)}
    tables: dict[str, dict[str, Any]] = {
        CURVE.name: _by_column(record.curve),
        ARRIVALS.name: {name: np.asarray(column) for name, column in record.arrivals.items()},
        CLIENTS.name: record.clients,
    }
    return tables | {DIAGNOSTICS.name: _by_column(record.diagnostics)} if record.diagnostics else tables


def _by_column(rows: list[dict[str, float]]) -> dict[str, list[float | None]]:
    columns = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in columns}


def total_metrics(record: Record) -> dict[str, float]:
    """Return metrics of a whole run: local steps, bytes kept, staleness, means of diagnostics.

    Counts of updates that were not finite and of misread messages are present only above 0.
    """
    metrics: dict[str, float] = {Total.LOCAL_STEPS: float(record.local_steps)}
    if sizes := record.kept_bytes:
        metrics[Total.KEPT_BY_SERVER] = float(sizes["server"])
        metrics[Total.KEPT_BY_CLIENTS] = float(sizes["clients"])
    staleness = np.asarray(record.arrivals[Name.STALENESS])
    if len(staleness):
        metrics |= {
            Total.STALENESS_MEAN: float(staleness.mean()),
            Total.STALENESS_MAX: float(staleness.max()),
        }
    counts = {Total.NON_FINITE: record.non_finite, Total.MISREAD: record.misread}
    metrics |= {name: float(count) for name, count in counts.items() if count}
    if record.server_busy is not None and record.server_wait is not None:
        metrics |= {Total.SERVER_BUSY: record.server_busy, Total.SERVER_WAIT: record.server_wait}
    if not record.clients:
        return metrics
    if Name.DOWNLOAD in record.clients:
        metrics |= transfer_share(record.clients)
    diagnosed = summary(record.diagnostics, len(record.clients[Name.CLIENT]))
    return metrics | {f"{DIAGNOSED}{name}": value for name, value in diagnosed.items()}


def transfer_share(clients: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the share of transfers in the clients' working time; empty if no client worked."""
    download, computation, upload = (float(np.sum(clients[phase])) for phase in PHASES)
    total = download + computation + upload
    return {Total.TRANSFER_SHARE: (download + upload) / total} if total else {}


def target_metrics(record: Record, problem: Problem) -> dict[str, float]:
    """Return the clocks at the first evaluation to meet the target; empty without any."""
    if problem.target is None:
        return {}
    values = [row.get(problem.metric, nan) for row in record.curve]
    first = first_meeting(values, problem.target, problem.ranking.sign > 0, problem.target_marks)
    if first is None:
        return {}
    row = record.curve[first]
    return {metric: float(row[clock]) for metric, clock in TO_TARGET.items() if clock in row}
