"""scikit-learn's handwritten digits: real data that need no download, for first steps and tests."""

from __future__ import annotations

import functools
from typing import ClassVar

import torch

from fl_core.problems.classification import Classification
from fl_core.problems.data.data import Data, stratified


class Digits(Classification):
    """Handwritten digits 8×8, 1,438 + 359, bundled with scikit-learn (Alpaydin & Kaynak, UCI, 1998).

    Of the 1,797 images a fifth of each class is kept for testing, the same for every seed.
    """

    name: ClassVar[str] = "digits"
    shape: ClassVar[tuple[int, ...]] = (1, 8, 8)
    samples: ClassVar[int] = 1438

    def load(self) -> Data:
        return _digits()


@functools.cache
def _digits() -> Data:
    from sklearn.datasets import load_digits

    bundle = load_digits()
    x = torch.from_numpy(bundle.images).to(torch.uint8)[:, None]  # 0 … 16
    y = torch.from_numpy(bundle.target).long()
    return Data(*stratified(x, y, 0.2, "digits"), classes=10, mean=(4.8834,), std=(6.0145,))
