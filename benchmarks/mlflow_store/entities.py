"""Results of runs and groups as MLflow's metrics, parameters and data sets.

`Tracking` writes them. A group is a strategy in a scenario; its metrics are the mean curve of its seeds and
the spread of final values. Reports do not read these means, which are for MLflow's own pages.

Fixed: names of metrics, parameters and data sets. Free: means and spreads of groups.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.mlflow_store import parquet
from benchmarks.mlflow_store.artifact_locations import fetched
from benchmarks.mlflow_store.run_result import RunResult, text
from fl_core.recorded_names import (
    CURVE,
    ITERATION,
    SEED,
    SPREAD,
    TO_TARGET,
    Clock,
    Kind,
    Name,
    Status,
    Tag,
    Total,
)

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import DatasetInput, Metric, Param

# Columns of a curve that are metrics under another name, and columns that become no metric.
METRICS = {clock.value: clock.metric for clock in Clock if clock.metric}
NO_METRICS = {Clock.ITERATION.value, Name.UPLOADS, Name.DOWNLOADS, Name.TOKENS}

# Columns of a trial's curve in MLflow, besides the metric of the objective: trials are many, and writing
# takes time
CURVE_OF_TRIAL = {Clock.UPDATES, Clock.TIME}

MAX_DIGEST_CHARACTERS = 36
OPTIONAL_COUNTS = (Total.NON_FINITE, Total.MISREAD)  # counts, recorded only above 0


def data_set_of(tags: Mapping[str, str], of_seeds: bool = False) -> list[DatasetInput]:
    """Return the data set for MLflow: the problem's name, and digests of the data and the partition.

    For a group, with `of_seeds`, only the digest of the data: each seed has another partition.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    try:
        digests = json.loads(tags.get(Tag.DATA, "{}")).items()
    except (ValueError, AttributeError):  # a damaged tag
        return []
    left_out = {"weights", "partition"} if of_seeds else {"weights"}
    data = {name: str(value) for name, value in digests if name not in left_out}
    if not data:
        return []
    name = " · ".join(filter(None, [tags[Tag.PROBLEM], tags.get(Tag.PARTITION, "")]))
    data_set = Dataset(name, "-".join(data.values())[:MAX_DIGEST_CHARACTERS], "asyncfl", text(data))
    return [DatasetInput(data_set, [InputTag("mlflow.data.context", "training")])]


def metrics_of_run(result: RunResult, curve: Mapping[str, Sequence[float | None]]) -> Iterator[Metric]:
    """Yield every evaluation with server iteration and real time, then the metrics of the whole run.

    Equal points are written once, since MLflow's table refuses duplicates: two marks without a step in
    between may fall into the same millisecond.
    """
    from mlflow.entities import Metric

    points: dict[tuple[str, str, int, int], Metric] = {}
    iteration = 0
    chosen = {*CURVE_OF_TRIAL, result.tags.get(Tag.METRIC)} if result.kind == Kind.TRIAL else None
    names = {column: METRICS.get(column, column) for column in curve if column not in NO_METRICS}
    columns = {column: name for column, name in names.items() if chosen is None or column in chosen}
    for row, moment in enumerate(result.evaluated):
        iteration = int(curve[Clock.ITERATION][row] or 0)
        for column, name in columns.items():
            if (value := curve[column][row]) is not None:  # None where it was not evaluated
                points[name, repr(value), moment, iteration] = Metric(name, value, moment, iteration)
    for name, value in result.metrics.items():
        points[name, repr(value), result.end_time, iteration] = Metric(
            name, value, result.end_time, iteration
        )
    yield from points.values()


def metrics_of_group(seeds: Sequence[RunResult], tracking_uri: str) -> Iterator[Metric]:
    """Yield all metrics of a group for MLflow; diverged runs are counted, and left out of means.

    Stalled runs are counted as well, but they are in the means, since their models would not change any more.
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


def params_of_group(seeds: Sequence[RunResult]) -> list[Param]:
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
    Row k is at the first iteration at which every seed was evaluated k times or had ended. The clocks of a
    seed there are those of its evaluation or, past its last version, those of its end. If runs continued
    after their last version, the last iteration has a second row with the mean of their ends: so the mean of
    a single curve is the curve itself. A metric that some seed did not evaluate is NaN.
    """
    import pandas as pd

    columns = curves[0].columns.drop(ITERATION)
    iterations = [curve[ITERATION].to_numpy() for curve in curves]
    values = [curve.reindex(columns=columns).to_numpy(float) for curve in curves]
    evaluated = [np.unique(of_seed) for of_seed in iterations]
    rows = max(map(len, evaluated))
    marks = np.unique(np.max([np.pad(at, (0, rows - len(at)), "edge") for at in evaluated], axis=0))
    means = [*np.mean([_at(marks, *seed) for seed in zip(iterations, values, strict=True)], axis=0)]
    end = np.mean([of_seed[-1] for of_seed in values], axis=0)
    if not np.array_equal(end, means[-1], equal_nan=True):
        means, marks = [*means, end], np.append(marks, marks[-1])
    return pd.DataFrame(means, pd.Index(marks, name=ITERATION), columns)


def _at(marks: np.ndarray, iterations: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a curve's rows at marks, as of each version's evaluation; past the last version, as of the end.

    Args:
        marks: Iterations, none before the curve's first.
        iterations: Iteration of each row of the curve, in order.
        values: The curve, rows × columns.
    """
    versions = iterations[np.searchsorted(iterations, marks, side="right") - 1]
    rows = np.searchsorted(iterations, versions)
    return values[np.where(marks > iterations[-1], -1, rows)]


def spread(finals: Sequence[Mapping[str, float]], curve: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Yield means of values measured once a run, and sample standard deviations of a curve's final values.

    A value that a seed lacks is left out, except `OPTIONAL_COUNTS`, where a missing value means 0.
    """
    for name in dict.fromkeys(name for metrics in finals for name in metrics):
        values = [metrics.get(name, 0.0 if name in OPTIONAL_COUNTS else np.nan) for metrics in finals]
        if name in TO_TARGET or np.isnan(values).any():
            continue
        if name not in curve:
            yield name, float(np.mean(values))
        elif len(values) > 1 and name not in METRICS.values():
            yield f"{SPREAD}{name}", float(np.std(values, ddof=1))


def _curve(seed: RunResult, tracking_uri: str) -> pd.DataFrame:
    with fetched(seed.artifact_uri, tracking_uri, [CURVE.file]) as folder:
        return parquet.read(folder, CURVE)
