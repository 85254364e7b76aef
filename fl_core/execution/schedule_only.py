"""Execution without training, for the schedule of a run alone: every update is zero.

`asyncfl show` estimates the number of updates of a run with it (`benchmarks/runs/estimate.py`).

Free: only an estimate depends on it.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fl_core.execution.execution import ComputeRequest

NUMBER = (int, float)  # a tuple, which `isinstance` reads faster than a union


class Zeros(Tensor):
    """Zeros [d] that are scaled and added without arithmetic, in a tenth of the time; else a plain tensor.

    Nothing is copied: x + 0 is x itself. So a sum must not be written into, other than by `+=`.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __mul__(self, other: Any) -> Tensor:
        return self if isinstance(other, NUMBER) else super().__mul__(other)

    def __truediv__(self, other: Any) -> Tensor:
        return self if isinstance(other, NUMBER) else super().__truediv__(other)

    def __add__(self, other: Any) -> Tensor:
        return self if type(other) is Zeros else super().__add__(other)

    def __radd__(self, other: Any) -> Tensor:
        return other if type(other) is Tensor and other.shape == self.shape else super().__radd__(other)

    __rmul__, __iadd__ = __mul__, __add__


class ScheduleOnly:
    """Execution that makes every update zero; data and models are not touched.

    The events equal those of a real run unless the strategy's sends depend on the content of updates.
    """

    label = "schedule only"

    def __init__(self) -> None:
        self._zeros: dict[int, Tensor] = {}  # by d

    def execute(self, requests: Sequence[ComputeRequest]) -> list[int]:
        """Fill in zeros."""
        for request in requests:
            job, d = request.job, request.world.d
            if d not in self._zeros:
                self._zeros[d] = torch.zeros_like(job.start).as_subclass(Zeros)
            job.delta = job.gradient = self._zeros[d]
        return [1] * len(requests)
