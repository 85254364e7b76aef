"""Classification problems: labelled data, and a network with a logit for each class."""

from fl_core.metrics import ACCURACY, LOSS, Metric
from fl_core.problems.supervised import Modelled


class Classification(Modelled):
    """Base of classification problems: a subclass defines the shape of the data and `load`."""

    metric: str = "test/accuracy"

    def metrics(self) -> tuple[Metric, ...]:
        return ACCURACY, LOSS

    def client_metrics(self) -> tuple[Metric, ...]:
        return (ACCURACY,)
