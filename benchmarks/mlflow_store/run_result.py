"""Outcomes of runs and trials: written once by a worker, kept by MLflow, read by all reports and commands.

Groups, studies and report pages are runs in MLflow, too, and are read in the same form.

Fixed: names of tags, metrics and parameters (`fl_core/recorded_names.py`), and the fields stored in
result.json; how final values, times to target and the value of a trial are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from math import inf, isfinite, nan
from statistics import fmean
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from benchmarks.errors import UserError
from fl_core.keys import is_older
from fl_core.metrics import Metric, from_text
from fl_core.recorded_names import (
    DIAGNOSED,
    JOINT,
    OF_BUDGET,
    TAGS,
    Clock,
    Kind,
    MlflowTag,
    Reason,
    Status,
    Tag,
    Total,
    TrialMetric,
    TrialState,
)
from fl_core.text import varying
from fl_core.time_to_target import meets, observed_until, time_to_target
from fl_core.user_code import digests

if TYPE_CHECKING:
    from mlflow.entities import Run

T = TypeVar("T", dict[str, Any], list[Any])

MAX_PARAM_CHARACTERS, MAX_TAG_CHARACTERS = 6000, 8000
MAX_NAME_CHARACTERS = 40  # of a run's name, of which MLflow shows no more beside its charts
ALL_LOSSES = "clients"  # text of an `Evaluate`: all training losses at every mark, the default of a record

TOTALS = frozenset(Total)

# Regular expressions of tags:
TEXT, DIGITS, STATUSES = "(?s).+", "[0-9]{1,18}", "|".join(Status)
MAX_MILLISECONDS = 253_402_300_800_000  # milliseconds from 1970 to the year 10000

# Kind of a run → its required tags, and the pattern of each. A run that violates them counts as damaged.
REQUIRED_TAGS: dict[str, dict[Tag, str]] = {
    Kind.RUN: dict.fromkeys((Tag.KEY, Tag.SCENARIO, Tag.STRATEGY, Tag.METRIC), TEXT)
    | {Tag.SEED: DIGITS, Tag.STATUS: STATUSES},
    Kind.GROUP: dict.fromkeys((Tag.SCENARIO, Tag.STRATEGY), TEXT),
    Kind.POOLED: {Tag.PROBLEM: TEXT, Tag.SEED: DIGITS},
    Kind.REPORT: {},
    Kind.STUDY: dict.fromkeys((Tag.STUDY, Tag.IDENTITY, Tag.SCENARIO, Tag.STRATEGY), TEXT),
    Kind.TRIAL: dict.fromkeys((Tag.KEY, Tag.IDENTITY, Tag.SCENARIO, Tag.STRATEGY), TEXT)
    | {Tag.TRIAL: DIGITS, Tag.SEED: DIGITS, Tag.STATUS: STATUSES},
}

TARGET_MARKS = "problem.target_marks"  # name of the parameter

Columns = Mapping[str, np.ndarray]  # a table by column; making a data frame would take longer than reading
Pair = tuple[str, str]  # labels of scenario and strategy, which identify a group or a study
Place = tuple[str, str, str, str]  # scenario, strategy, trial, seed: all that users see of a run


class MlflowStatus(StrEnum):
    """MLflow's status of a run."""

    RUNNING = "RUNNING"  # until the run is completely written
    FINISHED = "FINISHED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class RunRequirements:
    """Properties of a run not covered by the run's key: conditions for using a recorded run again."""

    evaluate: str  # data evaluated at every mark, as the text of an `Evaluate`
    code: Mapping[str, str]  # digests of the user's own code, by import path
    data: str = ""  # digest of the user's own data; empty if unknown

    @classmethod
    def of(cls, about: Mapping[Tag, Any]) -> Self:
        """Return the requirements of a planned run, from tags not yet converted to texts."""
        return cls(about.get(Tag.EVALUATE, ALL_LOSSES), digests(about.get(Tag.CODE, {})))

    def serves(self, requirements: RunRequirements) -> bool:
        """Return whether the run has the required training losses, from current code and data."""
        enough = requirements.evaluate in ("test", self.evaluate) or self.evaluate == ALL_LOSSES
        return enough and self.is_current(requirements)

    def is_current(self, requirements: RunRequirements) -> bool:
        """Return whether the run was made with the required code and data."""
        data = requirements.data
        return self.code == requirements.code and (self.data == data or not (self.data and data))


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Contents of a run's artifacts; missing artifacts are empty."""

    __pydantic_config__: ClassVar = {"arbitrary_types_allowed": True}

    # One row per evaluation: iteration, updates, time, uploads_bytes, …, then metrics by name
    curve: Columns = field(default_factory=dict)
    # One row per client: client, importance, mean_time, size, loss, accuracy
    clients: Columns = field(default_factory=dict)
    # [2, values]: each staleness that occurred, in increasing order, and its updates
    staleness: np.ndarray = field(default_factory=lambda: np.zeros((2, 0), int))
    # [client], updates of each client
    participation: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    unread: str = ""  # fault of a file that could not be read; empty without any
    diagnostics: Columns = field(default_factory=dict)  # one row per diagnosed server iteration


