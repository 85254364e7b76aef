"""Accuracy of the last model on the data of the slowest client, and of the others (Alahyane et al., 2025)."""

from collections.abc import Sequence

import numpy as np

from fl_core.schema import Name
from reports.records.runs import RecordedRun


def slowest_accuracy(runs: Sequence[RecordedRun]) -> float:
    """Accuracy of a recorded run's last model on the data of the slowest client."""
    clients = runs[0].files.clients
    return float(clients["accuracy"][clients[Name.MEAN_TIME].argmax()])


def other_accuracy(runs: Sequence[RecordedRun]) -> float:
    """Mean of that accuracy over all other clients."""
    clients = runs[0].files.clients
    return float(np.nanmean(np.delete(clients["accuracy"], clients[Name.MEAN_TIME].argmax())))
