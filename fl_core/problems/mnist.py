"""MNIST and two drop-in replacements: 28×28 grey images of ten classes."""

import functools
from pathlib import Path
from typing import ClassVar

from fl_core.problems.data import idx
from fl_core.problems.data.data import Data, stratified
from fl_core.problems.supervised import Classification


class MNIST(Classification):
    """Handwritten digits 28×28, 60,000 + 10,000 (LeCun et al., Proceedings of the IEEE, 1998)."""

    name: ClassVar[str] = "mnist"
    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    samples: ClassVar[int] = 60_000

    def load(self) -> Data:
        return _both_halves("MNIST", 0.1307, 0.3081, *idx.folders("MNIST"))


class FashionMNIST(Classification):
    """Articles of clothing 28×28, 60,000 + 10,000 (Xiao et al., 2017, arXiv 1708.07747)."""

    name: ClassVar[str] = "fashion_mnist"
    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    samples: ClassVar[int] = 60_000

    def load(self) -> Data:
        return _both_halves("FashionMNIST", 0.2860, 0.3530, *idx.folders("FashionMNIST"))


class KMNIST(Classification):
    """Cursive Japanese characters 28×28, 60,000 + 10,000 (Clanuwat et al., 2018, arXiv 1812.01718)."""

    name: ClassVar[str] = "kmnist"
    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    samples: ClassVar[int] = 60_000

    def load(self) -> Data:
        return _both_halves("KMNIST", 0.1918, 0.3483, *idx.folders("KMNIST"))


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
        return _test_half_only(idx.folder("KMNIST", idx.TEST))


@functools.cache
def _both_halves(name: str, mean: float, std: float, train: Path, test: Path) -> Data:
    halves = (*idx.load(name, idx.TRAIN, train), *idx.load(name, idx.TEST, test))
    return Data(*halves, classes=10, mean=(255 * mean,), std=(255 * std,))


@functools.cache
def _test_half_only(folder: Path) -> Data:
    parts = stratified(*idx.load("KMNIST", idx.TEST, folder), 0.2, "kmnist10k")
    return Data(*parts, classes=10, mean=(255 * 0.1844,), std=(255 * 0.3415,))