NO_FILES = Files()


class TagText:
    """Text of a tag, as an attribute of a run; empty where the tag is missing."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag

    def __get__(self, run: RunResult, owner: type[RunResult]) -> str:
        return run.tags.get(self._tag, "")


@dataclass(slots=True, eq=False)
class RunResult:
    """Outcome of a run: a run of a suite, a trial under a single seed, or a centralised baseline.

    Curve, arrivals and clients are tables in files: `Outbox.artifacts`, or the address in MLflow. Reports
    read them into `files`.
    """

    run_id: str  # MLflow's; empty in the outbox, as are experiment and address
    experiment_id: str
    state: str  # an `MlflowStatus`
    start_time: int  # milliseconds since 1970
    end_time: int  # 0 until it has ended
    artifact_uri: str
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)  # of the whole run; in MLflow the newest values
    evaluated: list[int] = field(default_factory=list)  # time of each row of the curve, like `start_time`
    files: Files = NO_FILES  # set by `with_files` once read

    kind = TagText(Tag.KIND)  # a `Kind`
    key = TagText(Tag.KEY)  # of the task; empty for a run without a task
    suite = TagText(Tag.SUITE)
    scenario = TagText(Tag.SCENARIO)
    problem = TagText(Tag.PROBLEM)
    partition = TagText(Tag.PARTITION)
    timing = TagText(Tag.TIMING)
    strategy = TagText(Tag.STRATEGY)
    paper = TagText(Tag.PAPER)
    reason = TagText(Tag.REASON)  # of the status
    metric = TagText(Tag.METRIC)
    version = TagText(Tag.VERSION)
    commit = TagText(Tag.COMMIT)
    repository = TagText(Tag.REPOSITORY)  # commit of the repository in which the run was started
    execution = TagText(Tag.EXECUTION)
    machine = TagText(Tag.MACHINE)
    processor = TagText(Tag.PROCESSOR)
    device = TagText(Tag.DEVICE)
    time_unit = TagText(Tag.TIME_UNIT)  # of virtual time; empty where nothing names it

    @classmethod
    def of_run(cls, run: Run) -> Self:
        """Return the result for a run of MLflow's client."""
        info, data = run.info, run.data
        times = info.start_time, info.end_time or 0
        return cls(
            info.run_id,
            info.experiment_id,
            info.status,
            *times,
            info.artifact_uri,
            data.tags,
            data.params,
            data.metrics,
        )

    @property
    def status(self) -> Status:
        """Final status of the run."""
        return _status(self.tags[Tag.STATUS])

    @property
    def seconds(self) -> float:
        """Seconds of computation, over all attempts."""
        return self.metrics.get(Total.WALL_SECONDS, 0.0)

    @property
    def finished(self) -> bool:
        """Whether the run is completely written, and did not fail."""
        return self.state == MlflowStatus.FINISHED

    @property
    def pair(self) -> Pair:
        """Labels of scenario and strategy, common to the seeds of a group and the trials of a study."""
        return self.scenario, self.strategy

    @property
    def place(self) -> Place:
        """Scenario, strategy, number of the trial if any, seed."""
        return *self.pair, self.tags.get(Tag.TRIAL, ""), self.tags.get(Tag.SEED, "")

    @property
    def conditions(self) -> tuple[str, ...]:
        """Parts of the scenario's label; empty where none are recorded."""
        return _parts(self.tags.get(Tag.CONDITIONS, "[]"))

    @property
    def name(self) -> str:
        """Name of the run in MLflow's pages."""
        return self.tags.get(MlflowTag.NAME, "")

    @property
    def superseded(self) -> bool:
        """Whether the run is replaced by other runs of equal names."""
        return Tag.SUPERSEDED in self.tags

    @property
    def parent(self) -> str:
        """MLflow's id of the run's group or study; empty for a baseline."""
        return self.tags.get(MlflowTag.PARENT, "")

    @property
    def requirements(self) -> RunRequirements:
        """Requirements met by the run, besides the key."""
        return RunRequirements(
            self.tags.get(Tag.EVALUATE, ALL_LOSSES), digests(self.code), self.data.get("data", "")
        )

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.tags[Tag.SEED])

    @property
    def higher_is_better(self) -> bool:
        """Whether more of the metric is better."""
        return self.tags.get(Tag.HIGHER_IS_BETTER, "").lower() != "false"

    @property
    def target(self) -> float | None:
        """Target of the metric, if any."""
        return number(self.tags.get(Tag.TARGET, ""))

    @property
    def show(self) -> tuple[str, ...]:
        """Names of the suite's metrics to show first."""
        return _names(self.tags.get(Tag.SHOW, ""))

    @property
    def declared(self) -> tuple[Metric, ...]:
        """Metrics with the problem's declarations: title, direction, unit."""
        return from_text(self.tags.get(Tag.METRICS, ""))

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the libraries."""
        return _texts(self.tags.get(Tag.VERSIONS, ""))

    @property
    def data(self) -> Mapping[str, str]:
        """Digests of the data."""
        return _texts(self.tags.get(Tag.DATA, ""))

    @property
    def code(self) -> Mapping[str, str]:
        """File and digest of each of the user's own classes."""
        return _texts(self.tags.get(Tag.CODE, ""))

    @property
    def started(self) -> datetime | None:
        """Start of the first attempt."""
        return _moment(self.start_time)

    @property
    def ended(self) -> datetime | None:
        """End of the run; None if still running."""
        return _moment(self.end_time)

    @property
    def budget_clock(self) -> Clock | None:
        """Clock of the budget and of the evaluation marks; None if the budget has several clocks."""
        clocks = [clock for clock in Clock if f"{OF_BUDGET}{clock.budget}" in self.params]
        return clocks[0] if len(clocks) == 1 else None

    def with_files(self, files: Files) -> Self:
        """Return the run with files; unreadable if the run ended with a model but has no curve."""
        lost = self.status.finite and not files.curve
        tags = self.tags | {Tag.STATUS: Status.UNREADABLE} if lost else self.tags
        return replace(self, files=files, tags=tags)

    @property
    def whole(self) -> bool:
        """True if the outcome is known and all files were read."""
        return self.status.terminated and not self.files.unread

    @property
    def diagnosed(self) -> bool:
        """True if the run left diagnostics."""
        return any(name.startswith(DIAGNOSED) for name in self.metrics)

    @property
    def at_a_standstill(self) -> bool:
        """True if the model would never change again: diverged, stalled, or no client left."""
        return self.status in {Status.DIVERGED, Status.STALLED} or self.reason == Reason.NO_CLIENT

    def final(self, metric: str) -> float:
        """Return the metric at the last evaluation, or of the whole run; NaN if missing or not finite."""
        curve = self.files.curve
        last = float(curve[metric][-1]) if metric in curve else self.totals.get(metric, nan)
        return last if isfinite(last) else nan

    @property
    def totals(self) -> dict[str, float]:
        """Metrics of the whole run."""
        return {name: value for name, value in self.metrics.items() if name in TOTALS}

    @property
    def ends(self) -> set[str]:
        """Names of metrics with a final value: of the curve, and of the whole run."""
        return {*self.files.curve, *self.totals}

    def time_to_target(self, clock: str, target: float | None) -> float:
        """Return the clock when the metric first met the target; ∞ if never, or without a target.

        NaN where the clock was not recorded.
        """
        curve = self.files.curve
        if target is None or self.metric not in curve:
            return inf
        if clock not in curve:
            return nan  # e.g. bytes, which are recorded only with a network or a coding
        marks = max(1, int(number(self.params.get(TARGET_MARKS, "")) or 1))  # 1 if the text is damaged
        return time_to_target(curve[clock], curve[self.metric], target, self.higher_is_better, marks)

    def observed_until(self, time: float, clock: str) -> float:
        """Return the time under observation of a run with time to target `time`."""
        return observed_until(time, float(self.files.curve[clock][-1]), self.at_a_standstill)

    def misses_again(self, target: float) -> bool:
        """Return whether the run met the target, then missed the target at a later evaluation."""
        values = self.files.curve.get(self.metric, np.empty(0))
        met = meets(values, target, self.higher_is_better)
        return bool(np.any(met[:-1] & ~met[1:]))


