"""What tuning studies look like in MLflow; with `tracking`, the only writer there.

    experiment          <suite>.tuning
    run, kind=study     a strategy's search in a scenario
    run, kind=trial     one trial, its child

Every call can be repeated: what a killed process left half-written is completed, and nothing is duplicated.
To be used from one thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.tracking import database
from benchmarks.tracking.entries import fault_of, now, text
from benchmarks.tracking.experiment import MlflowStatus, open_experiment
from benchmarks.tracking.reader import Entry, opened
from benchmarks.tracking.store import Store
from fl_core.schema import (
    CAMPAIGN,
    Kind,
    MlflowTag,
    Origin,
    StudyStatus,
    Tag,
    TrialMetric,
    TrialState,
)

if TYPE_CHECKING:
    from mlflow.entities import Metric


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial that has ended."""

    study: str
    number: int
    state: TrialState
    origin: Origin
    parameters: Mapping[str, Any]
    objective: float | None
    by_seed: Mapping[int, float]  # seed → objective
    curve: Sequence[tuple[int, float]]  # iteration and metric, means over seeds
    diverged: int  # seeds
    unreached: int  # seeds
    reason: str  # why it failed
    began: int  # milliseconds since 1970
    ended: int


@dataclass(slots=True)
class LoggedTrial:
    """A trial that is in MLflow already."""

    id: str
    written: bool  # whether all of it is
    twins: list[str] = field(default_factory=list)  # made by the same request, whose answer was lost


class StudyTracking:
    """The studies of one suite in an open MLflow store. Methods raise what MLflow raises."""

    def __init__(self, store: Store, suite: str) -> None:
        self._client = database.client(store.tracking_uri)
        self._store, self._name = store, f"{suite}{CAMPAIGN}"
        self._experiment = ""
        self._studies: dict[str, str] = {}  # name → run id
        self.trials: dict[tuple[str, int], LoggedTrial] = {}  # study and number → its run

    def open(self, description: str, studies: Sequence[Mapping[Tag, Any]]) -> None:
        """Find or make the experiment and a run for each study, given by its tags; one process at a time."""
        experiment = open_experiment(self._client, self._store, self._name, description)
        self._experiment = experiment.experiment_id
        wanted = {study[Tag.STUDY]: study[Tag.IDENTITY] for study in studies}
        with opened(self._store.tracking_uri) as reader:
            entries = reader.entries(self._experiment)
        replaced = set()  # studies whose name another has by now
        for entry in entries:
            tags = entry.tags
            identity = wanted.get(tags.get(Tag.STUDY, ""))
            if tags.get(Tag.KIND) == Kind.STUDY and identity not in (None, tags.get(Tag.IDENTITY)):
                replaced.add(entry.run_id)
        for entry in entries:
            if entry.run_id in replaced or entry.tags.get(MlflowTag.PARENT) in replaced:
                if Tag.SUPERSEDED not in entry.tags:
                    self._client.set_tag(entry.run_id, Tag.SUPERSEDED, "true")
            else:
                self._index(entry)
        for study in studies:
            if (name := study[Tag.STUDY]) not in self._studies:
                run = self._client.create_run(self._experiment, tags=_text(study), run_name=name)
                self._studies[name] = run.info.run_id

    def begin(self, study: str, number: int, origin: Origin) -> str:
        """The run of a trial, made if it is not there; its id."""
        if (study, number) not in self.trials:
            tags: dict[str, str] = {
                MlflowTag.PARENT: self._studies[study],
                Tag.KIND: Kind.TRIAL,
                Tag.STUDY: study,
                Tag.TRIAL: str(number),
                Tag.ORIGIN: origin,
            }
            run = self._client.create_run(self._experiment, tags=tags, run_name=f"trial {number}")
            self.trials[study, number] = LoggedTrial(run.info.run_id, written=False)
        return self.trials[study, number].id

    def write(self, trial: TrialRecord) -> None:
        """Bring a trial into MLflow, if it is not there."""
        from mlflow.entities import Param, RunTag

        run = self.begin(trial.study, trial.number, trial.origin)
        known = self.trials[trial.study, trial.number]
        if not known.written:
            tags = [RunTag(name, value) for name, value in _trial_tags(trial).items()]
            params = [Param(name, str(value)) for name, value in trial.parameters.items()]
            failed = trial.state is TrialState.FAILED
            status = MlflowStatus.FAILED if failed else MlflowStatus.FINISHED
            self._client.log_batch(run, list(_metrics(trial)), params, tags, synchronous=True)
            self._client.set_terminated(run, status, trial.ended)
            known.written = True
        while known.twins:  # not before its end: the process at work on it may write to any of them
            self._client.delete_run(known.twins.pop())

    def summarise(self, study: Mapping[Tag, Any]) -> None:
        """Record a study's status, or its final result, given by its tags."""
        from mlflow.entities import Metric, RunTag

        run, value = self._studies[study[Tag.STUDY]], study[Tag.BEST_VALUE]
        tags = [RunTag(tag, said) for tag, said in _text(study).items()]
        best = [] if value is None else [Metric(TrialMetric.BEST_VALUE, value, now(), 0)]
        self._client.log_batch(run, best, tags=tags, synchronous=True)
        if study[Tag.STATUS] is StudyStatus.FINISHED:
            self._client.set_terminated(run, MlflowStatus.FINISHED)

    def _index(self, entry: Entry) -> None:
        tags = entry.tags
        if Tag.SUPERSEDED in tags or fault_of(entry):
            return
        if tags.get(Tag.KIND) == Kind.STUDY:
            self._studies[tags[Tag.STUDY]] = entry.run_id
        elif tags.get(Tag.KIND) == Kind.TRIAL:
            place = (tags[Tag.STUDY], int(tags[Tag.TRIAL]))
            known = LoggedTrial(entry.run_id, entry.status != MlflowStatus.RUNNING)
            if (twin := self.trials.get(place)) is not None:
                known, twin = (known, twin) if known.written else (twin, known)
                known.twins += [twin.id, *twin.twins]
            self.trials[place] = known


def _text(study: Mapping[Tag, Any]) -> dict[str, str]:
    """Return a study's tags as MLflow holds them; what is not known yet is left out."""
    return {tag: text(value) for tag, value in study.items() if value not in (None, {})}


def _trial_tags(trial: TrialRecord) -> dict[str, str]:
    tags: dict[str, str] = {
        Tag.STATE: trial.state,
        Tag.ORIGIN: trial.origin,
        Tag.DIVERGED: str(trial.diverged),
        Tag.UNREACHED: str(trial.unreached),
        Tag.REASON: trial.reason,
    }
    return {tag: value for tag, value in tags.items() if value}


def _metrics(trial: TrialRecord) -> Iterator[Metric]:
    from mlflow.entities import Metric

    if trial.objective is not None:
        yield Metric(TrialMetric.OBJECTIVE, trial.objective, trial.ended, 0)
    for seed, value in trial.by_seed.items():
        yield Metric(TrialMetric.BY_SEED, value, trial.ended, seed)
    for iteration, value in trial.curve:
        if math.isfinite(value):
            yield Metric(TrialMetric.VALUE, value, trial.ended, iteration)
