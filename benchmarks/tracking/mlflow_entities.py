"""A run's result as metrics and data sets of MLflow's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.tracking.run_result import RunResult, text
from fl_core.schema import Clock, Kind, Name, Tag

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Metric

# Columns of a curve that are metrics under another name, and those that are none.
METRICS = {clock.value: clock.metric for clock in Clock if clock.metric}
NO_METRICS = {Clock.ITERATION.value, Name.UPLOADS, Name.DOWNLOADS, Name.TOKENS}

# Clocks that MLflow has of a trial, beside the metrics that rank
CURVE_OF_TRIAL = {Clock.UPDATES, Clock.TIME}

MAX_DIGEST_CHARACTERS = 36


def data_set_of(tags: Mapping[str, str], of_seeds: bool = False) -> list[DatasetInput]:
    """Return the data set for MLflow: the problem's name, and digests of the data and the partition.

    Of a group only the data: its seeds have partitions of their own.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    try:
        digests = json.loads(tags.get(Tag.DATA, "{}")).items()
    except (ValueError, AttributeError):  # a tag that was damaged
        return []
    left_out = {"weights", "partition"} if of_seeds else {"weights"}
    data = {name: str(value) for name, value in digests if name not in left_out}
    if not data:
        return []
    name = " · ".join(filter(None, [tags[Tag.PROBLEM], tags.get(Tag.PARTITION, "")]))
    data_set = Dataset(name, "-".join(data.values())[:MAX_DIGEST_CHARACTERS], "asyncfl", text(data))
    return [DatasetInput(data_set, [InputTag("mlflow.data.context", "training")])]


def metrics_of(result: RunResult, curve: Mapping[str, Sequence[float | None]]) -> Iterator[Metric]:
    """Yield every evaluation with server iteration and real time, then the metrics of the whole run.

    Each point once, as in MLflow's tables: two marks without a step between them may fall into a millisecond.
    """
    from mlflow.entities import Metric

    points: dict[tuple[str, str, int, int], Metric] = {}
    iteration = 0
    few = {*CURVE_OF_TRIAL, result.tags.get(Tag.METRIC)} if result.kind == Kind.TRIAL else None
    names = {column: METRICS.get(column, column) for column in curve if column not in NO_METRICS}
    columns = {column: name for column, name in names.items() if few is None or column in few}
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
