"""Random streams, each named by seed, purpose and ids: all random numbers of a run come from here.

The streams do not depend on the time of drawing (docs/rules.md). So no result depends on the order of
computation, the batch width, the number of workers or a resume, and under one scenario and seed all
strategies get the same initial model, partition, job lengths and mini-batches.

Fixed: the numbers of every stream, and so the purpose and the ids at each call in the package. A new purpose
changes no other stream.
"""

from __future__ import annotations

import hashlib
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

KEY = Struct("<2Q")  # a digest as the key of Philox
WORD = 2**32 - 1
# The end of `repr((seed, purpose, ids))` by the number of ids, as hashed by `_digest`.
ENDS = (b"())", b"(%d,))", b"(%d, %d))", b"(%d, %d, %d))")


def _digest(seed: int, purpose: str, ids: tuple[int, ...]) -> bytes:
    return hashlib.blake2b(repr((seed, purpose, ids)).encode(), digest_size=16).digest()


def stream(seed: int, purpose: str, *ids: int) -> np.random.Generator:
    """Return the random stream for a purpose, for example `stream(0, "duration", client, job)`."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_digest(seed, purpose, ids), "little")))


def torch_stream(seed: int, purpose: str, *ids: int) -> torch.Generator:
    """Return a torch generator for a purpose: initial weights, dropout, augmentation."""
    import torch  # takes 1.5 s, which code without torch is spared

    generator = torch.Generator()
    generator.manual_seed(int.from_bytes(_digest(seed, purpose, ids)[:8], "little", signed=True))
    return generator


class Streams:
    """Streams for a purpose through a single generator: `at(...)` costs 1 µs where `stream(...)` costs 8.

    The numbers are equal. A generator from `at` is valid until the next `at`: draw at once, do not keep it.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        # The part of the digest that is the same for all streams of the purpose.
        self._begun = hashlib.blake2b(f"({seed!r}, {purpose!r}, ".encode(), digest_size=16).copy
        self._bits = np.random.Philox(key=0)
        self._raw = self._bits.random_raw
        self._generator = np.random.Generator(self._bits)
        # The state before the first number; of plain integers, which Philox reads faster than arrays.
        self._start: dict[str, Any] = {"counter": (0, 0, 0, 0), "key": (0, 0)}
        self._state: Any = {**self._bits.state, "state": self._start, "buffer": (0, 0, 0, 0)}

    def at(self, *ids: int) -> np.random.Generator:
        """Return the generator at the start of the stream `(seed, purpose, *ids)`, of at most three ids."""
        digest = self._begun()
        digest.update(ENDS[len(ids)] % ids)
        self._start["key"] = KEY.unpack(digest.digest())
        self._bits.state = self._state
        return self._generator

    def below(self, bound: int, *ids: int) -> int:
        """Return `at(*ids).integers(bound)` in half the time (Lemire, ACM TOMACS 29, 2019).

        That is x · bound / 2³² for x of 32 bits, except a few x that are drawn again.
        """
        self.at(*ids)
        product = (self._raw() & WORD) * bound
        if bound <= product & WORD and bound < WORD:
            return product >> 32
        return int(self.at(*ids).integers(bound))
