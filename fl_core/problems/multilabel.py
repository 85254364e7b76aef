"""A problem with several binary labels for each data point: attributes of handwritten digits."""

import functools
from typing import ClassVar

import torch
from pydantic import SerializeAsAny
from torch import Tensor

from fl_core.metrics import LOSS, Metric
from fl_core.problems.data.data import Data
from fl_core.problems.digits import Digits
from fl_core.problems.models.linear import Affine
from fl_core.problems.models.model import Model
from fl_core.problems.supervised import Modelled

EXACT_MATCH = Metric("test/exact_match", "Test exact match", higher=True, share=True)
LABEL_ACCURACY = Metric("test/accuracy", "Test accuracy over labels", higher=True, share=True)
F1 = Metric("test/f1", "Test F1, mean over labels", higher=True, share=True)

ATTRIBUTES = {  # attribute → digits with the attribute
    "even": (0, 2, 4, 6, 8),
    "at least five": (5, 6, 7, 8, 9),
    "prime": (2, 3, 5, 7),
    "multiple of three": (0, 3, 6, 9),
    "encloses a hole": (0, 6, 8, 9),
}


class DigitAttributes(Modelled):
    """Five attributes of handwritten digits 8×8, for example even and prime, 1,438 + 359 (after UCI, 1998).

    It shows a problem with several labels for each image, without a download. The 1,438 training and 359 test
    images are those of `digits`; the attributes are derived here. Partitions by label use the digit.
    """

    name: ClassVar[str] = "digit_attributes"
    shape: ClassVar[tuple[int, ...]] = (1, 8, 8)
    samples: ClassVar[int] = Digits.samples
    task_name: ClassVar[str] = "MultiLabel"

    metric: str = "test/exact_match"
    model: SerializeAsAny[Model] = Affine()

    @property
    def outputs(self) -> int:
        return len(ATTRIBUTES)

    def metrics(self) -> tuple[Metric, ...]:
        return EXACT_MATCH, LABEL_ACCURACY, LOSS, F1

    def client_metrics(self) -> tuple[Metric, ...]:
        return (EXACT_MATCH,)

    def load(self) -> Data:
        return _attributes()


@functools.cache
def _attributes() -> Data:
    """Return the images of `digits` with attributes as targets."""
    data = Digits().load()
    halves = data.x_train, attributes(data.y_train), data.x_test, attributes(data.y_test)
    scale = data.mean, data.std
    return Data(*halves, data.classes, *scale, kind_train=data.y_train, kind_test=data.y_test)


def attributes(digits: Tensor) -> Tensor:
    """Return the attributes of each digit [N, attributes], 0 or 1, float32."""
    table = torch.zeros(10, len(ATTRIBUTES))
    for column, members in enumerate(ATTRIBUTES.values()):
        table[list(members), column] = 1
    return table[digits]
