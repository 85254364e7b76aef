"""The precision of products in training: float32, or fewer bits for speed.

Models, updates and evaluations stay float32; gradients are float32 with the products' rounding errors.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import torch

from fl_core.problems.problem import InvalidProblemError

# Mantissa bits of the factors: 23, 10 (in a GPU's tensor cores, which take float32), 7.
Precision = Literal["float32", "tf32", "bfloat16"]


def forward(precision: Precision, device: torch.device) -> AbstractContextManager[Any]:
    """Return a context for the forward pass; the backward pass then uses equal types."""
    if precision != "bfloat16":
        return nullcontext()
    # Casts are not cached: under `vmap` they would outlive the tensors that they were made from.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


def gradients(precision: Precision, device: torch.device) -> AbstractContextManager[Any]:
    """Return a context for forward and backward passes.

    Raises:
        InvalidProblemError: tf32 on a CPU, which lacks it.
    """
    if precision != "tf32":
        return nullcontext()
    if device.type == "cpu":
        raise InvalidProblemError(
            "precision tf32 needs a GPU: use --device cuda, or precision bfloat16 on a CPU"
        )
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
