"""Networks, by name. A user's own is named `package.module:Class`, a subclass of Model."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from torch import nn

from fl_core.parts import Part


class Model(Part):
    """A network for inputs of a given shape, as a recipe."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.problems.models",)
    pooled_steps: ClassVar[int] = 2000  # of the centralised baseline: Adam on mini-batches of 128,
    pooled_lr: ClassVar[float] = 1e-3  # from this rate down to 0

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        """One sentence if the network cannot be built for inputs of `shape` (channels, height, width)."""
        return None

    def lacks(self) -> str | None:
        """One sentence if this machine lacks what the network is built with, and how to get it."""
        return None

    def origin(self) -> str:
        """Where the first parameters come from, for the record; empty: drawn at random, as usual."""
        return ""

    def keyed(self) -> bool:
        """Whether the network draws at random in training: then it takes keys [B] beside the inputs."""
        return False

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """The network: inputs [B, *shape] → logits [B, classes]."""
        raise NotImplementedError


class Logistic(Model):
    """Multinomial logistic regression, a convex problem (Fraboni et al., JMLR 2023, §5.2.1)."""

    name: ClassVar[str] = "logistic"
    pooled_lr: ClassVar[float] = 3e-3

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


class McMahanCNN(Model):
    """Two 5×5 convolutions and a layer of 512, 1.66 M parameters (McMahan et al., AISTATS 2017, §3).

    conv 32 – pool 2 – conv 64 – pool 2 – 512 – classes, ReLU between; the convolutions keep height and width:
    on images 28×28 that gives the paper's 1,663,370 parameters.
    """

    name: ClassVar[str] = "cnn"
    pooled_steps: ClassVar[int] = 1000

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        if len(shape) != 3 or min(shape[1:]) < 4:
            size = "×".join(map(str, shape))
            return f"model cnn halves height and width twice: it needs images of 4×4 or more, not {size}"
        return None

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        return nn.Sequential(
            *(nn.Conv2d(channels, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(64 * (height // 4) * (width // 4), 512), nn.ReLU()),
            nn.Linear(512, classes),
        )