@dataclass(frozen=True, eq=False)
class TrialResult:
    """Outcome of a trial: a set of parameters, tried under several seeds."""

    number: int
    origin: str  # an `Origin`
    parameters: Mapping[str, Any]  # the searched ones
    runs: Mapping[int, RunResult]  # by seed; some may be missing if the trial was pruned or failed
    pruned: bool = False
    seeds: Collection[int] = ()  # that a complete trial must have; none: any

    @property
    def id(self) -> str:
        """MLflow's id of the first run of the trial; empty without runs."""
        return next((run.run_id for run in self.runs.values()), "")

    @cached_property
    def state(self) -> TrialState:
        """State of the trial at the end; running if seeds are missing."""
        statuses = {run.status for run in self.runs.values()}
        if not statuses or not all(status.terminated for status in statuses):
            return TrialState.FAILED
        if self.pruned or Status.PRUNED in statuses:
            return TrialState.PRUNED
        return TrialState.COMPLETE if self._objectives.keys() >= {*self.seeds} else TrialState.RUNNING

    @cached_property
    def _objectives(self) -> dict[int, float]:
        values = {seed: run.metrics.get(TrialMetric.OBJECTIVE, nan) for seed, run in self.runs.items()}
        return {seed: value for seed, value in values.items() if isfinite(value)}

    @property
    def by_seed(self) -> dict[int, float]:
        """The objective of each seed; empty unless the trial is complete."""
        return self._objectives if self.complete else {}

    @property
    def complete(self) -> bool:
        """Whether the trial was completed with a value."""
        return self.state is TrialState.COMPLETE and bool(self._objectives)

    @cached_property
    def value(self) -> float | None:
        """The objective, mean over seeds; None unless the trial is complete."""
        return fmean(self._objectives.values()) if self.complete else None

    @property
    def worth(self) -> float:
        """Objective, mean over seeds; NaN unless the trial is complete."""
        return nan if self.value is None else self.value

    @property
    def diverged(self) -> int:
        """Number of diverged seeds."""
        return sum(run.status is Status.DIVERGED for run in self.runs.values())

    @property
    def unreached(self) -> int:
        """Number of seeds with a missed target."""
        return sum(run.metrics.get(TrialMetric.REACHED) == 0 for run in self.runs.values())

    @property
    def error(self) -> str:
        """Reason for the failure of the trial; empty without failure."""
        return next((run.reason for run in self.runs.values() if run.status is Status.ERROR), "")

    def under(self, seeds: Collection[int]) -> TrialResult:
        """Return the trial restricted to some of the seeds."""
        return replace(self, runs={seed: run for seed, run in self.runs.items() if seed in seeds})

    def end(self) -> float | None:
        """Return the metric at the end, mean over seeds; None where a seed diverged."""
        ends = [run.metrics.get(TrialMetric.END) for run in self.runs.values()]
        recorded = [end for end in ends if end is not None]
        return fmean(recorded) if recorded and len(recorded) == len(ends) else None


