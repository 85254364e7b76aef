"""Metrics of a finished run besides its curve: totals of the whole run, and the time to its target."""

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np

from fl_core.diagnostics.diagnosis import summary
from fl_core.problems.problem import Problem
from fl_core.recording.recorder import Record
from fl_core.schema import DIAGNOSED, PHASES, TO_TARGET, Name, Total
from fl_core.time_to_target import first_meeting


def total_metrics(record: Record) -> dict[str, float]:
    """Return metrics of a whole run: local steps, bytes kept, staleness, means of diagnostics.

    Numbers of updates that were not finite and of misread messages are among them, if there were any.
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
