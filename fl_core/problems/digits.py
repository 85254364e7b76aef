"""scikit-learn's handwritten digits: real data without a download, for first steps and tests."""

import functools
import importlib.util
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from fl_core.problems.data.data import Data, stratified
from fl_core.problems.supervised import Classification


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
    """Read scikit-learn's file as `sklearn.datasets.load_digits` does, without a second of imports."""
    scikit = importlib.util.find_spec("sklearn")
    assert scikit is not None and scikit.origin is not None
    rows = np.loadtxt(Path(scikit.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    x = torch.from_numpy(rows[:, :-1]).to(torch.uint8).reshape(-1, 1, 8, 8)  # 0 … 16
    y = torch.from_numpy(rows[:, -1]).long()
    return Data(*stratified(x, y, 0.2, "digits"), classes=10, mean=(4.8834,), std=(6.0145,))
