"""Tags, metrics and tables of a run, as MLflow and the reports have them at the end of the run.

`Recording` (`runs/run_jobs.py`) calls the functions. Tags that are known beforehand are the `tags` of the
tasks (`suite/suite.py`) and `provenance`.

Fixed: names of metrics, tags and tables (`fl_core/recorded_names.py`), which are stored, and read by reports.
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np

from benchmarks.suite.suite import Task
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
    Name,
    Status,
    Tag,
    Total,
)
from fl_core.recording.recorder import Record
from fl_core.time_to_target import first_meeting


def tags_of_end(task: Task, status: Status, reason: str, seconds: float) -> dict[Tag, Any]:
    """Return the tags of an ended task that took the given seconds in all attempts."""
    return {
        Tag.KIND: task.kind,
        Tag.KEY: task.key,
        Tag.SUITE: task.suite,
        Tag.STATUS: status,
        Tag.REASON: reason,
        Tag.WALL_SECONDS: round(seconds, 3),
    }


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
