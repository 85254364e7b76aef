"""A run's diagnostics in a few numbers."""

from collections.abc import Sequence

import numpy as np

from fl_core.schema import Clock, Name

CLOCKS = {*Clock, Name.ROUND_TIME}


def summary(rows: Sequence[dict[str, float]], n: int) -> dict[str, float]:
    """Return every column's mean over the rows [t] that have a value, and two further statistics.

    gradient_sq_time_weighted: (1/(T+1)) Σ 𝔱_t ‖∇F(w^t)‖²; part_share: share of iterations in which fewer than
    the n clients had a weight.
    """
    columns = dict.fromkeys(name for row in rows for name in row if name not in CLOCKS)
    means = {name: float(np.mean([row[name] for row in rows if name in row])) for name in columns}
    if Name.GRADIENT in columns:
        measured = [(row[Name.GRADIENT], row[Name.ROUND_TIME]) for row in rows if Name.GRADIENT in row]
        means["gradient_sq_time_weighted"] = time_weighted(*zip(*measured, strict=True))
    if Name.PARTICIPANTS in columns:
        means["part_share"] = part_share(
            [row[Name.PARTICIPANTS] for row in rows if Name.PARTICIPANTS in row], n
        )
    return means


def part_share(participants: Sequence[float], n: int) -> float:
    """Return the share of server iterations in which only part of the n clients had a weight."""
    return float(np.mean(np.asarray(participants) < n))


def time_weighted(gradient_sq: Sequence[float], round_time: Sequence[float]) -> float:
    """Return (1/(T+1)) Σ 𝔱_t ‖∇f(w_t)‖², 𝔱_t the length of round t (Alahyane et al., 2502.08206, eq. 12)."""
    return float(np.mean(np.asarray(gradient_sq) * np.asarray(round_time)))
