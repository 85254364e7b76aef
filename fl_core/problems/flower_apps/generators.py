"""The global random generators of Python, NumPy and torch, which code of users draws from.

Calls of a Flower app are seeded; trials of a user's module leave the generators as they were.

Fixed: the seeds, from which the code of apps draws.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from fl_core.streams import stream


@contextmanager
def restored() -> Iterator[None]:
    """Restore the global generators on exit."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])


@contextmanager
def seeded(seed: int, purpose: str, *ids: int) -> Iterator[None]:
    """Seed the global generators from the stream for a purpose; restore their states on exit."""
    drawn = int(stream(seed, purpose, *ids).integers(2**32))
    with restored():
        random.seed(drawn)
        np.random.seed(drawn)  # noqa: NPY002
        torch.default_generator.manual_seed(drawn)  # `torch.manual_seed` takes 1 ms without a GPU
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.manual_seed_all(drawn)
        yield
