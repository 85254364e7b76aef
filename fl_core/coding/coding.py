"""The interface of codings: a vector is encoded, sent and decoded in one call, and its bytes are counted."""

from typing import ClassVar

import numpy as np
from torch import Tensor

from fl_core.parts import Part


class Coding(Part):
    """What is sent of a vector [d], and what is received.

    Where a random choice is made, both ends draw it from one stream, named by direction, client and job.
    """

    homes: ClassVar[tuple[str, ...]] = ("fl_core.coding",)
    receiver_keeps: ClassVar[bool] = False  # whether what the sender remembers is known to the receiver

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        """Return what is received of a vector [d]: encoded, then decoded; the vector is left as it is."""
        raise NotImplementedError

    def bytes(self, entries: int, word: int) -> int:
        """Return the bytes that are sent for a vector, all its parts counted.

        Args:
            entries: d, length of the vector.
            word: Bytes of a number that is not coded.
        """
        raise NotImplementedError

    def variance(self, entries: int) -> float:
        """Return ω of an unbiased coding: E C(v) = v and E‖C(v) − v‖² ≤ ω ‖v‖² for v [d]; 0 for others."""
        return 0.0

    def send(
        self, vector: Tensor, memory: Tensor | None, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Return what is received of a vector [d], and what the sender remembers of it, if anything.

        Args:
            vector: What is to be sent.
            memory: What was remembered of the last vector [d]; None before the first.
            rng: The message's random stream.
        """
        return self.code(vector, rng), None


def bytes_of(vector: Tensor, coding: Coding | None) -> int:
    """Return the bytes in which a vector [d] is sent, coded or as it is."""
    entries, word = vector.shape[-1], vector.element_size()
    return coding.bytes(entries, word) if coding else entries * word
