"""The interface of codings: a vector is encoded, sent and decoded in one call, and its bytes are counted.

Error feedback makes good by later messages what a message C leaves out. `ef14`: e is what was left out so
far, C(v + e) is sent (Seide et al., Interspeech 2014; Stich, Cordonnier, Jaggi, NeurIPS 2018). `ef21`: both
ends keep g, C(v − g) is sent, and g ← g + C(v − g) is received (Richtárik, Sokolov, Fatkhullin, NeurIPS
2021). Both need a C that brings every vector nearer: an unbiased coding is used as C/(1 + ω), by which
random-k sends the numbers as they are.
"""

from math import inf
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
        raise NotImplementedError(f"{type(self).__name__} has no code")

    def code_near(self, known: Tensor, vector: Tensor, rng: np.random.Generator) -> Received:
        """Return what is received of a vector [d] by who holds another, `known` [d]."""
        return Received(self.code(vector, rng), wrong=False)

    def bytes(self, entries: int, word: int) -> int:
        """Return the bytes that are sent for a vector, all its parts counted.

        Args:
            entries: d, length of the vector.
            word: Bytes of a number that is not coded.
        """
        raise NotImplementedError(f"{type(self).__name__} has no bytes")

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
            return self._coded(vector, rng), None
        omega = self.variance(len(vector))
        if not (isinstance(omega, float | int) and 0 <= omega < inf):
            raise ValueError(f"{type(self).__name__}.variance returns {omega!r}, not a number of 0 or more")
        nearer = 1 + omega
        if self.feedback == "ef14":
            whole = vector if memory is None else vector + memory
            received = self._coded(whole, rng) / nearer
            return received, whole - received
        known = vector.new_zeros(len(vector)) if memory is None else memory
        received = known + self._coded(vector - known, rng) / nearer
        return received, received.clone()  # whoever receives it may write into it

    def send_near(self, known: Tensor, vector: Tensor, rng: np.random.Generator) -> Received:
        """Return what is received of a vector [d] by who holds another, `known` [d], without feedback."""
        before = vector._version + known._version
        received = self.code_near(known, vector, rng)
        if not (isinstance(received, tuple) and len(received) == 2):
            pair = "a pair of what is received and whether it was misread"
            raise TypeError(f"{type(self).__name__}.code_near must return {pair}, not {received!r}")
        self._must_be_like(vector, received[0], "code_near", wrote=vector._version + known._version != before)
        return Received(*received)

    def _coded(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        before = vector._version
        received = self.code(vector, rng)
        self._must_be_like(vector, received, "code", wrote=vector._version != before)
        return received

    def _must_be_like(self, vector: Tensor, received: Tensor, method: str, *, wrote: bool) -> None:
        """Raise TypeError unless what is received is like the vector, and RuntimeError if that changed."""
        here = f"{type(self).__name__}.{method}"
        if wrote:
            raise RuntimeError(f"{here} changes what it is given in place: write into a .clone()")
        if not isinstance(received, Tensor):
            raise TypeError(f"{here} must return a tensor of shape {tuple(vector.shape)}, not {received!r}")
        if received.shape != vector.shape or received.dtype is not vector.dtype:
            given = f"shape {tuple(received.shape)} and {received.dtype}"
            raise TypeError(f"{here} returns {given}, not {tuple(vector.shape)} and {vector.dtype}")
        if received.requires_grad:
            raise TypeError(f"{here} returns what carries a gradient: detach it")


def bytes_of(vector: Tensor, coding: Coding | None) -> int:
    """Return the bytes in which a vector [d] is sent, coded or as it is.

    Raises:
        TypeError: A coding's bytes are no int, 1 or more.
    """
    entries, word = vector.shape[-1], vector.element_size()
    if coding is None:
        return entries * word
    size = coding.bytes(entries, word)
    if isinstance(size, int | np.integer) and size >= 1:
        return int(size)
    raise TypeError(f"{type(coding).__name__}.bytes returns {size!r}, not an int of 1 or more")
