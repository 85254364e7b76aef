"""CIFAR: 32×32 colour images of 10 or 100 classes."""

import functools
import pickle
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor
from torch.nn.functional import interpolate

from fl_core import file_reading
from fl_core.parts import FieldError
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import check_md5, located
from fl_core.problems.supervised import Classification

MOST_BYTES = 200_000_000  # of a file; the largest has 155,249,918


class CIFAR(Classification):
    """Base of CIFAR-10 and CIFAR-100: resizing and augmentation of the images."""

    samples: ClassVar[int] = 50_000
    source: ClassVar[str]  # name in torchvision
    folder: ClassVar[str]  # of the files
    # Files of training and of test images, and the MD5 of each as published; torchvision checks the same.
    halves: ClassVar[tuple[dict[str, str], dict[str, str]]]
    labels: ClassVar[str]  # their name in a file
    mean: ClassVar[tuple[float, ...]]  # of each channel, from 0 to 1
    std: ClassVar[tuple[float, ...]]

    resize: Literal[16] | None = None  # height and width instead of 32
    augment: bool = False  # in training, crop with padding 4 and flip, each data point by its own key

    @model_validator(mode="after")
    def _crops_fit(self) -> Self:
        """Refuse augmentation of resized images."""
        if self.augment and self.resize:
            raise FieldError("augment", "crops images of 32×32 only: leave out augment or resize")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.resize or 32, self.resize or 32)

    def augments(self) -> bool:
        return self.augment

    def load(self) -> Data:
        files = [file for half in self.halves for file in half]
        return _data(type(self), located(self.source, self.folder, files, published=True), self.resize)


class CIFAR10(CIFAR):
    """CIFAR-10: ten classes, 50,000 + 10,000 (Krizhevsky, technical report, 2009).

    With `resize: 16` and model logistic it is the convex CIFAR10* of Fraboni et al. (JMLR 2023), as in
    their code; with `augment` images are cropped and flipped as in Alahyane et al. (2025).
    """

    name: ClassVar[str] = "cifar10"
    source: ClassVar[str] = "CIFAR10"
    folder: ClassVar[str] = "cifar-10-batches-py"
    halves: ClassVar[tuple[dict[str, str], dict[str, str]]] = (
        {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        },
        {"test_batch": "40351d587109b95175f43aff81a1287e"},
    )
    labels: ClassVar[str] = "labels"
    mean: ClassVar[tuple[float, ...]] = (0.4914, 0.4822, 0.4465)
    std: ClassVar[tuple[float, ...]] = (0.2470, 0.2435, 0.2616)


class CIFAR100(CIFAR):
    """CIFAR-100: a hundred classes, 50,000 + 10,000 (Krizhevsky, technical report, 2009).

    With `resize: 16` and model logistic it is the convex CIFAR100* of Fraboni et al. (JMLR 2023).
    """

    name: ClassVar[str] = "cifar100"
    classes: ClassVar[int] = 100
    source: ClassVar[str] = "CIFAR100"
    folder: ClassVar[str] = "cifar-100-python"
    halves: ClassVar[tuple[dict[str, str], dict[str, str]]] = (
        {"train": "16019d7e3df5f24257cddd939b257f8d"},
        {"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    )
    labels: ClassVar[str] = "fine_labels"
    mean: ClassVar[tuple[float, ...]] = (0.5071, 0.4865, 0.4409)
    std: ClassVar[tuple[float, ...]] = (0.2673, 0.2564, 0.2762)


@functools.cache
def _data(problem: type[CIFAR], folder: Path, size: int | None) -> Data:
    """Return both halves, resized if requested; read once per process."""
    loaded = [_load(problem.source, folder, files, problem.labels) for files in problem.halves]
    (x_train, y_train), (x_test, y_test) = loaded
    if size:
        x_train, x_test = resized(x_train, size), resized(x_test, size)
    scale = tuple(255 * m for m in problem.mean), tuple(255 * s for s in problem.std)
    return Data(x_train, y_train, x_test, y_test, problem.classes, *scale)


def resized(images: Tensor, size: int) -> Tensor:
    """Return byte images [N, C, H, W] resized bilinearly with antialiasing, as torchvision's Resize does."""
    pieces = [
        interpolate(piece.float(), (size, size), mode="bilinear", antialias=True, align_corners=False)
        for piece in torch.split(images, 5000)
    ]
    return torch.cat([piece.round().clamp(0, 255).to(torch.uint8) for piece in pieces])


def _load(name: str, folder: Path, files: dict[str, str], labels: str) -> tuple[Tensor, Tensor]:
    """Return images [N, 3, 32, 32] and labels [N] of files, each unpickled only with the right MD5."""
    images: list[np.ndarray] = []
    targets: list[int] = []
    for file, md5 in files.items():
        content = file_reading.content(folder / file, MOST_BYTES)
        check_md5(name, folder / file, content, md5)
        batch: dict[str, Any] = pickle.loads(content, encoding="latin1")
        images.append(batch["data"])
        targets += batch[labels]
    return torch.from_numpy(np.concatenate(images)).view(-1, 3, 32, 32), torch.tensor(targets)
