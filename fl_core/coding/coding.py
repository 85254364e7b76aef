"""The interface of codings: a vector is encoded, sent and decoded in one call, and its bytes are counted.

Error feedback makes good by later messages what a message C leaves out. `ef14`: e is what was left out so
far, C(v + e) is sent (Seide et al., Interspeech 2014; Stich, Cordonnier, Jaggi, NeurIPS 2018). `ef21`: both
ends keep g, C(v − g) is sent, and g ← g + C(v − g) is received (Richtárik, Sokolov, Fatkhullin, NeurIPS
2021). Both need a C that brings every vector nearer: an unbiased coding is used as C/(1 + ω), by which
random-k sends the numbers as they are.
"""

from typing import ClassVar, Literal, NamedTuple

import numpy as np
from torch import Tensor

from fl_core.parts import Part

SEED = 8  # bytes from which both ends draw the same random choice


class Received(NamedTuple):
    """What is received of a vector by who holds another."""

    vector: Tensor  # [d]
    wrong: bool  # whether another message was read than was sent


class Coding(Part):
    """What is sent of a vector [d], and what is received.

    Where a random choice is made, both ends draw it from one stream, named by direction, client and job.
    """

    homes: ClassVar[tuple[str, ...]] = ("fl_core.coding",)

    # What the sender does about what a message leaves out: forgets it, adds it to the next one, or sends by
    # how much the vector differs from what was received so far
    feedback: Literal["none", "ef14", "ef21"] = "none"

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        """Return what is received of a vector [d]: encoded, then decoded; the vector is left as it is."""
        raise NotImplementedError

    def code_near(self, known: Tensor, vector: Tensor, rng: np.random.Generator) -> Received:
        """Return what is received of a vector [d] by who holds another, `known` [d]."""
        return Received(self.code(vector, rng), wrong=False)

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

    def refuses_models(self) -> str | None:
        """Return why clients cannot be sent models in this coding, in one sentence, or None."""
        if self.feedback == "ef14":
            return "ef14 adds what it left out to the next message, and two models are no model; ef21 fits"
        return None

    def send(
        self, vector: Tensor, memory: Tensor | None, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Return what is received of a vector [d], and what the sender remembers, e or g [d].

        Args:
            vector: What is to be sent.
            memory: What was remembered at the last message; None before the first.
            rng: The message's random stream.
        """
        if self.feedback == "none":
            return self.code(vector, rng), None
        nearer = 1 + self.variance(len(vector))
        if self.feedback == "ef14":
            whole = vector if memory is None else vector + memory
            received = self.code(whole, rng) / nearer
            return received, whole - received
        known = vector.new_zeros(len(vector)) if memory is None else memory
        received = known + self.code(vector - known, rng) / nearer
        return received, received.clone()  # whoever receives it may write into it


def bytes_of(vector: Tensor, coding: Coding | None) -> int:
    """Return the bytes in which a vector [d] is sent, coded or as it is."""
    entries, word = vector.shape[-1], vector.element_size()
    return coding.bytes(entries, word) if coding else entries * word
