"""Numbers of claims from recorded runs: metrics of samples, and functions of the runs of a seed.

`asyncfl claims run` calls `measured`, and stores the numbers. If no column has the needed number, an entry
names a function as its `metric`, for example `reports.claims.measured:kept_bytes`: `zigzag` and the like are
used from benchmarks/claims/. Such a function can read training losses (fp/*, sp/*) in the last row only,
unless the scenario has `evaluate: clients`.

Fixed: names of functions that claims name as `metric`, and how a number is read off a run: stored numbers
would no longer repeat.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np

from benchmarks.claims.claim import DIVERGED, Claim, Sample
from benchmarks.claims.plan import ClaimPlan
from benchmarks.claims.stored_numbers import Number
from benchmarks.errors import UserError
from benchmarks.mlflow_store.run_result import RunResult
from fl_core import import_guard
from fl_core.diagnostics.volatility import volatility
from fl_core.metrics import FP_LOSS
from fl_core.recorded_names import BY_BUDGET, Clock, Name, Status, Total
from fl_core.time_to_target import time_to_target
from reports.numbers import measure_of
from reports.records.seed_summaries import value_at


def kept_bytes(runs: Sequence[RunResult]) -> float:
    """Bytes kept at the end, at the server and at the clients, where ACE's incremental form has a cache."""
    (run,) = runs
    return run.metrics[Total.KEPT_BY_SERVER] + run.metrics[Total.KEPT_BY_CLIENTS]


def zigzag(runs: Sequence[RunResult]) -> float:
    """Standard deviation of the steps of the accuracy over the second half of a run's evaluations."""
    (run,) = runs
    accuracy = run.files.curve["test/accuracy"].tolist()
    return volatility(accuracy[len(accuracy) // 2 :]).step_std


def slowest_accuracy(runs: Sequence[RunResult]) -> float:
    """Accuracy of a recorded run's last model on the data of the slowest client."""
    clients = runs[0].files.clients
    return float(clients["accuracy"][clients[Name.MEAN_TIME].argmax()])


def other_accuracy(runs: Sequence[RunResult]) -> float:
    """Mean accuracy of a recorded run's last model over all clients but the slowest."""
    clients = runs[0].files.clients
    return float(np.nanmean(np.delete(clients["accuracy"], clients[Name.MEAN_TIME].argmax())))


def unusable_share(runs: Sequence[RunResult]) -> float:
    """Share of recorded runs, for pairs of η_l and K, diverging or ending above twice the smallest loss."""
    finals = [float(run.files.curve[FP_LOSS][-1]) if run.status.finite else math.inf for run in runs]
    return sum(final > 2 * min(finals) for final in finals) / len(finals)


# Reductions over several runs. A diverged run has no number (NaN), and is never the best.
OVER: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": np.mean,
    "min": np.fmin.reduce,
    "max": np.fmax.reduce,
    "sum": sum,
}


def measured(plan: ClaimPlan, claim: Claim, recorded: Mapping[str, RunResult]) -> list[Number]:
    """Return the numbers of a claim, for seeds with all runs (by key) ended."""
    picked = plan.picked(claim)
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in picked.values())))
    numbers = []
    for seed in seeds:
        keys = {name: [run.key for run in by_seed[seed]] for name, by_seed in picked.items()}
        if all(key in recorded and recorded[key].whole for of_sample in keys.values() for key in of_sample):
            numbers += _of_seed(
                claim, seed, {name: [recorded[key] for key in of_sample] for name, of_sample in keys.items()}
            )
    return numbers


def _of_seed(claim: Claim, seed: int, runs: Mapping[str, Sequence[RunResult]]) -> list[Number]:
    """Return a number for each sample of a claim under a seed."""
    shared = _shared(claim, runs)
    return [
        Number(
            claim.id,
            name,
            seed,
            _number(claim, sample, runs[name], shared if sample.at == "shared" else sample.at),
            " ".join(run.key for run in runs[name]),
            max(run.ended.isoformat(timespec="seconds") if run.ended else "" for run in runs[name]),
            _origin(runs[name]),
        )
        for name, sample in claim.samples.items()
    ]


def _shared(claim: Claim, runs: Mapping[str, Sequence[RunResult]]) -> float:
    """Return the last clock value reached by all runs, without diverged and stalled runs."""
    finished_runs = [run for of_sample in runs.values() for run in of_sample if run.status is Status.DONE]
    return min((float(run.files.curve[_column(claim)][-1]) for run in finished_runs), default=inf)


def _column(claim: Claim) -> str:
    """Return the column of the clock of a claim; client updates by default."""
    return BY_BUDGET[claim.clock] if claim.clock else Clock.UPDATES


def _number(claim: Claim, sample: Sample, runs: Sequence[RunResult], at: float | str | None) -> float:
    """Return the value of a sample for a seed."""
    metric = sample.metric or ""
    if ":" in metric:
        return float(_function(metric)(runs))
    end = at if isinstance(at, int | float) else inf
    values = [_of_run(claim, sample, run, end) for run in runs]
    return float(values[0] if sample.over is None else OVER[sample.over](values))


def _of_run(claim: Claim, sample: Sample, run: RunResult, end: float) -> float:
    """Return the value of a sample in one run, read up to `end` on the claim's clock."""
    metric = sample.metric or ""
    if metric == DIVERGED.name:
        return float(run.status is Status.DIVERGED)
    curve = run.files.curve
    if metric not in curve:
        if metric in run.metrics:
            return run.metrics[metric]
        available = ", ".join([*curve, *run.metrics, DIVERGED.name])
        raise UserError(f"claims.{claim.id}: metric: no run has '{metric}'. Available: {available}")
    clock, column = curve[_column(claim)].astype(float), curve[metric].astype(float)
    if sample.reach is not None:
        higher = measure_of(run, metric).higher
        return time_to_target(clock, column, sample.reach, claim.sign > 0 if higher is None else higher)
    if run.status is Status.DIVERGED:
        return nan
    if sample.along == "last":
        return float(value_at(np.array([min(end, clock[-1])]), clock, column)[0])
    return _along(sample.along, column[clock <= end])


def _along(function: str, column: np.ndarray) -> float:
    """Return a statistic of a curve by name: NumPy's `mean`, `std`, …, or one of `Volatility`."""
    if function in {"step_std", "spikes"}:
        return float(getattr(volatility(list(column)), function)) if len(column) > 2 else nan
    return float(getattr(np, function)(column)) if len(column) else nan


def _function(path: str) -> Callable[..., Any]:
    """Return the function at an import path; only this package's, unless code is allowed."""
    if not path.startswith("reports.claims.") and not import_guard.ALLOWED.get():
        raise UserError(f"{path} is not imported, since a claims file names it: {import_guard.HOW}")
    try:
        function: Callable[..., Any] = import_guard.load(path)
    except (ImportError, AttributeError) as error:
        raise UserError(f"{path}: no such function ({error}). Correct the path") from None
    return function


def _origin(runs: Sequence[RunResult]) -> str:
    """Return commits, versions, and digests of the data sets or feature files of runs."""

    def joined(texts: Iterable[str]) -> str:
        return " ".join(dict.fromkeys(filter(None, texts)))

    versions = joined(f"{name} {number}" for name, number in runs[0].versions.items())
    digests = joined(run.data.get("data", "") for run in runs)
    return f"{joined(run.commit for run in runs) or 'no commit'}, {versions}" + (
        digests and f", data {digests}"
    )
