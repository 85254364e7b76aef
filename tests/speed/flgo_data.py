"""The configuration of a benchmark of FLGo, which copies this file: random images, one linear layer."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

CLIENTS, SAMPLES = 100, 640

_random = torch.Generator().manual_seed(0)
_inputs = torch.randn((CLIENTS * SAMPLES, 784), generator=_random)
_labels = torch.randint(0, 10, (CLIENTS * SAMPLES,), generator=_random)

train_data = TensorDataset(_inputs, _labels)
test_data = TensorDataset(_inputs[:100], _labels[:100])


def get_model() -> nn.Module:
    """Logistic regression."""
    return nn.Linear(784, 10)


def data_to_device(batch: list[torch.Tensor], device: torch.device) -> tuple[torch.Tensor, ...]:
    """A mini-batch where the model is."""
    return tuple(part.to(device) for part in batch)


def compute_loss(
    model: nn.Module, batch: list[torch.Tensor], device: torch.device
) -> dict[str, torch.Tensor]:
    """Cross entropy."""
    inputs, labels = data_to_device(batch, device)
    return {"loss": cross_entropy(model(inputs), labels)}


def eval(model: nn.Module, batches: object, device: torch.device) -> dict[str, float]:  # noqa: A001 - its name there
    """Nothing: evaluations are not compared."""
    return {"loss": 0.0}
