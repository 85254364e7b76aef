"""A suite as MLflow holds it: the index of its runs and groups."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from benchmarks.tracking.entries import ALL, NEEDED, Made
from benchmarks.tracking.reader import Entry
from benchmarks.tracking.store import Store
from fl_core.schema import Kind, MlflowTag, Tag
from fl_core.sources import digests

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

Place = tuple[str, str, str, str]  # scenario, strategy, trial, seed: runs equal in these look alike
Pair = tuple[str, str]  # scenario, strategy: a group, or a study


# The tags that an index of a suite's runs is made of; the others, which are most, are not read.
INDEXED = (
    *dict.fromkeys(tag for needed in NEEDED.values() for tag in needed),
    Tag.KIND,
    Tag.EVALUATE,
    Tag.CODE,
    Tag.DATA,
    Tag.SUPERSEDED,
    Tag.IDENTITY,
    Tag.MEAN_OF,
    MlflowTag.PARENT,
    MlflowTag.COLOUR,
)

EXPERIMENT_KIND = "custom_model_development"  # MLflow's pages open on runs, not on language models


def open_experiment(client: MlflowClient, store: Store, name: str, note: str = "") -> Experiment:
    """Return the experiment of that name; if need be it is made, with a note.

    A deleted one stays in MLflow's bin under another name: its runs do not come back.
    """
    experiment = client.get_experiment_by_name(name)
    if experiment and experiment.lifecycle_stage == "deleted":
        deleted, experiment = experiment.experiment_id, None
        client.restore_experiment(deleted)  # MLflow renames nothing that is deleted
        client.rename_experiment(deleted, f"{name} (deleted, {deleted})")
        client.delete_experiment(deleted)
    if experiment is None:
        location = None if store.is_server else (store.artifacts / name).as_uri()
        tags: dict[str, str] = {MlflowTag.EXPERIMENT_KIND: EXPERIMENT_KIND}
        if note:
            tags[MlflowTag.NOTE] = note
        experiment = client.get_experiment(client.create_experiment(name, location, tags))
    return experiment


class MlflowStatus(StrEnum):
    """MLflow's status of a run."""

    RUNNING = "RUNNING"  # until all of it is written
    FINISHED = "FINISHED"
    FAILED = "FAILED"


@dataclass(slots=True)
class KnownRun:
    """A run that is in MLflow already."""

    id: str
    kind: str
    status: str  # MLflow's
    began: int
    place: Place
    superseded: bool
    parent: str  # id of the group or study; empty for a baseline
    made: Made
    artifact_uri: str

    @classmethod
    def of_entry(cls, entry: Entry) -> KnownRun:
        """Return what MLflow says of a run."""
        tags = entry.tags
        scenario, strategy, trial, seed = (
            tags.get(tag, "") for tag in (Tag.SCENARIO, Tag.STRATEGY, Tag.TRIAL, Tag.SEED)
        )
        return cls(
            entry.run_id,
            tags.get(Tag.KIND, ""),
            entry.status,
            entry.start_time,
            (scenario, strategy, trial, seed),
            Tag.SUPERSEDED in tags,
            tags.get(MlflowTag.PARENT, ""),
            Made(
                tags.get(Tag.EVALUATE, ALL),
                digests(_texts(tags.get(Tag.CODE, "{}"))),
                _texts(tags.get(Tag.DATA, "{}")).get("data", ""),
            ),
            entry.artifact_uri,
        )


def _texts(tag: str) -> dict[str, str]:
    """Return a tag that is an object of texts; nothing if it was damaged, so that the run is made again."""
    try:
        return {str(name): str(value) for name, value in json.loads(tag).items()}
    except (ValueError, AttributeError):  # not JSON, or no object
        return {}


@dataclass(slots=True)
class Group:
    """The parent of a strategy's seeds in a scenario."""

    id: str
    mean_of: str  # ids of the runs that its curve is the mean of; empty as long as it has none
    finished: bool  # whether all of that is written
    colour: str  # in charts

    @classmethod
    def of_entry(cls, entry: Entry) -> Group:
        """Return what MLflow says of the run."""
        tags = entry.tags
        finished, colour = entry.status == MlflowStatus.FINISHED, tags.get(MlflowTag.COLOUR, "")
        return cls(entry.run_id, tags.get(Tag.MEAN_OF, ""), finished, colour)


@dataclass(slots=True)
class TrackedStudy:
    """The parent of the trials of a study."""

    id: str
    pair: Pair
    superseded: bool
    finished: bool


@dataclass(slots=True)
class TrackedExperiment:
    """A suite in MLflow, and what is in it."""

    id: str
    name: str
    tags: dict[str, str] = field(default_factory=dict)
    runs: dict[str, KnownRun] = field(default_factory=dict)  # by key
    groups: dict[Pair, Group] = field(default_factory=dict)
    studies: dict[str, TrackedStudy] = field(default_factory=dict)  # by identity
    meant: dict[Pair, set[str]] = field(default_factory=dict)  # the keys of each group's seeds
    report: str = ""  # id of the run that holds the page
    report_uri: str = ""  # where its files lie

    def add(self, entry: Entry) -> None:
        """Take note of a run of MLflow's."""
        tags = entry.tags
        if tags.get(Tag.KIND) == Kind.GROUP:
            self.groups[tags[Tag.SCENARIO], tags[Tag.STRATEGY]] = Group.of_entry(entry)
        elif tags.get(Tag.KIND) == Kind.STUDY:
            pair = tags.get(Tag.SCENARIO, ""), tags.get(Tag.STRATEGY, "")
            finished = entry.status == MlflowStatus.FINISHED
            study = TrackedStudy(entry.run_id, pair, Tag.SUPERSEDED in tags, finished)
            self.studies[tags.get(Tag.IDENTITY, entry.run_id)] = study
        elif tags.get(Tag.KIND) == Kind.REPORT:
            self.report, self.report_uri = entry.run_id, entry.artifact_uri
        elif Tag.KEY in tags:
            self.runs[tags[Tag.KEY]] = KnownRun.of_entry(entry)
