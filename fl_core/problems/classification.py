"""Classification problems: labelled data, and a network that outputs a logit for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fl_core.metrics import ACCURACY, LOSS, Metric
from fl_core.problems.supervised import Modelled

if TYPE_CHECKING:
    from torch import nn

    from fl_core.problems.training.task import Task


class Classification(Modelled):
    """Base of classification problems: a subclass defines the shape of the data and `load`."""

    metric: str = "test/accuracy"

    def metrics(self) -> tuple[Metric, ...]:
        return ACCURACY, LOSS

    def client_metrics(self) -> tuple[Metric, ...]:
        return (ACCURACY,)

    def task_of(self, network: nn.Module) -> Task:
        from fl_core.problems.training.tasks import Classifier

        return Classifier(network, self.model.pooled_lr)
