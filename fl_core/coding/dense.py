"""Codings of every number in fewer bits."""

from math import ceil
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from fl_core.coding.coding import Coding
from fl_core.parts import Count

LARGEST = torch.finfo(torch.half).max


class Float16(Coding):
    """Numbers of 16 bits, the nearest ones; beyond ±65504 those (IEEE 754, 2019)."""

    name: ClassVar[str] = "float16"

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        return vector.clamp(-LARGEST, LARGEST).half().to(vector.dtype)

    def bytes(self, entries: int, word: int) -> int:
        return 2 * entries


class QSGD(Coding):
    """QSGD, stochastic uniform quantisation, unbiased (Alistarh et al., NeurIPS 2017, §3.1).

    Q(v_i) = ‖v‖ sign(v_i) l/s, where l is one of the two whole numbers around s |v_i|/‖v‖ and right on
    average; s = 2^(bits − 1) − 1. Sent are the norm and, at a fixed length, sign and l of every number. With
    `bucket` so many consecutive numbers have a norm of their own (§4).
    """

    name: ClassVar[str] = "qsgd"

    bits: Annotated[int, Field(ge=2, le=16)] = 8  # of a number, with its sign
    bucket: Count | None = None  # numbers that share a norm; None: all

    @property
    def levels(self) -> int:
        """s, the levels above zero."""
        return 2 ** (self.bits - 1) - 1

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        noise = torch.from_numpy(rng.random(len(vector))).to(vector)
        pairs = zip(self._buckets(vector), self._buckets(noise), strict=True)
        return torch.cat([self._rounded(part, random) for part, random in pairs])

    def _buckets(self, vector: Tensor) -> tuple[Tensor, ...]:
        return torch.split(vector, self.bucket or len(vector))

    def _rounded(self, part: Tensor, noise: Tensor) -> Tensor:
        norm = part.norm()
        if norm == 0:
            return part
        level = (part.abs() / norm * self.levels + noise).floor().clamp(max=self.levels)
        return norm * part.sign() * level / self.levels

    def bytes(self, entries: int, word: int) -> int:
        norms = ceil(entries / (self.bucket or entries))
        return ceil(entries * self.bits / 8) + norms * word

    def variance(self, entries: int) -> float:
        """Return ω = min(n/s², √n/s), Lemma 3.1, with n numbers to a norm."""
        n = min(self.bucket or entries, entries)
        return min(n / self.levels**2, n**0.5 / self.levels)
