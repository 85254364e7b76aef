"""Shared code of all laws of timing: a random share of the clients, and labels for tables and figures.

Fixed: the clients of `chosen`. Labels are in no key, but recorded, and suites name scenarios by them.
"""

import functools
from collections.abc import Iterable
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

from fl_core.parts import Part, exact
from fl_core.streams import stream


@functools.lru_cache(maxsize=32)
def chosen(share: float, n: int, seed: int, purpose: str) -> frozenset[int]:
    """Return ⌊share · n + ½⌋ of the clients 0 … n−1, at random.

    Shares are nested: under one seed, a client among 30 % is also among 50 %.
    """
    count = floor(exact(share) * n + Fraction(1, 2))
    return frozenset(stream(seed, purpose).permutation(n)[:count].tolist())


def label(part: Part, head: str = "", except_for: Iterable[str] = ()) -> str:
    """Return a label: `head` (or the name), and non-default fields except for `except_for`."""
    words = [head or part.reference().rpartition(":")[2].replace("_", "-")]
    for key, value in part.changed().items():
        if key not in except_for:
            words.append(key.replace("_", " ") + ("" if value is True else f" {plain(value)}"))
    return " ".join(words)


def plain(value: Any) -> str:
    """Return a value in plain notation; for more than four numbers, the smallest and the largest."""
    if isinstance(value, tuple) and len(value) > 4:
        return f"{float(min(value)):.3g} … {float(max(value)):.3g}"
    if isinstance(value, tuple):
        return ", ".join(map(plain, value))
    if isinstance(value, Path):
        return value.name
    return f"{float(value):g}" if isinstance(value, float | Fraction) else str(value)
