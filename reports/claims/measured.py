"""Metrics of claims that no column holds: functions of the runs of one seed.

An entry names one as its `metric`, `reports.claims.measured:kept_bytes`. Of training losses (fp/*,
sp/*) it reads the last row only, unless the scenario says `evaluate: clients`.
"""

import math
from collections.abc import Sequence

import numpy as np

from fl_core.diagnostics.volatility import volatility
from fl_core.metrics import FP_LOSS
from fl_core.schema import Name, Total
from reports.records.runs import RecordedRun


def kept_bytes(runs: Sequence[RecordedRun]) -> float:
    """Bytes kept at the end, at the server and at the clients, where ACE's incremental form has its cache."""
    (run,) = runs
    return run.totals[Total.KEPT_BY_SERVER] + run.totals[Total.KEPT_BY_CLIENTS]


def zigzag(runs: Sequence[RecordedRun]) -> float:
    """Standard deviation of the steps of the accuracy over the second half of a run's evaluations."""
    (run,) = runs
    accuracy = run.files.curve["test/accuracy"].tolist()
    return volatility(accuracy[len(accuracy) // 2 :]).step_std


def slowest_accuracy(runs: Sequence[RecordedRun]) -> float:
    """Accuracy of a recorded run's last model on the data of the slowest client."""
    clients = runs[0].files.clients
    return float(clients["accuracy"][clients[Name.MEAN_TIME].argmax()])


def other_accuracy(runs: Sequence[RecordedRun]) -> float:
    """Mean of that accuracy over all other clients."""
    clients = runs[0].files.clients
    return float(np.nanmean(np.delete(clients["accuracy"], clients[Name.MEAN_TIME].argmax())))


def unusable_share(runs: Sequence[RecordedRun]) -> float:
    """Share of recorded runs, one per pair of η_l and K, that diverge or end above twice their best loss."""
    finals = [float(run.files.curve[FP_LOSS][-1]) if run.status.finite else math.inf for run in runs]
    return sum(final > 2 * min(finals) for final in finals) / len(finals)
