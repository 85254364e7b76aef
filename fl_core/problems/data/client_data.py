"""Data dealt out to clients: each client's data, and each client's mean of values by data point.

`Supervised.world` passes the `Shares` to the world of a run.

Fixed: which points a sample has (a suite's `evaluate: {sample: …}` is part of recorded runs).
"""

from collections.abc import Sequence

import numpy as np

from fl_core.keys import digest
from fl_core.problems.data.data import Data
from fl_core.streams import stream


class Shares:
    """The clients' shares of the training data, and of the test data.

    All clients share one test set, reweighted to the client's own mix of labels. Where clients are the owners
    of the data (`by_owner`), each has test data of its own.
    """

    def __init__(self, data: Data, parts: Sequence[np.ndarray], *, by_owner: bool) -> None:
        self.data = data
        self.n = len(parts)
        self.sizes = np.array([len(part) for part in parts])
        self.held = np.concatenate(parts)  # [Σ n_i], client after client
        self.starts: list[int] = (np.cumsum(self.sizes) - self.sizes).tolist()
        labels = data.labels_train.numpy()
        self.labels = np.stack([np.bincount(labels[part], minlength=data.classes) for part in parts])
        dealt = self.sizes.astype("<i8").tobytes() + self.held.astype("<i8").tobytes()
        self.fingerprint = {"data": data.fingerprint, "partition": digest(dealt)}
        self.test_owners = data.owner_test.numpy() if by_owner and data.owner_test is not None else None
        self._test_labels = data.labels_test.numpy()
        self._tested = np.bincount(self._test_labels, minlength=data.classes)
        self._mix = self.labels * (self._tested > 0)

    def of(self, client: int) -> np.ndarray:
        """Return the indices of a client's training data."""
        return self.held[self.starts[client] : self.starts[client] + self.sizes[client]]

    def on_training(self, values: np.ndarray) -> np.ndarray:
        """Return each client's mean [n] of values of the training data points [N]; 0 without data."""
        client = np.repeat(np.arange(self.n), self.sizes)
        total = np.bincount(client, weights=values[self.held], minlength=self.n)
        return total / np.maximum(self.sizes, 1)

    def on_test(self, values: np.ndarray) -> np.ndarray:
        """Return each client's mean [n] of values of the test data points [M].

        Client i's is Σ_c (n_ic / n_i) · v_c over the classes c that the test set holds, v_c the mean
        over the test data of class c; or the mean over its own test data. A client without any gets the
        mean of all.
        """
        if self.test_owners is not None:
            tested = np.bincount(self.test_owners, minlength=self.n)
            own_mean = np.bincount(self.test_owners, weights=values, minlength=self.n) / np.maximum(tested, 1)
            return np.where(tested > 0, own_mean, values.mean())
        total = np.bincount(self._test_labels, weights=values, minlength=self.data.classes)
        of_class = total / np.maximum(self._tested, 1)
        weight = self._mix.sum(1)
        return np.where(weight > 0, self._mix @ of_class / np.maximum(weight, 1), values.mean())


MIN_POINTS = 2  # sampled data points of a client, if it has as many: a single point shows no spread


class StratifiedSample:
    """About `size` training data points, of each client in proportion to the client's data.

    Drawn once under a seed, without replacement, from the streams ("evaluation", client): all models of a
    run, and all runs of a world, are judged on the same points.
    """

    def __init__(self, shares: Shares, size: int, seed: int) -> None:
        self.held = shares.sizes  # [n]
        proportional = np.rint(size * self.held / max(1, self.held.sum())).astype(int)
        self.drawn = np.minimum(self.held, np.maximum(proportional, MIN_POINTS))  # [n]
        parts = [
            stream(seed, "evaluation", client).choice(shares.of(client), count, replace=False)
            for client, count in enumerate(self.drawn.tolist())
        ]
        self.points = np.concatenate(parts)  # indices into the training data, client after client

    def estimate(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each client's mean [n] of values given for `points`, and the standard errors [n].

        Both are 0 for a client without data. The error is s_i · √((1 − m_i/n_i) / m_i), s_i the standard
        deviation of the m_i of n_i values (Cochran, Sampling Techniques, 1977, §2.6).
        """
        n, many = len(self.held), np.maximum(self.drawn, 1)
        client = np.repeat(np.arange(n), self.drawn)
        mean = np.bincount(client, values, n) / many
        variance = np.bincount(client, (values - mean[client]) ** 2, n) / np.maximum(self.drawn - 1, 1)
        left_out = 1 - self.drawn / np.maximum(self.held, 1)
        return mean, np.sqrt(variance * left_out / many)
