"""A record as MLflow's tags, parameters and metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Any

from benchmarks.errors import UserError
from benchmarks.tracking.outbox import OutboxRecord, Result
from benchmarks.tracking.reader import Entry
from fl_core.keys import is_older
from fl_core.schema import TAGS, Clock, Kind, Name, Status, Tag, Total
from fl_core.sources import digests

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Metric

LONGEST_PARAM, LONGEST_TAG = 6000, 8000  # characters

ALL = "clients"  # what is evaluated at every mark where a record does not say it: all training losses

# Columns of a curve that are metrics under another name, and those that are none.
METRICS = {clock.value: clock.metric for clock in Clock if clock.metric}
NO_METRICS = {Clock.ITERATION.value, Name.UPLOADS, Name.DOWNLOADS, Name.TOKENS}

LONGEST_DIGEST = 36  # characters

TEXT, DIGITS, STATUSES = "(?s).+", "[0-9]{1,18}", "|".join(Status)
LATEST = 253_402_300_800_000  # milliseconds from 1970 to the year 10000

# Kind of a run → tags without which it is not what it should be, and their form.
NEEDED: dict[str, dict[Tag, str]] = {
    Kind.RUN: dict.fromkeys((Tag.KEY, Tag.SCENARIO, Tag.STRATEGY, Tag.METRIC), TEXT)
    | {Tag.SEED: DIGITS, Tag.STATUS: STATUSES},
    Kind.GROUP: dict.fromkeys((Tag.SCENARIO, Tag.STRATEGY), TEXT),
    Kind.POOLED: {Tag.PROBLEM: TEXT, Tag.SEED: DIGITS},
    Kind.REPORT: {},
    Kind.STUDY: dict.fromkeys((Tag.STUDY, Tag.IDENTITY, Tag.SCENARIO, Tag.STRATEGY), TEXT),
    Kind.TRIAL: dict.fromkeys((Tag.KEY, Tag.IDENTITY, Tag.SCENARIO, Tag.STRATEGY), TEXT)
    | {Tag.TRIAL: DIGITS, Tag.SEED: DIGITS, Tag.STATUS: STATUSES},
}
CURVE_OF_TRIAL = {
    Clock.UPDATES,
    Clock.TIME,
}  # clocks that MLflow has of a trial, beside the metrics that rank


def must_be_current(entries: Iterable[Entry], store: str) -> None:
    """Raise UserError if an earlier version recorded a run, whose results may differ.

    Args:
        entries: Runs of a suite.
        store: Address of their store, without credentials.
    """
    if any(is_older(entry.tags.get(Tag.KEY, "")) for entry in entries):
        raise UserError(f"{store}: made by an earlier version of asyncfl; choose another folder with --store")


@dataclass(frozen=True, slots=True)
class Made:
    """How a run was made, or is to be made, as far as its key does not say it."""

    evaluate: str  # what is evaluated at its marks, as the text of an `Evaluate`
    code: Mapping[str, str]  # digests of the user's own code, by import path
    data: str = ""  # digest of the user's own data; empty where it is not known

    @classmethod
    def of(cls, about: Mapping[Tag, Any]) -> Made:
        """From the tags by which runs are searched."""
        data = about.get(Tag.DATA, {})
        return cls(about.get(Tag.EVALUATE, ALL), digests(about.get(Tag.CODE, {})), str(data.get("data", "")))

    def serves(self, wanted: Made) -> bool:
        """Whether this run has the training losses wanted at its marks, from the same code and data."""
        enough = wanted.evaluate in ("test", self.evaluate) or self.evaluate == ALL
        return enough and self.is_current(wanted)

    def is_current(self, wanted: Made) -> bool:
        """Whether this run was made by the user's code as it is, on the data as they are."""
        return self.code == wanted.code and (self.data == wanted.data or not (self.data and wanted.data))


def tags_of(result: Result) -> dict[str, str]:
    """The tags by which runs are searched."""
    own = {
        Tag.KIND: result.kind,
        Tag.KEY: result.key,
        Tag.SUITE: result.suite,
        Tag.STATUS: result.status,
        Tag.REASON: result.reason,
        Tag.WALL_SECONDS: round(result.seconds, 3),
    }
    return {tag: cut(text(value), LONGEST_TAG) for tag, value in {**result.about, **own}.items()}


def name_of(result: Result) -> str:
    """The name of its run in MLflow: a seed's begins with what tells it from its siblings."""
    if result.kind is not Kind.RUN:
        return result.name
    about = result.about
    return name_of_seed(about[Tag.SCENARIO], about[Tag.STRATEGY], about[Tag.SEED])


