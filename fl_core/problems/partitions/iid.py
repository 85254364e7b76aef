"""The partition without skew."""

from typing import ClassVar

import numpy as np

from fl_core.problems.partitions.partition import Partition
from fl_core.streams import stream


class IID(Partition):
    """Each client holds a random share, all of equal size up to one (McMahan et al., AISTATS 2017, §3)."""

    name: ClassVar[str] = "iid"

    def label(self) -> str:
        return "i.i.d."

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        order = stream(seed, "partition").permutation(len(labels))
        return np.array_split(order, clients)
