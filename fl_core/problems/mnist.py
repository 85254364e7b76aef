"""MNIST and two drop-in replacements: 28×28 grey images of ten classes, in files of the format idx."""

import functools
import gzip
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fl_core import file_reading
from fl_core.problems.data import files
from fl_core.problems.data.data import Data, stratified
from fl_core.problems.data.files import DataDamagedError, DataMissingError, check_md5
from fl_core.problems.supervised import Classification

TRAIN = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
TEST = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
ENDINGS = ("", ".gz")
MOST_BYTES = 64_000_000  # of a file; the largest has 47,040,016

# MD5 of each file as published (.gz, as in torchvision), and of the unpacked file; None if unknown.
MD5: dict[str, dict[str, tuple[str, str | None]]] = {
    "MNIST": {
        "train-images-idx3-ubyte": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
        "train-labels-idx1-ubyte": ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
        "t10k-images-idx3-ubyte": ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
        "t10k-labels-idx1-ubyte": ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
    },
    "FashionMNIST": {
        "train-images-idx3-ubyte": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        "train-labels-idx1-ubyte": ("25c81989df183df01b3e8a0aad5dffbe", "9018921c3c673c538a1fc5bad174d6f9"),
        "t10k-images-idx3-ubyte": ("bef4ecab320f06d8554ea6380940ec79", "8181f5470baa50b63fa0f6fddb340f0a"),
        "t10k-labels-idx1-ubyte": ("bb300cfdad3c16e7a12a480ee83cd310", "15d484375f8d13e6eb1aabb0c3f46965"),
    },
    "KMNIST": {
        "train-images-idx3-ubyte": ("bdb82020997e1d708af4cf47b453dcf7", None),
        "train-labels-idx1-ubyte": ("e144d726b3acfaa3e44228e80efcd344", None),
        "t10k-images-idx3-ubyte": ("5c965bf0a639b31b8f53240b1b52f4d7", "bf305b8cd328700fbc17f5acbc2856d2"),
        "t10k-labels-idx1-ubyte": ("7320c461ea6c1c855c0b718fb2a4b134", "9f55f451c0988b028eccdf7d5cc265ab"),
    },
}


class MNIST(Classification):
    """Handwritten digits 28×28, 60,000 + 10,000 (LeCun et al., Proceedings of the IEEE, 1998)."""

    name: ClassVar[str] = "mnist"
    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    samples: ClassVar[int] = 60_000

    def load(self) -> Data:
        return _both_halves("MNIST", 0.1307, 0.3081, folder("MNIST", TRAIN), folder("MNIST", TEST))


class FashionMNIST(Classification):
    """Articles of clothing 28×28, 60,000 + 10,000 (Xiao et al., 2017, arXiv 1708.07747)."""

    name: ClassVar[str] = "fashion_mnist"
    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    samples: ClassVar[int] = 60_000

    def load(self) -> Data:
        return _both_halves(
            "FashionMNIST", 0.2860, 0.3530, folder("FashionMNIST", TRAIN), folder("FashionMNIST", TEST)
        )


class KMNIST(Classification):
    """Cursive Japanese characters 28×28, 60,000 + 10,000 (Clanuwat et al., 2018, arXiv 1812.01718)."""

    name: ClassVar[str] = "kmnist"
    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    samples: ClassVar[int] = 60_000

    def load(self) -> Data:
        return _both_halves("KMNIST", 0.1918, 0.3483, folder("KMNIST", TRAIN), folder("KMNIST", TEST))


class KMNIST10k(Classification):
    """The 10,000 test images of KMNIST alone, split 8,000 + 2,000 (Clanuwat et al., 2018, arXiv 1812.01718).

    For use where only the test files are available. Not KMNIST: do not compare results with published ones.
    Of each class 200 images are kept for testing, the same for every seed; mean and deviation are those of
    the 8,000 others.
    """

    name: ClassVar[str] = "kmnist10k"
    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    samples: ClassVar[int] = 8_000

    def load(self) -> Data:
        return _test_half_only(folder("KMNIST", TEST))


@functools.cache
def _both_halves(name: str, mean: float, std: float, train: Path, test: Path) -> Data:
    """Return a data set with the published halves; read once per process."""
    halves = (*load_half(name, TRAIN, train), *load_half(name, TEST, test))
    return Data(*halves, classes=10, mean=(255 * mean,), std=(255 * std,))


@functools.cache
def _test_half_only(folder: Path) -> Data:
    """Return the data set of `KMNIST10k`; read once per process."""
    parts = stratified(*load_half("KMNIST", TEST, folder), 0.2, "kmnist10k")
    return Data(*parts, classes=10, mean=(255 * 0.1844,), std=(255 * 0.3415,))


def folder(name: str, half: tuple[str, str]) -> Path:
    """Return the folder NAME/raw of a half, TRAIN or TEST; raise DataMissingError if missing."""
    names = f"{' and '.join(half)} (or .gz)"
    try:
        return files.located(name, f"{name}/raw", half, names, endings=ENDINGS, published=True)
    except DataMissingError as error:
        if name == "KMNIST" and any(
            files.complete(place / name / "raw", TEST, ENDINGS) for place in files.places()
        ):
            hint = "the problem kmnist10k needs only the 10,000 test images, which are there"
            raise DataMissingError(f"{error}; {hint}") from None
        raise


def load_half(name: str, half: tuple[str, str], folder: Path) -> tuple[Tensor, Tensor]:
    """Load the images [N, 1, 28, 28] uint8 and labels [N] int64 of half a data set.

    Raises:
        DataDamagedError: A file differs from the published one.
    """
    images, labels = (_read(name, file, folder) for file in half)
    if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1] or labels.max() > 9:
        description = f"{name}: the files {' and '.join(half)} in {folder}"
        shapes = f"images {images.shape}, labels {labels.shape}, the largest {labels.max()}"
        raise DataDamagedError(
            f"{description} do not match ({shapes}). Delete them, and they are downloaded again if possible"
        )
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels.astype(np.int64))


def _read(name: str, file: str, folder: Path) -> np.ndarray:
    """Return the unpacked content of a file; the file and the .gz are checked where present."""
    unpacked, packed = folder / file, folder / f"{file}.gz"
    content = None
    for path, md5 in zip((packed, unpacked), MD5[name][file], strict=True):
        if path.is_file():
            content = np.frombuffer(bytearray(file_reading.content(path, MOST_BYTES)), np.uint8)
            check_md5(name, path, content.data, md5)
    assert content is not None  # one of the two is there
    if not unpacked.is_file():
        content = np.frombuffer(bytearray(gzip.decompress(content.tobytes())), np.uint8)
    return _parse(name, content, unpacked if unpacked.is_file() else packed)


def _parse(name: str, content: np.ndarray, path: Path) -> np.ndarray:
    """Read idx: two zero bytes, 8 (unsigned bytes), the number of axes, big-endian lengths, the data."""
    axes = int(content[3]) if len(content) > 3 else 0
    header = 4 + 4 * axes
    shape = tuple(int(length) for length in content[4:header].view(">u4")) if len(content) >= header else ()
    if not axes or bytes(content[:3]) != b"\0\0\x08" or int(np.prod(shape)) != len(content) - header:
        reason = f"its {len(content)} bytes are not a complete idx file"
        raise DataDamagedError(
            f"{name}: {path} is damaged: {reason}. Delete it, and it is downloaded again if possible"
        )
    return content[header:].reshape(shape)
