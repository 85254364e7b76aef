"""Summary of a strategy's seeds in a scenario: the mean curve, and the spread of final values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tracking import parquet
from benchmarks.tracking.artifact_locations import fetched
from benchmarks.tracking.mlflow_entities import METRICS, NO_METRICS
from benchmarks.tracking.run_result import RunResult
from fl_core.schema import CURVE, ITERATION, SEED, SPREAD, TO_TARGET, Status, Total

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Metric, Param

RARE = (Total.NON_FINITE, Total.MISREAD)  # counts, recorded only above 0


def metrics_of(seeds: Sequence[RunResult], tracking_uri: str) -> Iterator[Metric]:
    """Yield all metrics of a group for MLflow; diverged runs are counted, and left out of means.

    Runs that stalled are counted, too, but their models would not change any more: they are in the means.
    """
    from mlflow.entities import Metric

    done = [seed for seed in seeds if not diverged(seed)]
    ended, last = max(seed.end_time for seed in seeds), 0
    finals: dict[str, float] = {}
    if done:
        curve = mean_curve([_curve(seed, tracking_uri) for seed in done]).rename(columns=METRICS)
        last = int(curve.index[-1])
        finals = dict(spread([seed.metrics for seed in done], curve))
        for row in curve.drop(columns=list(NO_METRICS), errors="ignore").reset_index().to_dict("records"):
            step = int(row.pop(ITERATION))
            values = {str(name): value for name, value in row.items() if not np.isnan(value)}
            yield from (Metric(name, value, ended, step) for name, value in values.items())
    finals |= reached([seed.metrics for seed in seeds])
    stalled = sum(seed.status is Status.STALLED for seed in seeds)
    counts: dict[str, int] = {
        Total.SEEDS_DONE: len(done) - stalled,
        Total.SEEDS_DIVERGED: len(seeds) - len(done),
    }
    if stalled:
        counts[Total.SEEDS_STALLED] = stalled
    for name, value in {**finals, **counts}.items():
        yield Metric(name, value, ended, last)


def params_of(seeds: Sequence[RunResult]) -> list[Param]:
    """Return the parameters common to all seeds, without the seed."""
    from mlflow.entities import Param

    shared = set.intersection(*(set(seed.params.items()) for seed in seeds))
    return [Param(name, value) for name, value in sorted(shared) if name != SEED]


def reached(finals: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return median clocks at the target over all seeds; misses count as ∞, infinite medians are left out."""
    medians = {name: np.median([metrics.get(name, np.inf) for metrics in finals]) for name in TO_TARGET}
    return {name: float(median) for name, median in medians.items() if np.isfinite(median)}


def diverged(seed: RunResult) -> bool:
    """Return whether the seed's model or loss became non-finite."""
    return seed.status is Status.DIVERGED


def mean_curve(curves: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the mean over seeds of all columns, clocks too, by server iteration, with a row for the end.

    A curve is a step function of its server iteration, constant between two evaluations and after the last.
    The k-th row stands at the first iteration at which every seed was evaluated k times or had ended. There,
    the clocks of a seed say when that version was evaluated; past its last version, when the run ended. Where
    runs went on after their last version, the last iteration has a second row, at the mean of their ends. So
    the mean of one curve is that curve. What some seed did not evaluate is NaN.
    """
    import pandas as pd

    seeds = [curve.set_index(ITERATION).astype(float) for curve in curves]
    evaluated = [pd.Series(seed.index.unique()) for seed in seeds]
    marks = pd.concat(evaluated, axis=1).ffill().max(axis=1).unique().astype(int)
    mean = _mean([_at(marks, seed) for seed in seeds])
    end = _mean([seed.iloc[[-1]].set_axis(marks[-1:]) for seed in seeds])
    rows = [mean] if end.equals(mean.iloc[[-1]]) else [mean, end]
    return pd.concat(rows).rename_axis(ITERATION)


def _at(marks: np.ndarray, seed: pd.DataFrame) -> pd.DataFrame:
    """Return a curve at the marks, as of each version's evaluation; past the last version, as of the end."""
    rows = seed[~seed.index.duplicated()].reindex(marks, method="ffill")
    rows.loc[marks > seed.index[-1]] = seed.iloc[-1].to_numpy()
    return rows


def _mean(seeds: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the mean of tables with equal rows."""
    import pandas as pd

    columns = seeds[0].columns
    mean = np.mean([seed.reindex(columns=columns).to_numpy() for seed in seeds], axis=0)
    return pd.DataFrame(mean, seeds[0].index, columns)


def spread(finals: Sequence[Mapping[str, float]], curve: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Yield means of values measured once a run, and sample standard deviations of a curve's final values.

    What a seed lacks has neither, but counts that are recorded only above 0.
    """
    for name in dict.fromkeys(name for metrics in finals for name in metrics):
        values = [metrics.get(name, 0.0 if name in RARE else np.nan) for metrics in finals]
        if name in TO_TARGET or np.isnan(values).any():
            continue
        if name not in curve:
            yield name, float(np.mean(values))
        elif len(values) > 1 and name not in METRICS.values():
            yield f"{SPREAD}{name}", float(np.std(values, ddof=1))


def _curve(seed: RunResult, tracking_uri: str) -> pd.DataFrame:
    with fetched(seed.artifact_uri, tracking_uri, [CURVE.file]) as folder:
        return parquet.read(folder, CURVE)
