"""A suite in MLflow (an experiment there): creation, and an index of runs and groups.

`Tracking` keeps one index for each suite, so that it need not ask MLflow before every write.

Free: the index, which is read anew in every session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.colours import colours
from benchmarks.mlflow_store.run_result import REQUIRED_TAGS, Pair, RunResult, names_of
from benchmarks.mlflow_store.store import Store
from fl_core.recorded_names import Kind, MlflowTag, Tag

if TYPE_CHECKING:
    from mlflow import MlflowClient

# The tags that the index needs; most others are not read, to save time.
INDEXED_TAGS = (
    *dict.fromkeys(tag for needed in REQUIRED_TAGS.values() for tag in needed),
    Tag.KIND,
    Tag.CONDITIONS,
    Tag.EVALUATE,
    Tag.CODE,
    Tag.DATA,
    Tag.SUPERSEDED,
    Tag.IDENTITY,
    Tag.MEAN_OF,
    Tag.CHOSEN,
    MlflowTag.NAME,
    MlflowTag.PARENT,
    MlflowTag.COLOUR,
)

EXPERIMENT_KIND = "custom_model_development"  # or MLflow's pages open with those for language models


def create_experiment(client: MlflowClient, store: Store, name: str) -> None:
    """Create an experiment unless the name exists.

    If a deleted experiment has the name, it is renamed and stays deleted, so that its runs are not reused.
    """
    experiment = client.get_experiment_by_name(name)
    if experiment and experiment.lifecycle_stage == "deleted":
        deleted_id, experiment = experiment.experiment_id, None
        client.restore_experiment(deleted_id)  # MLflow refuses to rename a deleted experiment
        client.rename_experiment(deleted_id, f"{name} (deleted, {deleted_id})")
        client.delete_experiment(deleted_id)
    if experiment is None:
        location = None if store.is_server else (store.artifacts / name).as_uri()
        client.create_experiment(name, location, {MlflowTag.EXPERIMENT_KIND: EXPERIMENT_KIND})


@dataclass(slots=True)
class TrackedExperiment:
    """A suite in MLflow, with an index of runs, groups and studies."""

    id: str  # MLflow's
    name: str
    tags: dict[str, str] = field(default_factory=dict)
    runs: dict[str, RunResult] = field(default_factory=dict)  # runs, baselines and trials by key
    groups: dict[Pair, RunResult] = field(default_factory=dict)  # parents of the seeds of a strategy
    studies: dict[str, RunResult] = field(default_factory=dict)  # parents of trials, by identity
    planned_keys: dict[Pair, set[str]] = field(default_factory=dict)  # of each group's seeds
    conditions: dict[str, Sequence[str]] = field(default_factory=dict)  # of each scenario
    names: dict[Pair, str] = field(default_factory=dict)  # short, for charts
    best: set[tuple[str, str]] = field(default_factory=set)  # best trials: MLflow's id of the study, number
    report: RunResult | None = None  # the run that holds the page

    def name_of(self, pair: Pair) -> str:
        """Return the short name of a strategy in a scenario."""
        if pair not in self.names:
            pairs = {study.pair for study in self.studies.values()}
            self.names = names_of(
                {*self.planned_keys, *self.groups, *pairs, *self.names, pair}, self.conditions
            )
        return self.names[pair]

    def colour_of(self, strategy: str) -> str:
        """Return the colour of a strategy."""
        return colours({strategy, *(label for _, label in self.names)})[strategy]

    def add(self, run: RunResult) -> None:
        """Add a run of MLflow to the index."""
        if run.conditions:
            self.conditions.setdefault(run.tags[Tag.SCENARIO], run.conditions)
        if run.kind == Kind.GROUP:
            self.groups[run.pair] = run
        elif run.kind == Kind.STUDY:
            self.studies[run.tags.get(Tag.IDENTITY, run.run_id)] = run
        elif run.kind == Kind.REPORT:
            self.report = run
        elif run.key:
            self.runs[run.key] = run
