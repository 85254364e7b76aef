"""Cumulated weights of n clients with changes and look-ups in O(√n), for weighted draws.

`Roster` keeps the weights of present and of idle clients in it, for `Server.draw` with probabilities.

Free: how sums are kept, if they stay correct to n roundings. `Server.draw` looks up places nearer than that
to a sum in NumPy's own sums.
"""

from math import isqrt
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """The place at which cumulated weights exceed an amount, and the sums before and up to the place."""

    place: int
    lower: float
    upper: float


def probabilities(p: np.ndarray | tuple[float, ...]) -> np.ndarray:
    """Return relative probabilities as an array.

    Raises:
        ValueError: One is negative or not finite.
    """
    weights = np.asarray(p, float)
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(wrong):
        raise ValueError(f"server.draw: relative probabilities must be 0 or more, not {wrong[0]:g}")
    return weights


class BlockSums:
    """Weights w of n places, 0 or greater, in about √n blocks; sums are correct to n roundings."""

    def __init__(self, weights: np.ndarray) -> None:
        self.size = len(weights)
        self._width = max(1, isqrt(self.size))
        blocks = -(-self.size // self._width)
        self._flat = np.zeros(blocks * self._width)
        self._flat[: self.size] = weights
        self._blocks = self._flat.reshape(blocks, self._width)
        self._sums = self._blocks.sum(1)
        self._upto = self._sums.cumsum()
        self._changed: set[int] = set()  # blocks whose sums are out of date

    def __setitem__(self, place: int, weight: float) -> None:
        self._flat[place] = weight
        self._changed.add(place // self._width)

    def upto(self) -> np.ndarray:
        """Return the sums of all weights up to the end of each block."""
        if self._changed:
            for block in self._changed:
                self._sums[block] = self._blocks[block].sum()
            self._changed.clear()
            self._upto = self._sums.cumsum()
        return self._upto

    def find(self, amount: float) -> Interval | None:
        """Return the first place with a cumulated weight above an amount; None if the total is not above."""
        upto = self.upto()
        block = int(upto.searchsorted(amount, side="right"))
        if block == len(upto):
            return None
        sum_before = float(upto[block - 1]) if block else 0.0
        within = self._blocks[block].cumsum() + sum_before
        place = int(within.searchsorted(amount, side="right"))
        if place == self._width:
            return None
        lower = float(within[place - 1]) if place else sum_before
        return Interval(block * self._width + place, lower, float(within[place]))