def name_of_seed(scenario: str, strategy: str, seed: object) -> str:
    """The name of a seed's run."""
    return f"seed {seed} · {strategy} · {scenario}"


def data_set_of(tags: Mapping[str, str], of_seeds: bool = False) -> list[DatasetInput]:
    """The data set as MLflow lists it: the problem's name, and digests of its data and their partition.

    Of a group only the data: its seeds have partitions of their own.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    try:
        known = json.loads(tags.get(Tag.DATA, "{}")).items()
    except (ValueError, AttributeError):  # a tag that was damaged
        return []
    left_out = {"weights", "partition"} if of_seeds else {"weights"}
    data = {name: str(value) for name, value in known if name not in left_out}
    if not data:
        return []
    name = " · ".join(filter(None, [tags[Tag.PROBLEM], tags.get(Tag.PARTITION, "")]))
    data_set = Dataset(name, "-".join(data.values())[:LONGEST_DIGEST], "asyncfl", text(data))
    return [DatasetInput(data_set, [InputTag("mlflow.data.context", "training")])]


def metrics_of(record: OutboxRecord, result: Result) -> Iterator[Metric]:
    """Every evaluation at its server iteration and real time, with the other clocks; then the whole run.

    Each point once, as in MLflow's tables: two marks without a step between them may fall into a millisecond.
    """
    from mlflow.entities import Metric

    points: dict[tuple[str, str, int, int], Metric] = {}
    iteration = 0
    few = {*CURVE_OF_TRIAL, result.about.get(Tag.METRIC)} if result.kind is Kind.TRIAL else None
    for row, when in zip(record.curve, result.evaluated, strict=True):
        iteration = int(row[Clock.ITERATION])
        for column, value in row.items():
            if few is not None and column not in few:
                continue
            if column not in NO_METRICS and value is not None:  # None where it was not evaluated
                name = METRICS.get(column, column)
                points[name, repr(value), when, iteration] = Metric(name, value, when, iteration)
    for name, value in {**result.metrics, Total.WALL_SECONDS: result.seconds}.items():
        points[name, repr(value), result.ended, iteration] = Metric(name, value, result.ended, iteration)
    yield from points.values()


def params_of(description: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested data as dotted keys: `strategy.local_lr`, `problem.partition.alpha`."""
    for key, value in description.items():
        if isinstance(value, dict):
            yield from params_of(value, "" if key == "scenario" else f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", cut(text(value), LONGEST_PARAM)


def now() -> int:
    """Milliseconds since 1970."""
    return int(time() * 1000)


def text(value: Any) -> str:
    """A value as a tag or parameter shows it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def cut(long: str, length: int) -> str:
    """Not more than MLflow takes; the whole is in description.json."""
    return long if len(long) <= length else long[: length - 1] + "…"


def valid_tags(tags: Mapping[str, object]) -> dict[str, str]:
    """Return the tags that are texts, as all are unless they are damaged."""
    return {name: value for name, value in tags.items() if isinstance(name, str) and isinstance(value, str)}


def fault_of(run: Entry) -> str:
    """Return what is wrong with a run in MLflow; empty if nothing is, or if it is none of ours."""
    ours = any(str(name).startswith(TAGS) for name in run.tags)
    return next(_faults(run), "") if ours else ""


def _faults(run: Entry) -> Iterator[str]:
    tags = run.tags
    for table in (tags, run.params, dict.fromkeys(run.metrics, "")):
        usual = {*map(type, table), *map(type, table.values())} <= {str}
        if other := set() if usual else table.keys() - valid_tags(table).keys():
            yield f"{min(map(str, other))}: must be a text"
            return
    kind = tags.get(Tag.KIND, "")
    for tag, allowed in NEEDED.get(kind, {Tag.KIND: "|".join(NEEDED)}).items():
        if not re.fullmatch(allowed, value := tags.get(tag, "")):
            yield f"tag {tag}: is '{value}'"
    if other := {name for name, value in run.metrics.items() if not isinstance(value, int | float)}:
        yield f"metric {min(map(str, other))}: must be a number"
    for name, when in (("start_time", run.start_time), ("end_time", run.end_time)):
        if not (isinstance(when, int) and 0 <= when < LATEST):
            yield f"{name}: must be milliseconds since 1970"
    if not isinstance(run.artifact_uri, str):
        yield "artifact_uri: must be an address"