@lru_cache(maxsize=2**16)  # thousands of runs have the same
def clean(text: str) -> str:
    """Return a text without invisible characters and without characters invalid in HTML or XML."""
    if not text.isprintable():  # quick, and nearly all are
        text = re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+", " ", text)
    return text.strip()


def cleaned_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts by name, each without the characters that `clean` removes."""
    if "".join(texts.values()).isprintable():  # quick, and nearly all are
        return {name: text.strip() for name, text in texts.items()}
    return {name: clean(text) for name, text in texts.items()}


def number(text: str) -> float | None:
    """Return the finite number in a text, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def parsed(text: str, otherwise: T) -> T:
    """Return the JSON in a text, or `otherwise` if invalid or of another type."""
    try:
        content = json.loads(text or "null")
    except ValueError:
        return otherwise
    return content if isinstance(content, type(otherwise)) else otherwise


def _moment(milliseconds: int | None) -> datetime | None:
    """Return a time stored by MLflow in milliseconds, or None."""
    return None if not milliseconds else datetime.fromtimestamp(milliseconds / 1000, UTC)


@lru_cache  # thousands of runs have the same
def _texts(tag: str) -> Mapping[str, str]:
    """Return a tag holding an object of texts; empty if damaged, to have the run computed again."""
    return MappingProxyType({name: str(value) for name, value in parsed(tag, {}).items()})


@lru_cache
def _names(tag: str) -> tuple[str, ...]:
    """Return the names in a tag of comma-separated names."""
    return tuple(name for part in tag.split(",") if (name := part.strip()))


_status = lru_cache(Status)  # the cache takes a quarter of the time of the enumeration


@lru_cache
def _parts(tag: str) -> tuple[str, ...]:
    """Return a tag holding a list of texts; empty if damaged."""
    return tuple(map(str, parsed(tag, [])))


def must_be_current(results: Iterable[RunResult], store: str) -> None:
    """Raise UserError if any run was recorded by an earlier version, with possibly different results.

    Args:
        results: Runs of a suite.
        store: Address of their store, without credentials.
    """
    if any(is_older(result.key) for result in results):
        raise UserError(f"{store}: made by an earlier version of asyncfl; choose another folder with --store")


