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

from fl_core import reading
from fl_core.parts import FieldError
from fl_core.problems.classification import Classification
from fl_core.problems.data.data import Data, DataMissingError, check_md5, places
from fl_core.problems.data.download import download

# Files and the MD5 of each as published; torchvision checks the same.
TRAIN10 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
}
TEST10 = {"test_batch": "40351d587109b95175f43aff81a1287e"}
TRAIN100 = {"train": "16019d7e3df5f24257cddd939b257f8d"}
TEST100 = {"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"}
MOST_BYTES = 200_000_000  # of a file; the largest has 155,249,918


class CIFAR(Classification):
    """Base of CIFAR-10 and CIFAR-100: resizing and augmentation of the images."""

    samples: ClassVar[int] = 50_000

    resize: Literal[16] | None = None  # height and width instead of 32
    augment: bool = False  # in training, crop with padding 4 and flip, each data point by its own key

    @model_validator(mode="after")
    def _crops_fit(self) -> Self:
        if self.augment and self.resize:
            raise FieldError("augment", "crops images 32×32 only; leave out resize")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.resize or 32, self.resize or 32)

    def augments(self) -> bool:
        return self.augment


class CIFAR10(CIFAR):
    """CIFAR-10: ten classes, 50,000 + 10,000 (Krizhevsky, technical report, 2009).

    With `resize: 16` and model logistic it is the convex CIFAR10* of Fraboni et al. (JMLR 2023), as in
    their code; with `augment` images are cropped and flipped as in Alahyane et al. (2025).
    """

    name: ClassVar[str] = "cifar10"

    def load(self) -> Data:
        return _cifar10(tuple(places()), self.resize)


class CIFAR100(CIFAR):
    """CIFAR-100: a hundred classes, 50,000 + 10,000 (Krizhevsky, technical report, 2009).

    With `resize: 16` and model logistic it is the convex CIFAR100* of Fraboni et al. (JMLR 2023).
    """

    name: ClassVar[str] = "cifar100"
    classes: ClassVar[int] = 100

    def load(self) -> Data:
        return _cifar100(tuple(places()), self.resize)


@functools.cache
def _cifar10(where: tuple[Path, ...], size: int | None) -> Data:
    folder = _folder("CIFAR10", "cifar-10-batches-py", [*TRAIN10, *TEST10], where)
    halves = (*_load("CIFAR10", folder, TRAIN10, "labels"), *_load("CIFAR10", folder, TEST10, "labels"))
    return _data(halves, 10, (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616), size)


@functools.cache
def _cifar100(where: tuple[Path, ...], size: int | None) -> Data:
    folder = _folder("CIFAR100", "cifar-100-python", [*TRAIN100, *TEST100], where)
    halves = (
        *_load("CIFAR100", folder, TRAIN100, "fine_labels"),
        *_load("CIFAR100", folder, TEST100, "fine_labels"),
    )
    return _data(halves, 100, (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), size)


def _data(
    halves: tuple[Tensor, Tensor, Tensor, Tensor],
    classes: int,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    size: int | None,
) -> Data:
    x_train, y_train, x_test, y_test = halves
    if size:
        x_train, x_test = resized(x_train, size), resized(x_test, size)
    scaled = tuple(255 * m for m in mean), tuple(255 * s for s in std)
    return Data(x_train, y_train, x_test, y_test, classes, *scaled)


def resized(images: Tensor, size: int) -> Tensor:
    """Return byte images [N, C, H, W] resized bilinearly with antialiasing, as torchvision's Resize does."""
    pieces = [
        interpolate(piece.float(), (size, size), mode="bilinear", antialias=True, align_corners=False)
        for piece in torch.split(images, 5000)
    ]
    return torch.cat([piece.round().clamp(0, 255).to(torch.uint8) for piece in pieces])


def _folder(name: str, folder: str, files: list[str], where: tuple[Path, ...]) -> Path:
    """Return the folder that holds the files, downloaded into the first of `where` if none does."""
    candidates = [place / folder for place in where]
    for candidate in candidates:
        if all((candidate / file).is_file() for file in files):
            return candidate
    try:
        download(name, folder, where[0])
    except (OSError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise DataMissingError(
            f"{name}: {', '.join(files)} not found in {' or in '.join(map(str, candidates))}, and the "
            f"download failed ({reason}); put the files there, or set ASYNCFL_DATA to the folder that holds "
            f"{folder}"
        ) from None
    return candidates[0]


def _load(name: str, folder: Path, files: dict[str, str], labels: str) -> tuple[Tensor, Tensor]:
    """Return images [N, 3, 32, 32] and labels [N] of some files, each unpickled only if its MD5 is right."""
    images: list[np.ndarray] = []
    targets: list[int] = []
    for file, md5 in files.items():
        content = reading.content(folder / file, MOST_BYTES)
        check_md5(name, folder / file, content, md5)
        batch: dict[str, Any] = pickle.loads(content, encoding="latin1")
        images.append(batch["data"])
        targets += batch[labels]
    return torch.from_numpy(np.concatenate(images)).view(-1, 3, 32, 32), torch.tensor(targets)
