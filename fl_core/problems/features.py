"""CIFAR as features of a frozen pretrained network, for training a linear head."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from zipfile import BadZipFile

import numpy as np
import torch
from pydantic import SerializeAsAny
from torch import Tensor

from fl_core.problems.cifar import CIFAR10, CIFAR100
from fl_core.problems.data import pretrained
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import DataDamagedError, located, places
from fl_core.problems.models.linear import Logistic
from fl_core.problems.models.model import Model
from fl_core.problems.supervised import Classification

FOLDER = "features"  # of the files, beside the data sets
IMAGES = {"train": 50_000, "test": 10_000}


class Features(Classification):
    """Base of problems on frozen features: an image is a vector, of mean square 1 over the training data.

    The features are computed from the images when they are first used, and kept in the data folder.
    """

    samples: ClassVar[int] = IMAGES["train"]
    images: ClassVar[type[Classification]]

    model: SerializeAsAny[Model] = Logistic()

    def load(self) -> Data:
        file = f"{self.name}.npz"
        if pretrained.installed() and not any((place / FOLDER / file).exists() for place in places()):
            pretrained.prepare(self.name, self.images().load, self.shape[0], places()[0] / FOLDER / file)
        remedy = "install the extra [features], with which it is computed from the images"
        folder = located(self.name, FOLDER, [file], remedy=remedy)
        return _data(self.name, self.classes, self.shape[0], folder / file)


class CIFAR10Features(Features):
    """CIFAR-10 as 64 features of EfficientNet-Lite0 trained on ImageNet, under a linear head.

    The head has 650 parameters and reaches 83.9 % when trained centrally. The network: Tan and Le, ICML 2019,
    and its Lite variant; the features are the leading principal components of its last feature map's mean.
    """

    name: ClassVar[str] = "cifar10_features"
    images: ClassVar[type[Classification]] = CIFAR10
    shape: ClassVar[tuple[int, ...]] = (64,)


class CIFAR100Features(Features):
    """CIFAR-100 as 128 features of EfficientNet-Lite0 trained on ImageNet, under a linear head.

    The head has 12,900 parameters and reaches 64.8 % when trained centrally. Features as of cifar10_features.
    """

    name: ClassVar[str] = "cifar100_features"
    images: ClassVar[type[Classification]] = CIFAR100
    classes: ClassVar[int] = 100
    shape: ClassVar[tuple[int, ...]] = (128,)


@functools.cache
def _data(name: str, classes: int, size: int, path: Path) -> Data:
    train, y_train, test, y_test = _arrays(name, path, size)
    # In float64, whose sum rounds to the same float32 whatever the number of threads
    spread = train.double().square().mean().sqrt().float()
    return Data(train / spread, y_train, test / spread, y_test, classes)


def _arrays(name: str, path: Path, size: int) -> Iterator[Tensor]:
    """Return features [N, size] and labels [N] of the training images, and of the test images."""
    try:
        with np.load(path) as stored:
            for half, count in IMAGES.items():
                values, labels = stored[half] * (stored["scale"] / 127), stored[f"{half}_labels"]
                if values.shape != (count, size) or labels.shape != (count,):
                    raise ValueError(f"{half}: {values.shape[0]} images of {values.shape[1:]} features")
                yield from (torch.from_numpy(values), torch.from_numpy(labels.astype(np.int64)))
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise DataDamagedError(
            f"{name}: {path} is damaged ({error}); delete it, and it is computed again from the images"
        ) from None
