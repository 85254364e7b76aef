"""Counts in words."""

from __future__ import annotations


def many(n: int, thing: str) -> str:
    """A count with its noun: 1 run, 84 runs, 1 strategy, 7 strategies."""
    if n == 1:
        return f"1 {thing}"
    return f"{n:,} {thing[:-1]}ies" if thing.endswith("y") else f"{n:,} {thing}s"
