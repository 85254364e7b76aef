"""The partition of Fraboni et al., with replacement."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from fl_core.problems.partitions.partition import Partition
from fl_core.streams import stream


class FraboniDirichlet(Partition):
    """Equal sizes; class counts ⌊Dir(α·1)·n⌋, sampled with replacement (Fraboni et al., JMLR 2023).

    "Dir(α)" of that paper, from its code: each client draws n = ⌊N / clients⌋ data points, ⌊q_c n⌋ of class c
    with q from Dir(α·1), and what rounding leaves of the last class. Points come from the pool of all data,
    with replacement, whatever others hold: clients overlap, and some data are unused. With α = 0 client i
    holds class i modulo the number of classes alone. The paper's "i.i.d." is α = 10000.
    """

    name: ClassVar[str] = "fraboni_dirichlet"
    by_label: ClassVar[bool] = True
    may_repeat: ClassVar[bool] = True

    alpha: float = Field(0.1, ge=0)  # α: the smaller, the fewer classes a client holds

    def label(self) -> str:
        return f"Fraboni's Dirichlet {self.alpha:g}"

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        pools = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        size = len(labels) // clients
        parts = []
        for client in range(clients):
            random = stream(seed, "partition", client)
            counts = self._counts(len(pools), size, client, random)
            drawn = [random.choice(pool, count) for pool, count in zip(pools, counts, strict=True)]
            parts.append(np.concatenate(drawn))
        return parts

    def _counts(self, classes: int, size: int, client: int, random: np.random.Generator) -> np.ndarray:
        """Return how many data points of each class a client holds [classes]."""
        if not self.alpha:
            return size * (np.arange(classes) == client % classes)
        share = random.dirichlet(np.full(classes, self.alpha))
        counts = np.floor(share * size).astype(int)
        counts[-1] += size - counts.sum()
        return counts
