"""A run's diagnostics in a few numbers."""

from collections.abc import Sequence

import numpy as np

from fl_core.schema import Clock, Name

CLOCKS = {*Clock, Name.ROUND_TIME}


def summary(rows: Sequence[dict[str, float]], n: int) -> dict[str, float]:
    """Return every column's mean over the rows [t] with a value, and two further statistics.

    gradient_sq_time_weighted: (1/(T+1)) Σ 𝔱_t ‖∇F(w^t)‖², 𝔱_t the length of round t (Alahyane et al.,
    2502.08206, eq. 12); part_share: share of iterations in which fewer than the n clients had a weight.
    """
    columns = dict.fromkeys(name for row in rows for name in row if name not in CLOCKS)
    means = {name: float(np.mean([row[name] for row in rows if name in row])) for name in columns}
    if Name.GRADIENT in columns:
        weighted = [row[Name.GRADIENT] * row[Name.ROUND_TIME] for row in rows if Name.GRADIENT in row]
        means["gradient_sq_time_weighted"] = float(np.mean(weighted))
    if Name.PARTICIPANTS in columns:
        part = [row[Name.PARTICIPANTS] < n for row in rows if Name.PARTICIPANTS in row]
        means["part_share"] = float(np.mean(part))
    return means
