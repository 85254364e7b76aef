"""Residual networks for small images, with GroupNorm."""

from functools import partial
from typing import Any, ClassVar

from pydantic import Field, field_validator
from torch import nn

from fl_core.parts import Count
from fl_core.problems.models.convolutional import Convolutional


class ResNet18(Convolutional):
    """ResNet-18, 3×3 stem, no max-pooling, GroupNorm (He et al., CVPR 2016; Hsieh et al., ICML 2020).

    torchvision's network except for the stem, made for images 32×32. The code published with ACE uses
    BatchNorm, not offered here: a server would have to average running statistics, which are not gradient
    steps (that code's ACE does not send them, its CA2FL turns them into negative variances), and the output
    for a data point would depend on the rest of its mini-batch.
    """

    name: ClassVar[str] = "resnet18"
    channels_last: ClassVar[bool] = False  # GroupNorm loses what the convolutions gain
    least: ClassVar[int] = 8

    groups: Count = 32  # of channels, in every GroupNorm; a divisor of 64

    @field_validator("groups")
    @classmethod
    def _divides(cls, groups: int) -> int:
        if 64 % groups:
            raise ValueError(f"must be a divisor of 64, the lowest number of channels, not {groups}")
        return groups

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        from fl_core.torchvision_repair import repair

        repair()
        from torchvision.models import resnet18

        norm: Any = partial(nn.GroupNorm, self.groups)
        network = resnet18(num_classes=classes, norm_layer=norm)
        network.conv1 = nn.Conv2d(shape[0], 64, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
        network.maxpool = nn.Identity()
        return network


class ResNet8(Convolutional):
    """ResNet of depth 8 for images 32×32, GroupNorm (He et al., CVPR 2016, §4.2 with n = 1).

    conv – three blocks of two 3×3 convolutions with `width`, 2 · `width` and 4 · `width` channels, the last
    two at half the height and width – mean over the image – classes. Where a block changes the shape, its
    shortcut is a 1×1 convolution (option B); groups have 8 channels. 78,042 parameters on colour images with
    10 classes.
    """

    name: ClassVar[str] = "resnet8"
    channels_last: ClassVar[bool] = True
    least: ClassVar[int] = 8

    width: Count = Field(16, multiple_of=8)  # channels of the first block

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        from fl_core.torchvision_repair import repair

        repair()
        from torchvision.models.resnet import BasicBlock

        def norm(channels: int) -> nn.Module:
            return nn.GroupNorm(channels // 8, channels)

        def block(inputs: int, channels: int) -> nn.Module:
            stride = channels // inputs
            shortcut = nn.Sequential(nn.Conv2d(inputs, channels, 1, stride, bias=False), norm(channels))
            return BasicBlock(inputs, channels, stride, shortcut if stride > 1 else None, norm_layer=norm)

        first = self.width
        network = nn.Sequential(
            *(nn.Conv2d(shape[0], first, 3, padding=1, bias=False), norm(first), nn.ReLU()),
            *(block(first, first), block(first, 2 * first), block(2 * first, 4 * first)),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * first, classes)),
        )
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        return network
