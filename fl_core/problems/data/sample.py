"""A fixed sample of every client's training data, for estimating the losses on all data."""

import numpy as np

from fl_core.problems.data.shares import Shares
from fl_core.streams import stream

LEAST = 2  # data points of a client at least, where it has so many: one alone shows no spread


class StratifiedSample:
    """About `size` training data points, of each client in proportion to the client's data.

    Drawn once under a seed, without replacement, from the streams ("evaluation", client): all models of a
    run, and all runs of a world, are judged on the same points.
    """

    def __init__(self, shares: Shares, size: int, seed: int) -> None:
        self.held = shares.sizes  # [n]
        proportional = np.rint(size * self.held / max(1, self.held.sum())).astype(int)
        self.drawn = np.minimum(self.held, np.maximum(proportional, LEAST))  # [n]
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
