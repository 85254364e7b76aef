"""Comparison of runs in real time with equal runs in virtual time."""

from __future__ import annotations

from statistics import mean, stdev
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.errors import UserError
from fl_core.schema import TIME, Clock, Total

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.tracking.run_result import RunResult
    from benchmarks.tracking.store import Store

COLUMNS = (
    "scenario",
    "strategy",
    "runs",
    "time, real / virtual",
    "to target, real / virtual",
    "staleness, virtual",
    "staleness, real",
    "participation moved",
    "final, virtual",
    "final, real",
    "server busy",
)


def rows(real: str, virtual: str, store: Store) -> list[Sequence[str]]:
    """Return a row for each strategy of each scenario, from seeds with updates in both times.

    Ratios and values are means over runs with standard deviations. What moved of the participation is half
    the sum of differences between the clients' shares of all updates, 0 … 1.

    Raises:
        UserError: The first suite ran in virtual time, or no run with updates ended in both.
    """
    from benchmarks.commands.report import load

    lived, simulated = (
        {
            place(run): run
            for run in load(store, name).runs
            if run.whole and Total.STALENESS_MEAN in run.metrics
        }
        for name in (real, virtual)
    )
    if not all(Total.SERVER_BUSY in run.metrics for run in lived.values()):
        raise UserError(f"{real} ran in virtual time: name a suite that asyncfl live recorded")
    if not lived.keys() & simulated.keys():
        raise UserError(f"{real} and {virtual} have no run of the same scenario, strategy and seed")
    pairs: dict[tuple[str, str], list[tuple[RunResult, RunResult]]] = {}
    for at in lived.keys() & simulated.keys():
        pairs.setdefault(at[:2], []).append((lived[at], simulated[at]))
    return [(*at, *_row(pairs[at])) for at in sorted(pairs)]


def place(run: RunResult) -> tuple[str, str, int]:
    """Return scenario, strategy and seed of a run, shared with the run in the other time."""
    return run.scenario, run.strategy, run.seed


def _row(pairs: Sequence[tuple[RunResult, RunResult]]) -> list[str]:
    to_target = Clock.TIME.to_target
    reached = [pair for pair in pairs if all(to_target in run.metrics for run in pair)]
    reals, virtuals = zip(*pairs, strict=True)
    return [
        str(len(pairs)),
        text(_ratios((real.final(TIME), virtual.final(TIME)) for real, virtual in pairs)),
        text(_ratios((real.metrics[to_target], virtual.metrics[to_target]) for real, virtual in reached)),
        *(text([run.metrics[Total.STALENESS_MEAN] for run in runs]) for runs in (virtuals, reals)),
        text([_moved(*(run.files.participation for run in pair)) for pair in pairs]),
        *(text([run.final(run.metric) for run in runs]) for runs in (virtuals, reals)),
        text([real.metrics[Total.SERVER_BUSY] for real in reals]),
    ]


def _ratios(times: Iterable[tuple[float, float]]) -> list[float]:
    """Return ratios of real to virtual times, without virtual times of 0 (first model meets the target)."""
    return [real / virtual for real, virtual in times if virtual]


def _moved(real: np.ndarray, virtual: np.ndarray) -> float:
    size = max(len(real), len(virtual))
    shares = [np.pad(counts, (0, size - len(counts))) / counts.sum() for counts in (real, virtual)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def text(values: Sequence[float]) -> str:
    """Return a mean with the standard deviation as text; empty without values."""
    if not values:
        return ""
    spread = f" ± {stdev(values):.2g}" if len(values) > 1 else ""
    return f"{mean(values):.3g}{spread}"
