"""The precision of products in training: float32, or fewer bits where a user asks for speed.

Models, updates, and what is evaluated stay float32; gradients are float32 with the rounding of the products.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import torch

from fl_core.problems.problem import Impossible

# Bits of the mantissa of what is multiplied: 23, 10 (in a GPU's tensor cores, which take float32), 7.
Precision = Literal["float32", "tf32", "bfloat16"]


def forward(precision: Precision, device: torch.device) -> AbstractContextManager[Any]:
    """Where a network's outputs are computed; the way back has the types of the way there."""
    if precision != "bfloat16":
        return nullcontext()
    # Casts are not kept: stacked by `vmap`, they would outlive the tensors that they were made of.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


def gradients(precision: Precision, device: torch.device) -> AbstractContextManager[Any]:
    """Where gradients are computed, there and back; Impossible for tf32 on a CPU, which has none."""
    if precision != "tf32":
        return nullcontext()
    if device.type == "cpu":
        raise Impossible("precision tf32 needs a GPU: use --device cuda, or precision bfloat16 on a CPU")
    return _tf32()


@contextmanager
def _tf32() -> Iterator[None]:
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = True
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before
