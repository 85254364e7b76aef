"""Codings: compression of updates and models on their way (fields `uplink`, `downlink` of strategies).

`loop/messages.py` calls `send`, which encodes, sends and decodes in one call; `bytes` is the size of a
message. With error feedback, later messages make up for the error of a message C. `ef14`: e is the sum of
errors so far, C(v + e) is sent (Seide et al., Interspeech 2014; Stich, Cordonnier, Jaggi, NeurIPS 2018).
`ef21`: both ends keep g, C(v − g) is sent, and g ← g + C(v − g) is received (Richtárik, Sokolov, Fatkhullin,
NeurIPS 2021). Both need a C that brings every vector nearer: an unbiased coding is used as C/(1 + ω), by
which random-k sends the numbers as they are.

Fixed: names, fields and defaults (keys of runs); the vector received and the bytes of a message, which count
in budgets and on the leaderboard.
"""

from math import ceil, inf
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from fl_core.parts import Count, Part, Rate, exact

SEED_BYTES = 8  # of a seed from which both ends draw the same random choice


class Received(NamedTuple):
    """A received vector, and whether it was decoded wrong."""

    vector: Tensor  # [d]
    wrong: bool  # whether decoding gave another vector than was encoded


class Coding(Part):
    """Base of codings: rules for the transfer of a vector [d], with the received vector and the bytes sent.

    Where a random choice is made, both ends draw it from one stream, named by direction, client and job.
    """

    homes: ClassVar[tuple[str, ...]] = ("fl_core.compression",)

    # What the sender does about what a message leaves out: forgets it, adds it to the next one, or sends by
    # how much the vector differs from what was received so far
    feedback: Literal["none", "ef14", "ef21"] = "none"

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        """Return the received vector for a vector [d], encoded and decoded; the input is not changed."""
        raise NotImplementedError(f"{type(self).__name__} does not define `code`")

    def code_near(self, reference: Tensor, vector: Tensor, rng: np.random.Generator) -> Received:
        """Return the vector received by a holder of another vector, `reference` [d]."""
        return Received(self.code(vector, rng), wrong=False)

    def bytes(self, entries: int, word: int) -> int:
        """Return the bytes sent for a vector, all parts counted.

        Args:
            entries: d, length of the vector.
            word: Bytes of a number that is not coded.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `bytes`")

    def variance(self, entries: int) -> float:
        """Return ω of an unbiased coding: E C(v) = v and E‖C(v) − v‖² ≤ ω ‖v‖² for v [d]; 0 for others."""
        return 0.0

    def refuses_models(self) -> str | None:
        """Return the reason why models cannot be sent in the coding, or None."""
        if self.feedback == "ef14":
            return (
                "feedback ef14 adds the error of a message to the next one, which fits updates, not "
                "models: choose ef21"
            )
        return None

    def send(
        self, vector: Tensor, memory: Tensor | None, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Return the received vector, and the sender's memory for error feedback, e or g [d].

        Args:
            vector: The vector to send [d].
            memory: The sender's memory after the last message; None before the first.
            rng: The message's random stream.
        """
        if self.feedback == "none":
            return self._coded(vector, rng), None
        omega = self.variance(len(vector))
        if not (isinstance(omega, float | int) and 0 <= omega < inf):
            raise ValueError(
                f"{type(self).__name__}.variance must return a number of 0 or more, not {omega!r}"
            )
        nearer = 1 + omega
        if self.feedback == "ef14":
            message = vector if memory is None else vector + memory
            received = self._coded(message, rng) / nearer
            return received, message - received
        reference = vector.new_zeros(len(vector)) if memory is None else memory
        received = reference + self._coded(vector - reference, rng) / nearer
        return received, received.clone()  # the receiver may write into the vector

    def send_near(self, reference: Tensor, vector: Tensor, rng: np.random.Generator) -> Received:
        """Return the vector received by a holder of another vector, `reference` [d], without feedback."""
        versions = vector._version + reference._version
        received = self.code_near(reference, vector, rng)
        if not (isinstance(received, tuple) and len(received) == 2):
            pair = "a pair, the received vector and whether it was misread"
            raise TypeError(f"{type(self).__name__}.code_near must return {pair}, not {received!r}")
        self._must_be_like(
            vector, received[0], "code_near", wrote=vector._version + reference._version != versions
        )
        return Received(*received)

    def _coded(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        """Return `code(vector)`, checked: a user's coding may return anything."""
        version = vector._version
        received = self.code(vector, rng)
        self._must_be_like(vector, received, "code", wrote=vector._version != version)
        return received

    def _must_be_like(self, vector: Tensor, received: Tensor, method: str, *, wrote: bool) -> None:
        """Raise TypeError for a received vector of another type, RuntimeError for a changed input."""
        origin = f"{type(self).__name__}.{method}"
        if wrote:
            raise RuntimeError(f"{origin} changes its input in place: write into a .clone()")
        if not isinstance(received, Tensor):
            raise TypeError(f"{origin} must return a tensor of shape {tuple(vector.shape)}, not {received!r}")
        if received.shape != vector.shape or received.dtype is not vector.dtype:
            returned = f"{tuple(received.shape)} and {received.dtype}"
            raise TypeError(
                f"{origin} must return shape {tuple(vector.shape)} and {vector.dtype}, not {returned}"
            )
        if received.requires_grad:
            raise TypeError(f"{origin} returns a tensor that requires a gradient: return tensor.detach()")


def bytes_of(vector: Tensor, coding: Coding | None) -> int:
    """Return the bytes of a vector [d], coded or not.

    Raises:
        TypeError: A coding's bytes are no int, 1 or more.
    """
    entries, word = vector.shape[-1], vector.element_size()
    if coding is None:
        return entries * word
    size = coding.bytes(entries, word)
    if isinstance(size, int | np.integer) and size >= 1:
        return int(size)
    raise TypeError(f"{type(coding).__name__}.bytes must return an int of 1 or more, not {size!r}")


MAX_HALF = torch.finfo(torch.half).max


class Float16(Coding):
    """Numbers of 16 bits: each the nearest, and ±65504 beyond these (IEEE 754, 2019)."""

    name: ClassVar[str] = "float16"

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        return vector.clamp(-MAX_HALF, MAX_HALF).half().to(vector.dtype)

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


class Sparse(Coding):
    """Base of codings with k = ⌈share · d⌉ unchanged numbers of d, and zero for the others."""

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
        return self.count(entries) * word + SEED_BYTES

    def variance(self, entries: int) -> float:
        """Return ω = d/k − 1."""
        return entries / self.count(entries) - 1


class Lattice(Coding):
    """Cubic lattice modulo q, decoded near the receiver's own vector (Davies et al., ICLR 2021).

    Sent is the nearest point s·k of the cubic lattice, as k mod q with q = 2^bits; received is the point
    of these colours that is nearest to the receiver's vector: s·k itself if every number of it is nearer
    than q s/2 there, so surely if the two vectors differ nowhere by (q − 1) s/2. With `rotate` both
    vectors are first filled up to a power of two and turned by H D, a Hadamard matrix times random signs,
    which spreads their difference evenly over all numbers.

    Elsewhere than in QuAFL the receiver's vector is 0, or with `feedback: ef21` what it received so far.
    """

    name: ClassVar[str] = "lattice"

    bits: Annotated[int, Field(ge=1, le=16)] = 14  # of a number: q = 2^bits
    side: Rate = 1e-4  # s, distance between neighbouring points of the lattice
    rotate: bool = False  # whether vectors are turned at random before, as in the paper

    def refuses_models(self) -> str | None:
        if self.feedback == "none":
            return (
                f"{self.reference()} decodes near a model that clients hold only with feedback ef21: "
                "choose ef21"
            )
        return super().refuses_models()

    @property
    def q(self) -> int:
        """The number of colours k mod q."""
        return 2**self.bits

    def code(self, vector: Tensor, rng: np.random.Generator) -> Tensor:
        return self.code_near(torch.zeros_like(vector), vector, rng).vector

    def code_near(self, reference: Tensor, vector: Tensor, rng: np.random.Generator) -> Received:
        if not self.rotate:
            return self._received(reference, vector)
        length = len(vector)
        signs = torch.from_numpy(rng.choice((-1.0, 1.0), self._sent(length))).to(vector)
        received, wrong = self._received(_turned(reference, signs), _turned(vector, signs))
        return Received((_hadamard(received) * signs)[:length], wrong)

    def _received(self, reference: Tensor, vector: Tensor) -> Received:
        """Return a vector as decoded near `reference`; it is wrong if a number is off by more than s."""
        received = self.decode(self.encode(vector), reference)
        return Received(received, wrong=bool(((received - vector).abs() > self.side).any()))

    def encode(self, vector: Tensor) -> Tensor:
        """Return k mod q of the point s·k nearest to a vector [d]."""
        return (vector / self.side).round().remainder(self.q)

    def decode(self, colours: Tensor, reference: Tensor) -> Tensor:
        """Return the point of the given colours [d] nearest to a known vector [d]."""
        wraps = ((reference / self.side - colours) / self.q).round()
        return self.side * (colours + self.q * wraps)

    def bytes(self, entries: int, word: int) -> int:
        return ceil(self._sent(entries) * self.bits / 8) + self.rotate * SEED_BYTES

    def _sent(self, entries: int) -> int:
        """Return how many numbers are sent."""
        return 2 ** (entries - 1).bit_length() if self.rotate else entries


def _turned(vector: Tensor, signs: Tensor) -> Tensor:
    """Return H D v [n] of a vector [d], filled up with zeros; D has the signs [n]."""
    filled = torch.zeros_like(signs)
    filled[: len(vector)] = vector
    return _hadamard(filled * signs)


def _hadamard(vector: Tensor) -> Tensor:
    """Return H v, H Sylvester's matrix over √n, an involution; n = 2^m, in n m additions."""
    n, size = len(vector), 1
    while size < n:
        top, right = vector.view(-1, 2, size).unbind(1)
        vector = torch.stack((top + right, top - right), 1).flatten()
        size *= 2
    return vector / n**0.5
