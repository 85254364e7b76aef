"""A run recorded in MLflow: tags, and the contents of files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from math import inf, isfinite, nan
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from benchmarks.tracking.run_result import RunResult
from fl_core.metrics import Metric, from_text
from fl_core.schema import DIAGNOSED, OF_BUDGET, Clock, Reason, Status, Tag
from fl_core.time_to_target import meets, observed_until, time_to_target
from reports.numbers import Measure, measure

T = TypeVar("T", dict[str, Any], list[Any])


@lru_cache(maxsize=2**16)  # thousands of runs have the same
def clean(text: str) -> str:
    """Return a text without invisible characters and without characters invalid in HTML or XML."""
    if not text.isprintable():  # quick, and nearly all are
        text = re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+", " ", text)
    return text.strip()


def number(text: str) -> float | None:
    """Return the finite number in a text, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def parsed(text: str, otherwise: T) -> T:
    """Return the JSON in a text, or `otherwise` if invalid or of another type."""
    try:
        content = json.loads(text or "null")
    except ValueError:
        return otherwise
    return content if isinstance(content, type(otherwise)) else otherwise


def moment(milliseconds: int | None) -> datetime | None:
    """Return a time stored by MLflow in milliseconds, or None."""
    return None if not milliseconds else datetime.fromtimestamp(milliseconds / 1000, UTC)


