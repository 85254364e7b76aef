"""Costs over sizes, and the power laws that they follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import torch

from benchmarks.speed.growth.axes import AXES, Axis
from benchmarks.speed.growth.fit import power_law

REPEATS = 5
QUICK = 2, 100_000  # repeats, largest size

Tell = Callable[[str], None]


def measure(
    tell: Tell, axes: Sequence[Axis] = AXES, repeats: int = REPEATS, largest: int | None = None
) -> list[dict[str, Any]]:
    """A row for each axis: sizes, medians of interleaved repeats in seconds of processor time, and the fit.

    Sizes above `largest` are left out. On one thread.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [_measured(axis, tell, repeats, largest) for axis in axes]
    finally:
        torch.set_num_threads(threads)


def _measured(axis: Axis, tell: Tell, repeats: int, largest: int | None) -> dict[str, Any]:
    sizes = [size for size in axis.sizes if largest is None or size <= largest]
    tell(f"{axis.cost}, {axis.grows} from {sizes[0]:,} to {sizes[-1]:,}")
    arms = {size: axis.arm(size) for size in sizes}
    arms[sizes[0]]()  # so that no measurement contains what only the first call does
    found: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(repeats):
        for size, measured in arms.items():
            found[size].append(measured())
    seconds = [median(found[size]) for size in sizes]
    about = {"grows": axis.grows, "cost": axis.cost, "sizes": sizes, "seconds": seconds}
    return {**about, **asdict(power_law(sizes, seconds))}
