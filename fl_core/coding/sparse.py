"""Codings that send some of the numbers."""

from math import ceil
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from fl_core.coding.coding import SEED, Coding
from fl_core.parts import exact


class Sparse(Coding):
    """Base of codings that send k = ⌈share · d⌉ of d numbers as they are, and zero for the others."""

    share: Annotated[float, Field(gt=0, le=1)] = 0.1  # of the numbers that is sent

    def count(self, entries: int) -> int:
        """Return k."""
        return ceil(exact(self.share) * entries)


class TopK(Sparse):
    """Top-k, the numbers of largest size (Alistarh et al., NeurIPS 2018).

    Among equals the first. With the numbers their places are sent, each in ⌈log2 d⌉ bits, or as a map of d
    bits where this is shorter.
    """

    name: ClassVar[str] = "top_k"

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        k = self.count(len(vector))
        places = vector.abs().sort(descending=True, stable=True).indices[:k]
        return torch.zeros_like(vector).index_copy(0, places, vector[places])

    def bytes(self, entries: int, word: int) -> int:
        k = self.count(entries)
        if k == entries:
            return k * word
        return k * word + ceil(min(k * (entries - 1).bit_length(), entries) / 8)


class RandomK(Sparse):
    """Random-k, uniformly drawn numbers times d/k, unbiased (Wangni et al., NeurIPS 2018).

    Both ends draw the places from the same seed, which is sent with the numbers.
    """

    name: ClassVar[str] = "random_k"

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        d, k = len(vector), self.count(len(vector))
        places = torch.from_numpy(rng.choice(d, k, replace=False)).to(vector.device)
        return torch.zeros_like(vector).index_copy(0, places, vector[places] * (d / k))

    def bytes(self, entries: int, word: int) -> int:
        return self.count(entries) * word + SEED

    def variance(self, entries: int) -> float:
        """Return ω = d/k − 1."""
        return entries / self.count(entries) - 1