def names_of(pairs: Collection[Pair], conditions: Mapping[str, Sequence[str]]) -> dict[Pair, str]:
    """Return a short name for each strategy in each scenario, made of varying parts, for MLflow's legends.

    Args:
        pairs: Scenarios and strategies.
        conditions: The parts of each scenario's label; names leave out parts shared by all scenarios.
    """
    parts = {scenario: conditions.get(scenario) or [scenario] for scenario, _ in pairs}
    short = dict(zip(parts, varying([*parts.values()]), strict=True)) if parts else {}
    names: dict[Pair, str] = {}
    for scenario, strategy in sorted(pairs):
        full_name = JOINT.join([strategy, *short[scenario]])
        name = cut(full_name, MAX_NAME_CHARACTERS)
        taken, copies = {*names.values()}, 1
        while name in taken:
            copies += 1
            suffix = f" ({copies})"
            name = cut(full_name, MAX_NAME_CHARACTERS - len(suffix)) + suffix
        names[scenario, strategy] = name
    return names


def name_of_seed(name: str, seed: object) -> str:
    """Return the name of a seed's run: the seed, then the group's name."""
    return cut(f"seed {seed}{JOINT}{name}", MAX_NAME_CHARACTERS)


def name_of_trial(tags: Mapping[str, str]) -> str:
    """Return the name of a trial's run under a seed; a long label of a strategy is cut."""
    end = f"{JOINT}trial {tags[Tag.TRIAL]}{JOINT}seed {tags[Tag.SEED]}"
    return cut(tags[Tag.STRATEGY], MAX_NAME_CHARACTERS - len(end)) + end


def texts_of(tags: Mapping[Tag, Any]) -> dict[str, str]:
    """Return tags in MLflow's form, as texts."""
    return {str(tag): cut(text(value), MAX_TAG_CHARACTERS) for tag, value in tags.items()}


def params_of(description: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested data as dotted keys and texts: `strategy.local_lr`, `problem.partition.alpha`."""
    for key, value in description.items():
        if isinstance(value, dict):
            yield from params_of(value, "" if key == "scenario" else f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", cut(text(value), MAX_PARAM_CHARACTERS)


def now() -> int:
    """Return the present time in milliseconds since 1970."""
    return int(time() * 1000)


def text(value: Any) -> str:
    """Return a value as text for a tag or parameter."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def cut(long: str, length: int) -> str:
    """Return the text, cut to `length` characters; the whole text is in description.json."""
    return long if len(long) <= length else long[: length - 1] + "…"


def valid_tags(tags: Mapping[str, object]) -> dict[str, str]:
    """Return the undamaged tags: all tags with texts as names and values."""
    return {name: value for name, value in tags.items() if isinstance(name, str) and isinstance(value, str)}


def fault_of(run: RunResult) -> str:
    """Return the fault of a run recorded by asyncfl in MLflow; empty if sound, or if foreign."""
    ours = any(str(name).startswith(TAGS) for name in run.tags)
    return next(_faults(run), "") if ours else ""


@lru_cache(2**16)  # thousands of runs have the same
def _matches(pattern: str, text: str) -> bool:
    """Return whether the whole text matches a pattern."""
    return re.fullmatch(pattern, text) is not None


def _faults(run: RunResult) -> Iterator[str]:
    """Yield the faults of a run recorded by asyncfl: texts, required tags, metrics, times, address."""
    tags = run.tags
    for table in (tags, run.params, dict.fromkeys(run.metrics, "")):
        usual = {*map(type, table), *map(type, table.values())} <= {str}
        if invalid := set() if usual else table.keys() - valid_tags(table).keys():
            yield f"{min(map(str, invalid))}: must be a text"
            return
    for tag, allowed in REQUIRED_TAGS.get(run.kind, {Tag.KIND: "|".join(REQUIRED_TAGS)}).items():
        if not _matches(allowed, value := tags.get(tag, "")):
            yield f"tag {tag}: is '{value}'"
    if invalid := {name for name, value in run.metrics.items() if not isinstance(value, int | float)}:
        yield f"metric {min(map(str, invalid))}: must be a number"
    for name, milliseconds in (("start_time", run.start_time), ("end_time", run.end_time)):
        if not (isinstance(milliseconds, int) and 0 <= milliseconds < MAX_MILLISECONDS):
            yield f"{name}: must be milliseconds since 1970"
    if not isinstance(run.artifact_uri, str):
        yield "artifact_uri: must be an address"