TARGET_MARKS = "problem.target_marks"  # the parameter of that name
Columns = Mapping[str, np.ndarray]  # a table; to make a frame of one takes longer than to read it


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Contents of a run's artifacts; missing artifacts are empty."""

    # One row per evaluation: iteration, updates, time, uploads_bytes, …, then metrics by name
    curve: Columns = field(default_factory=dict)
    # One row per client: client, importance, mean_time, size, loss, accuracy
    clients: Columns = field(default_factory=dict)
    # [2, values]: each staleness that occurred, in increasing order, and its updates
    staleness: np.ndarray = field(default_factory=lambda: np.zeros((2, 0), int))
    # [client], updates of each client
    participation: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    unread: str = ""  # why a file that should be there could not be read
    diagnostics: Columns = field(default_factory=dict)  # one row per diagnosed server iteration


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """Run of a strategy in a scenario under a seed."""

    id: str  # MLflow's
    key: str
    scenario: str  # label
    problem: str
    partition: str
    timing: str
    strategy: str
    paper: str
    seed: int
    status: Status
    reason: str
    metric: str
    higher_is_better: bool
    target: float | None
    show: tuple[str, ...]  # metrics that the suite shows first
    params: Mapping[str, str]
    totals: Mapping[str, float]  # metrics of the whole run by name: kept_bytes/server, staleness/mean, …
    started: datetime | None
    ended: datetime | None
    wall_seconds: float
    version: str
    commit: str
    versions: Mapping[str, str]
    data: Mapping[str, str]
    execution: str
    machine: str
    conditions: tuple[str, ...] = ()  # that the scenario's label joins: problem, partition, timing, …
    repository: str = ""  # commit of the repository in which the run was started
    processor: str = ""
    device: str = ""
    code: Mapping[str, str] = field(default_factory=dict)  # user's own classes → file and its digest
    superseded: bool = False  # the runner marked it as replaced by other runs of the same names
    metrics: tuple[Metric, ...] = ()  # as declared
    folder: str = ""  # where its files lie, by MLflow's address
    time_unit: str = ""  # name of the unit of virtual time; empty where nothing names it
    files: Files = field(default_factory=Files)

    @classmethod
    def of(cls, result: RunResult) -> RecordedRun:
        """Return a run from an MLflow result, possibly with many invalid values; files come later."""

        def read(tag: Tag, otherwise: str = "") -> str:
            return clean(result.tags.get(tag, "")) or otherwise

        def texts(tag: Tag) -> Mapping[str, str]:
            return _texts(read(tag))

        return cls(
            id=result.run_id,
            key=read(Tag.KEY),
            scenario=read(Tag.SCENARIO),
            conditions=tuple(map(str, parsed(read(Tag.CONDITIONS), []))),
            problem=read(Tag.PROBLEM),
            partition=read(Tag.PARTITION),
            timing=read(Tag.TIMING),
            strategy=read(Tag.STRATEGY),
            paper=read(Tag.PAPER),
            seed=int(read(Tag.SEED)),
            status=Status(read(Tag.STATUS)),
            reason=read(Tag.REASON),
            metric=read(Tag.METRIC),
            higher_is_better=read(Tag.HIGHER_IS_BETTER, "true").lower() != "false",
            target=number(read(Tag.TARGET)),
            show=tuple(name for part in read(Tag.SHOW).split(",") if (name := part.strip())),
            params={name: clean(value) for name, value in result.params.items()},
            totals=dict(result.metrics),
            started=moment(result.start_time),
            ended=moment(result.end_time),
            wall_seconds=number(read(Tag.WALL_SECONDS)) or 0.0,
            version=read(Tag.VERSION),
            commit=read(Tag.COMMIT),
            versions=texts(Tag.VERSIONS),
            data=texts(Tag.DATA),
            code=texts(Tag.CODE),
            execution=read(Tag.EXECUTION),
            machine=read(Tag.MACHINE),
            repository=read(Tag.REPOSITORY),
            processor=read(Tag.PROCESSOR),
            device=read(Tag.DEVICE),
            superseded=bool(read(Tag.SUPERSEDED)),
            metrics=from_text(read(Tag.METRICS)),
            folder=result.artifact_uri,
            time_unit=read(Tag.TIME_UNIT),
        )

    def measure(self, name: str) -> Measure:
        """Return a metric of the run."""
        return measure(name, self.metrics, self.higher_is_better if name == self.metric else None)

    @property
    def budget_clock(self) -> Clock | None:
        """Clock of the budget and of the evaluation marks; None if the budget has several clocks."""
        clocks = [clock for clock in Clock if f"{OF_BUDGET}{clock.budget}" in self.params]
        return clocks[0] if len(clocks) == 1 else None

    def with_files(self, files: Files) -> RecordedRun:
        """Return the run with files; unreadable if the run ended with a model but has no curve."""
        lost = self.status.finite and not files.curve
        return replace(self, files=files, status=Status.UNREADABLE if lost else self.status)

    @property
    def whole(self) -> bool:
        """True if the outcome is known and all files were read."""
        return self.status.terminated and not self.files.unread

    @property
    def diagnosed(self) -> bool:
        """True if the run left diagnostics."""
        return any(name.startswith(DIAGNOSED) for name in self.totals)

    @property
    def at_a_standstill(self) -> bool:
        """True if the model would never change again: diverged, stalled, or no client left."""
        return self.status in {Status.DIVERGED, Status.STALLED} or self.reason == Reason.NO_CLIENT

    def final(self, metric: str) -> float:
        """Return the metric at the last evaluation; NaN if not recorded or not finite."""
        curve = self.files.curve
        last = float(curve[metric][-1]) if metric in curve else nan
        return last if isfinite(last) else nan

    def time_to_target(self, clock: str, target: float | None) -> float:
        """Return the clock when the metric first met the target; ∞ if never, or without a target.

        NaN where the clock was not recorded.
        """
        curve = self.files.curve
        if target is None or self.metric not in curve:
            return inf
        if clock not in curve:
            return nan  # coded messages alone have bytes
        marks = int(self.params.get(TARGET_MARKS, 1))
        return time_to_target(curve[clock], curve[self.metric], target, self.higher_is_better, marks)

    def observed_until(self, time: float, clock: str) -> float:
        """Return the time under observation of a run with time to target `time`."""
        return observed_until(time, float(self.files.curve[clock][-1]), self.at_a_standstill)

    def misses_again(self, target: float) -> bool:
        """Return whether the run met the target, then missed the target at a later evaluation."""
        values = self.files.curve.get(self.metric, np.empty(0))
        met = meets(values, target, self.higher_is_better)
        return bool(np.any(met[:-1] & ~met[1:]))


@lru_cache  # thousands of runs have the same
def _texts(text: str) -> Mapping[str, str]:
    """Return the names and texts of a JSON object."""
    return MappingProxyType({name: str(value) for name, value in parsed(text, {}).items()})
