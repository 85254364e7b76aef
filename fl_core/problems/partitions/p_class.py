"""The partition of Anarchic Federated Learning."""

from typing import ClassVar

import numpy as np

from fl_core.parts import Count
from fl_core.problems.partitions.partition import Partition
from fl_core.streams import stream


class PClass(Partition):
    """Each client holds p classes, r data points of each (Yang et al., Anarchic FL, ICML 2022).

    The exact rule is that of the code it derives from. Classes are cut to s data points, one fewer than in
    the smallest, and r = ⌊C s / (M p)⌋ for C classes and M clients. In turn each client chooses p classes at
    random, without repetition, among those with strictly more than r points left, and takes the last r of
    each. Where fewer than p qualify it takes those, and then the last r of the class with most points left
    (the first on ties), possibly one it holds already. For p = 1 and M = C none ever qualifies, and client i
    holds exactly class i.
    """

    name: ClassVar[str] = "p_class"
    by_label: ClassVar[bool] = True
    may_leave_out: ClassVar[bool] = True

    p: Count = 2  # classes each client holds

    def label(self) -> str:
        return f"p = {self.p}"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if self.p > classes:
            return f"p = {self.p} classes a client, but there are only {classes} in the data: lower p"
        if classes * (samples // classes - 1) < clients * self.p:
            few = f"{samples} data points are too few; lower clients or p"
            return f"{clients} clients of {self.p} classes each: {few}"
        return super().refuses(samples, classes, clients)

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        random = stream(seed, "partition")
        pools = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        size = min(map(len, pools)) - 1
        pools = [pool[:size] for pool in pools]
        take = len(pools) * size // (clients * self.p)
        parts = []
        for _ in range(clients):
            open_ = [label for label, pool in enumerate(pools) if len(pool) > take]
            chosen = random.choice(open_, min(self.p, len(open_)), replace=False) if open_ else ()
            own_data = [_last(pools, int(label), take) for label in chosen]
            while len(own_data) < self.p:
                own_data.append(_last(pools, int(np.argmax([len(pool) for pool in pools])), take))
            parts.append(np.concatenate(own_data))
        return parts


def _last(pools: list[np.ndarray], label: int, count: int) -> np.ndarray:
    """Take the last `count` data points, or all remaining, out of the pool of a class."""
    remaining = max(len(pools[label]) - count, 0)
    taken, pools[label] = pools[label][remaining:], pools[label][:remaining]
    return taken
