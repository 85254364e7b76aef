"""The network for CIFAR of Generalized AsyncSGD."""

from itertools import pairwise
from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from fl_core.problems.models.convolutional import Convolutional
from fl_core.problems.models.layers import KeyedDropout


class AlahyaneCNN(Convolutional):
    """Three blocks of two 3×3 convolutions, GroupNorm, dropout (Alahyane et al., 2025).

    Three times conv – norm – ReLU – conv – norm – ReLU – pool 2 – dropout, with 32, 64 and 128 channels, then
    128 – classes. The convolutions keep height and width. Groups have 8 channels (the paper gives none).
    """

    name: ClassVar[str] = "alahyane_cnn"
    least: ClassVar[int] = 8

    dropout: float = Field(0.25, ge=0, lt=1)  # share of units left out in training

    def keyed(self) -> bool:
        return self.dropout > 0

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return Blocks(shape, classes, self.dropout)


class Blocks(nn.Module):
    """The network: images [B, channels, height, width] and dropout keys [B] → logits [B, classes]."""

    def __init__(self, shape: tuple[int, ...], classes: int, share: float) -> None:
        super().__init__()
        widths = (shape[0], 32, 64, 128)
        self.blocks = nn.ModuleList(_block(*pair) for pair in pairwise(widths))
        self.drops = nn.ModuleList(KeyedDropout(share, layer) for layer in range(len(self.blocks)))
        pixels = (shape[1] // 8) * (shape[2] // 8)
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(128 * pixels, 128), nn.ReLU(), nn.Linear(128, classes)
        )

    def forward(self, inputs: Tensor, keys: Tensor | None = None) -> Tensor:
        for block, drop in zip(self.blocks, self.drops, strict=True):
            inputs = drop(block(inputs), keys)
        return self.head(inputs)


def _block(channels: int, width: int) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(channels, width, 3, padding=1), nn.GroupNorm(width // 8, width), nn.ReLU()),
        *(nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(width // 8, width), nn.ReLU()),
        nn.MaxPool2d(2),
    )
