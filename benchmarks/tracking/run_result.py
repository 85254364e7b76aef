"""Outcomes of runs and trials: written once by a worker, kept by MLflow, read by all other code.

Groups, studies and report pages are runs of MLflow's, too, and are read in the same form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from math import isfinite, nan
from statistics import fmean
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from benchmarks.errors import UserError
from fl_core.keys import is_older
from fl_core.schema import JOINT, TAGS, Kind, MlflowTag, Status, Tag, Total, TrialMetric, TrialState
from fl_core.sources import digests

if TYPE_CHECKING:
    from mlflow.entities import Run

MAX_PARAM_CHARACTERS, MAX_TAG_CHARACTERS = 6000, 8000
MAX_NAME_CHARACTERS = 40  # of a run's name, as far as MLflow shows it beside its charts
ALL = "clients"  # what is evaluated at every mark where a record does not say it: all training losses

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

Pair = tuple[str, str]  # scenario, strategy: a group, or a study
Place = tuple[str, str, str, str]  # scenario, strategy, trial, seed: runs equal in these look alike


class MlflowStatus(StrEnum):
    """MLflow's status of a run."""

    RUNNING = "RUNNING"  # until all of it is written
    FINISHED = "FINISHED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class RunRequirements:
    """Properties of a run not covered by the run's key."""

    evaluate: str  # what is evaluated at its marks, as the text of an `Evaluate`
    code: Mapping[str, str]  # digests of the user's own code, by import path
    data: str = ""  # digest of the user's own data; empty where it is not known

    @classmethod
    def of(cls, about: Mapping[Tag, Any]) -> Self:
        """Return the requirements of a planned run, from tags not yet converted to texts."""
        return cls(about.get(Tag.EVALUATE, ALL), digests(about.get(Tag.CODE, {})))

    def serves(self, wanted: RunRequirements) -> bool:
        """Return whether the run has the wanted training losses at the marks, from current code and data."""
        enough = wanted.evaluate in ("test", self.evaluate) or self.evaluate == ALL
        return enough and self.is_current(wanted)

    def is_current(self, wanted: RunRequirements) -> bool:
        """Return whether the run was made with the wanted code and data."""
        return self.code == wanted.code and (self.data == wanted.data or not (self.data and wanted.data))


@dataclass(slots=True)
class RunResult:
    """Outcome of a run: a run of a suite, a trial under a single seed, or a centralised baseline.

    Curve, arrivals and clients are tables in files: `Outbox.artifacts`, or the address in MLflow.
    """

    run_id: str  # MLflow's; empty in the outbox, as are experiment and address
    experiment_id: str
    state: str  # an `MlflowStatus`
    start_time: int  # milliseconds since 1970
    end_time: int  # 0 until it has ended
    artifact_uri: str
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)  # of the whole run; in MLflow the newest of all
    evaluated: list[int] = field(default_factory=list)  # milliseconds since 1970 of each row of the curve

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
    def kind(self) -> str:
        """Kind of the run, a `Kind`."""
        return self.tags.get(Tag.KIND, "")

    @property
    def key(self) -> str:
        """Key of the task; empty for a run without a task."""
        return self.tags.get(Tag.KEY, "")

    @property
    def suite(self) -> str:
        """Name of the suite in records."""
        return self.tags.get(Tag.SUITE, "")

    @property
    def status(self) -> Status:
        """Final status of the run."""
        return Status(self.tags[Tag.STATUS])

    @property
    def reason(self) -> str:
        """Reason for the status."""
        return self.tags.get(Tag.REASON, "")

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
        """Scenario and strategy."""
        return self.tags.get(Tag.SCENARIO, ""), self.tags.get(Tag.STRATEGY, "")

    @property
    def place(self) -> Place:
        """Scenario, strategy, number of the trial if any, seed."""
        return *self.pair, self.tags.get(Tag.TRIAL, ""), self.tags.get(Tag.SEED, "")

    @property
    def conditions(self) -> Sequence[str]:
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
        code, data = (_texts(self.tags.get(tag, "{}")) for tag in (Tag.CODE, Tag.DATA))
        return RunRequirements(self.tags.get(Tag.EVALUATE, ALL), digests(code), data.get("data", ""))


@dataclass(frozen=True, eq=False)
class TrialResult:
    """Outcome of a trial: a set of parameters, tried under several seeds."""

    number: int
    origin: str  # an `Origin`
    parameters: Mapping[str, Any]  # those that are searched
    runs: Mapping[int, RunResult]  # by seed; of a pruned or failed trial some may be missing
    pruned: bool = False
    seeds: Collection[int] = ()  # under which it has to run; with fewer it is not complete

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


@lru_cache  # thousands of runs have the same
def _texts(tag: str) -> Mapping[str, str]:
    """Return a tag holding an object of texts; empty if damaged, to have the run computed again."""
    try:
        return MappingProxyType({str(name): str(value) for name, value in json.loads(tag).items()})
    except (ValueError, AttributeError):  # not JSON, or no object
        return {}


@lru_cache
def _parts(tag: str) -> tuple[str, ...]:
    """Return a tag holding a list of texts; empty if damaged."""
    try:
        return tuple(map(str, json.loads(tag)))
    except (ValueError, TypeError):  # not JSON, or no list
        return ()


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
        conditions: The parts of each scenario's label; those that all scenarios share are left out.
    """
    parts = {scenario: conditions.get(scenario) or [scenario] for scenario, _ in pairs}
    shared = set.intersection(*map(set, parts.values())) if parts else set()
    names: dict[Pair, str] = {}
    for scenario, strategy in sorted(pairs):
        varying = [part for part in parts[scenario] if part not in shared]
        name = cut(JOINT.join([strategy, *varying]), MAX_NAME_CHARACTERS)
        taken, copies = {*names.values()}, 1
        while name in taken:
            copies += 1
            suffix = f" ({copies})"
            name = cut(JOINT.join([strategy, *varying]), MAX_NAME_CHARACTERS - len(suffix)) + suffix
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


def _faults(run: RunResult) -> Iterator[str]:
    tags = run.tags
    for table in (tags, run.params, dict.fromkeys(run.metrics, "")):
        usual = {*map(type, table), *map(type, table.values())} <= {str}
        if invalid := set() if usual else table.keys() - valid_tags(table).keys():
            yield f"{min(map(str, invalid))}: must be a text"
            return
    for tag, allowed in NEEDED.get(run.kind, {Tag.KIND: "|".join(NEEDED)}).items():
        if not re.fullmatch(allowed, value := tags.get(tag, "")):
            yield f"tag {tag}: is '{value}'"
    if invalid := {name for name, value in run.metrics.items() if not isinstance(value, int | float)}:
        yield f"metric {min(map(str, invalid))}: must be a number"
    for name, moment in (("start_time", run.start_time), ("end_time", run.end_time)):
        if not (isinstance(moment, int) and 0 <= moment < LATEST):
            yield f"{name}: must be milliseconds since 1970"
    if not isinstance(run.artifact_uri, str):
        yield "artifact_uri: must be an address"
