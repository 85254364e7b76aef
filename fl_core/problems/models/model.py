"""The model interface: a network as a recipe. A user's own network is named `package.module:Class`."""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from fl_core.parts import Part


class Model(Part):
    """A network for inputs of a given shape, as a recipe."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.problems.models",)
    pooled_steps: ClassVar[int] = 2000  # of the centralised baseline: Adam on mini-batches of 128,
    pooled_lr: ClassVar[float] = 1e-3  # from this rate down to 0
    # Whether inputs are images stored channels last: the same results up to rounding; true where this was
    # measured to be faster on a CPU (docs/speed.md).
    channels_last: ClassVar[bool] = False

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        """One sentence if the network cannot be built for inputs of `shape` (channels, height, width)."""
        return None

    def lacks(self) -> str | None:
        """One sentence if this machine lacks a package that the network needs, and how to get it."""
        return None

    def origin(self) -> str:
        """Where the first parameters come from, for the record; empty: drawn at random, as usual."""
        return ""

    def keyed(self) -> bool:
        """Whether the network is random in training: then it takes keys [B] besides the inputs."""
        return False

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """The network: inputs [B, *shape] → logits [B, classes]."""
        raise NotImplementedError
