"""The interface of models: `Model`, a recipe that builds a network for inputs of a shape.

A problem with a network (`Modelled`) has one in its field `model`; a user's own is named
`package.module:Class`.

Fixed: names of methods and fields, which users' networks override. `pooled_steps` and `pooled_lr` only affect
centralised baselines.
"""

from typing import ClassVar

from torch import nn

from fl_core.parts import Part


class Model(Part):
    """The recipe of a network for inputs of a given shape."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.problems.models",)
    pooled_steps: ClassVar[int] = 2000  # of the centralised baseline: Adam on mini-batches of 128,
    pooled_lr: ClassVar[float] = 1e-3  # from this rate down to 0
    # Whether images are stored channels last: equal results up to rounding; True if measured to be faster on
    # a CPU (docs/speed.md).
    channels_last: ClassVar[bool] = False

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        """Return the reason why the network cannot be built, or None.

        Args:
            shape: One input's: (channels, height, width), or (length,).
            classes: Outputs of the network.
        """
        return None

    def lacks(self) -> str | None:
        """Return the missing package of the network, with the command for installing, or None."""
        return None

    def origin(self) -> str:
        """Return the source of the first parameters, for the record; empty if drawn at random, as usual."""
        return ""

    def keyed(self) -> bool:
        """Return whether the network is random in training, and takes keys [B] besides the inputs."""
        return False

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Return the network: inputs [B, *shape] → logits [B, classes]."""
        raise NotImplementedError
