"""Convolutional networks: the papers' networks, as described, and a small network."""

from typing import ClassVar, Literal

from torch import nn

from fl_core.problems.models.model import Model


class Convolutional(Model):
    """Base of networks for images of a minimum height and width."""

    least: ClassVar[int]
    pooled_steps: ClassVar[int] = 1000
    channels_last: ClassVar[bool] = True

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        if len(shape) != 3 or min(shape[1:]) < self.least:
            size = "×".join(map(str, shape))
            return f"model {self.reference()} needs images of {self.least}×{self.least} or more, not {size}"
        return None


class McMahanCNN(Convolutional):
    """Two 5×5 convolutions and a layer of 512, 1.66 M parameters (McMahan et al., AISTATS 2017, §3).

    conv 32 – pool 2 – conv 64 – pool 2 – 512 – classes, ReLU between; the convolutions keep height and width:
    on images 28×28 that gives the paper's 1,663,370 parameters.
    """

    name: ClassVar[str] = "cnn"
    least: ClassVar[int] = 4

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        return nn.Sequential(
            *(nn.Conv2d(channels, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(64 * (height // 4) * (width // 4), 512), nn.ReLU()),
            nn.Linear(512, classes),
        )


class FraboniCNN(Convolutional):
    """Three 3×3 convolutions and a layer of 64 (Fraboni et al., JMLR 2023, from the code).

    conv 32 – pool 2 – conv 64 – pool 2 – conv 64 – 64 – classes, ReLU between, no padding: on images 32×32
    the layer of 64 has 1,024 inputs. The paper says two convolutions; `layers: 2` leaves out the third.
    """

    name: ClassVar[str] = "fraboni_cnn"
    least: ClassVar[int] = 18

    layers: Literal[2, 3] = 3  # convolutions

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        height, width = (((side - 2) // 2 - 2) // 2 for side in (height, width))
        layers: list[nn.Module] = [
            *(nn.Conv2d(channels, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
        ]
        if self.layers == 3:
            layers += [nn.Conv2d(64, 64, 3), nn.ReLU()]
            height, width = height - 2, width - 2
        return nn.Sequential(
            *layers,
            *(nn.Flatten(), nn.Linear(64 * height * width, 64), nn.ReLU()),
            nn.Linear(64, classes),
        )


class AnarchicCNN(Convolutional):
    """Two 5×5 convolutions, layers of 512 and 128 (Yang et al., Anarchic FL, ICML 2022, Table 1).

    conv 32 – pool 2 – conv 64 – pool 2 – 512 – 128 – classes, ReLU between, no padding. The table prints
    1,024 inputs of the layer of 512, which is right for images 28×28; for 32×32 there are 1,600.
    """

    name: ClassVar[str] = "afl_cnn"
    least: ClassVar[int] = 16

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        height, width = (((side - 4) // 2 - 4) // 2 for side in (height, width))
        return nn.Sequential(
            *(nn.Conv2d(channels, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(64 * height * width, 512), nn.ReLU()),
            *(nn.Linear(512, 128), nn.ReLU()),
            nn.Linear(128, classes),
        )


class CNN7(Convolutional):
    """Two 7×7 convolutions, 20 and 40 channels (Alahyane et al., Generalized AsyncSGD, 2025).

    conv 20 – conv 40 – pool 2 – classes, ReLU between, no padding: 2,560 inputs of the last layer on 28×28.
    """

    name: ClassVar[str] = "cnn7"
    least: ClassVar[int] = 14

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        height, width = ((side - 12) // 2 for side in (height, width))
        return nn.Sequential(
            *(nn.Conv2d(channels, 20, 7), nn.ReLU()),
            *(nn.Conv2d(20, 40, 7), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(40 * height * width, classes)),
        )


class SmallCNN(Convolutional):
    """Two 5×5 convolutions of stride 2, 8 and 16 channels: small enough for thousands of runs on a CPU.

    conv 8 – conv 16 – classes, ReLU between, no padding: 5,994 parameters on images 28×28.
    """

    name: ClassVar[str] = "small_cnn"
    least: ClassVar[int] = 13
    channels_last: ClassVar[bool] = False

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, *sides = shape
        height, width = (((side - 3) // 2 - 3) // 2 for side in sides)
        return nn.Sequential(
            *(nn.Conv2d(channels, 8, 5, stride=2), nn.ReLU()),
            *(nn.Conv2d(8, 16, 5, stride=2), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(16 * height * width, classes)),
        )
