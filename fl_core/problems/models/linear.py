"""Networks with a single layer."""

from math import prod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from fl_core.problems.models.model import Model


class Logistic(Model):
    """Multinomial logistic regression, a convex problem (Fraboni et al., JMLR 2023, §5.2.1)."""

    name: ClassVar[str] = "logistic"
    pooled_lr: ClassVar[float] = 3e-3

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


class Affine(Model):
    """Affine layer on plain numbers: linear regression, or logistic regression for many labels."""

    name: ClassVar[str] = "affine"
    pooled_lr: ClassVar[float] = 1e-2

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


class Linear(Model):
    """Multinomial logistic regression on log-scaled word counts of unit length (Joachims, ECML 1998)."""

    name: ClassVar[str] = "linear"
    pooled_lr: ClassVar[float] = 1e-2

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        if len(shape) != 1:
            return f"model linear takes word counts, not inputs of {'×'.join(map(str, shape))}"
        return None

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(UnitLength(), nn.Linear(prod(shape), classes))


class UnitLength(nn.Module):
    """A layer without parameters: counts [B, F] → log(1 + count), scaled to unit length."""

    def forward(self, inputs: Tensor) -> Tensor:
        return normalize(torch.log1p(inputs), dim=-1)
