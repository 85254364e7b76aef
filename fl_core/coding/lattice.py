"""The lattice quantiser, whose receiver decodes by a vector of its own.

Davies, Gurunanthan, Moshrefi, Ashkboos, Alistarh: New bounds for distributed mean estimation and variance
reduction. ICLR 2021. Sent is the nearest point s·k of the cubic lattice, as k mod q with q = 2^bits; received
is the point of these colours that is nearest to the receiver's vector: s·k itself if every number of it is
nearer than q s/2 there, so surely if the two vectors differ nowhere by (q − 1) s/2. With `rotate` both
vectors are first filled up to a power of two and turned by H D, a Hadamard matrix times random signs, which
spreads their difference evenly over all numbers.
"""

from math import ceil
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from fl_core.coding.coding import SEED, Coding, Received
from fl_core.parts import Rate


class Lattice(Coding):
    """Cubic lattice modulo q, decoded near the receiver's own vector (Davies et al., ICLR 2021).

    Elsewhere than in QuAFL the receiver's vector is 0, or with `feedback: ef21` what it received so far.
    """

    name: ClassVar[str] = "lattice"

    bits: Annotated[int, Field(ge=1, le=16)] = 14  # of a number: q = 2^bits
    side: Rate = 1e-4  # s, distance between neighbouring points of the lattice
    rotate: bool = False  # whether vectors are turned at random before, as in the paper

    def refuses_models(self) -> str | None:
        if self.feedback == "none":
            return f"{self.reference()} decodes near what clients hold, and they hold a model with ef21 only"
        return super().refuses_models()

    @property
    def q(self) -> int:
        """The number of colours k mod q."""
        return 2**self.bits

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        return self.code_near(torch.zeros_like(vector), vector, rng).vector

    def code_near(self, known: Tensor, vector: Tensor, rng: np.random.Generator) -> Received:
        if not self.rotate:
            return self._received(known, vector)
        length = len(vector)
        signs = torch.from_numpy(rng.choice((-1.0, 1.0), self._sent(length))).to(vector)
        received, wrong = self._received(_turned(known, signs), _turned(vector, signs))
        return Received((_hadamard(received) * signs)[:length], wrong)

    def _received(self, known: Tensor, vector: Tensor) -> Received:
        received = self.decode(self.encode(vector), known)
        return Received(received, wrong=bool(((received - vector).abs() > self.side).any()))

    def encode(self, vector: Tensor) -> Tensor:
        """Return k mod q of the point s·k nearest to a vector [d]."""
        return (vector / self.side).round().remainder(self.q)

    def decode(self, colours: Tensor, known: Tensor) -> Tensor:
        """Return the point nearest to a known vector [d] whose colours are these [d]."""
        wraps = ((known / self.side - colours) / self.q).round()
        return self.side * (colours + self.q * wraps)

    def bytes(self, entries: int, word: int) -> int:
        return ceil(self._sent(entries) * self.bits / 8) + self.rotate * SEED

    def _sent(self, entries: int) -> int:
        """Return how many numbers are sent."""
        return 2 ** (entries - 1).bit_length() if self.rotate else entries


def _turned(vector: Tensor, signs: Tensor) -> Tensor:
    """Return H D v [n] of a vector [d], filled up with zeros; D has the signs [n]."""
    filled = torch.zeros_like(signs)
    filled[: len(vector)] = vector
    return _hadamard(filled * signs)


def _hadamard(vector: Tensor) -> Tensor:
    """Return H v, H Sylvester's matrix over √n, its own inverse; n = 2^m, in n m additions."""
    n, size = len(vector), 1
    while size < n:
        left, right = vector.view(-1, 2, size).unbind(1)
        vector = torch.stack((left + right, left - right), 1).flatten()
        size *= 2
    return vector / n**0.5
