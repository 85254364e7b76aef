"""The only writer to MLflow: what suites, runs, groups and baselines look like there.

    experiment        a suite
    run, kind=group   scenario × strategy: the parent of its seeds, and their mean once all are finished
    run, kind=run     one run; asyncfl.key is its identity
    run, kind=pooled  a centralised baseline
    run, kind=report  the report page

Every call can be repeated: what a killed process left half-written is completed, and nothing is duplicated.
To be used from one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.tracking import database, groups, notes, places, views
from benchmarks.tracking.entries import (
    LONGEST_TAG,
    Made,
    cut,
    data_set_of,
    fault_of,
    metrics_of,
    name_of,
    params_of,
    tags_of,
    valid_tags,
)
from benchmarks.tracking.experiment import (
    Group,
    KnownRun,
    MlflowStatus,
    Pair,
    Place,
    TrackedExperiment,
    open_experiment,
)
from benchmarks.tracking.outbox import OutboxRecord, Result
from benchmarks.tracking.parquet import UnreadableTableError
from benchmarks.tracking.stopwatch import now
from benchmarks.tracking.store import Store
from fl_core.metrics import from_text, named
from fl_core.schema import Kind, MlflowTag, Status, Tag

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run

# Tags that a group has in common with its seeds.
SHARED = (
    Tag.SCENARIO,
    Tag.PROBLEM,
    Tag.PARTITION,
    Tag.TIMING,
    Tag.STRATEGY,
    Tag.PAPER,
    Tag.METRIC,
    Tag.SUITE,
)


class Tracking:
    """An open MLflow store. Methods raise what MLflow raises."""

    def __init__(self, store: Store) -> None:
        places.settle(store)  # before new files go to where the store once was
        self._store = store
        self._client = database.client(store.tracking_uri)
        self._experiments: dict[str, TrackedExperiment] = {}
        self.unread = False  # whether a group waits for its sums, since a seed's curve could not be read

    def finished(self, suite: str, wanted: Mapping[str, Made] | None = None) -> set[str]:
        """Keys of what need not be computed again: all but errors, and runs not made as `wanted` says."""
        runs = self._experiment(suite).runs
        asked = wanted or {}
        lacking = {key for key in asked.keys() & runs if not runs[key].made.serves(asked[key])}
        return {key for key, known in runs.items() if known.status == MlflowStatus.FINISHED} - lacking

    def describe(self, suite: str, description: str) -> None:
        """Describe the suite."""
        experiment = self._experiment(suite)
        self._label(experiment, Tag.DESCRIPTION, description)
        self._annotate(experiment)

    def select(self, suite: str, places: Mapping[str, Place]) -> None:
        """Of runs that look alike, those with these keys count: a suite was edited, or run with --set.

        The others get the tag `Tag.SUPERSEDED`, which reports leave out; selected again they lose it.
        """
        taken = set(places.values())
        for key, known in self._experiment(suite).runs.items():
            superseded = key not in places and known.place in taken
            if superseded and not known.superseded:
                self._client.set_tag(known.id, Tag.SUPERSEDED, "true")
            elif known.superseded and key in places:
                self._client.delete_tag(known.id, Tag.SUPERSEDED)
            known.superseded = superseded
        experiment = self._experiment(suite)
        experiment.meant = {}
        for key, (scenario, strategy, _) in places.items():
            experiment.meant.setdefault((scenario, strategy), set()).add(key)
        for pair in experiment.meant:
            self._sum_up(experiment, pair)
        self._paint(experiment)

    def write(self, record: OutboxRecord) -> None:
        """Bring a record into MLflow, if it is not there.

        An older error of the same run gives way to it, and so does a record with less at its marks, or one
        made by the user's code before it was edited.
        """
        result = record.result
        experiment = self._experiment(result.suite)
        known = experiment.runs.get(result.key)
        enough = known and known.made.serves(Made.of(result.about))
        if known and known.status == MlflowStatus.FINISHED and enough:
            return
        if known and known.began != result.began:  # another attempt, which failed or was never completed
            self._client.delete_run(known.id)
            known = None
        if known is None:
            known = experiment.runs[result.key] = self._begin(experiment, result)
        if known.status == MlflowStatus.RUNNING:
            self._fill(known.id, record, result)
            failed = result.status is Status.ERROR
            known.status = MlflowStatus.FAILED if failed else MlflowStatus.FINISHED
            self._client.set_terminated(known.id, known.status, result.ended)
            self._sum_up(experiment, known.place[:2])

    def keep_page(self, suite: str, page: Path) -> None:
        """Keep the report page as an artifact, in the place of an older one; the suite's note links to it."""
        experiment = self._experiment(suite)
        if not experiment.report:
            tags: dict[str, str] = {Tag.KIND: Kind.REPORT, Tag.SUITE: suite}
            began = min((known.began for known in experiment.runs.values()), default=now())
            run = self._client.create_run(experiment.id, began, tags, "report page")  # below all others
            experiment.report = run.info.run_id
        self._client.log_artifact(experiment.report, str(page))
        self._client.set_terminated(experiment.report, MlflowStatus.FINISHED)
        self._annotate(experiment)

    def _begin(self, experiment: TrackedExperiment, result: Result) -> KnownRun:
        tags = tags_of(result)
        if result.kind is Kind.RUN:
            tags[MlflowTag.PARENT] = self._group(experiment, tags, result.began).id
        run = self._client.create_run(experiment.id, result.began, tags, name_of(result))
        return KnownRun.of_run(run)

    def _group(self, experiment: TrackedExperiment, seed_tags: Mapping[str, str], began: int) -> Group:
        """The parent of a run's seeds, from the tags of one of them."""
        scenario, strategy = pair = seed_tags[Tag.SCENARIO], seed_tags[Tag.STRATEGY]
        if pair not in experiment.groups:
            tags: dict[str, str] = {tag: seed_tags.get(tag, "") for tag in SHARED}
            tags |= {Tag.KIND: Kind.GROUP, MlflowTag.NOTE: notes.of_group(experiment.id, seed_tags)}
            run = self._client.create_run(experiment.id, began, tags, f"{strategy} · {scenario}")
            experiment.groups[pair] = Group(run.info.run_id, mean_of="", finished=False, colour="")
        return experiment.groups[pair]

    def _fill(self, run: str, record: OutboxRecord, result: Result) -> None:
        from mlflow.entities import Param

        params = [Param(name, text) for name, text in params_of(record.description)]
        self._client.log_batch(run, list(metrics_of(record, result)), params, synchronous=True)
        if data_sets := data_set_of(result):
            self._client.log_inputs(run, data_sets)
        self._client.log_artifacts(run, str(record.artifacts))

    def _sum_up(self, experiment: TrackedExperiment, pair: Pair) -> None:
        """Log the results of a group's seeds to it, once they are all finished."""
        keys = experiment.meant.get(pair, set())
        seeds = sorted(
            (experiment.runs[key] for key in keys & experiment.runs.keys()), key=lambda seed: seed.place
        )
        if not keys or [seed.status for seed in seeds] != [MlflowStatus.FINISHED] * len(keys):
            return
        mean_of = cut(",".join(seed.id for seed in seeds), LONGEST_TAG)
        group = experiment.groups.get(pair)
        if group and group.mean_of == mean_of and group.finished:
            return
        if group and group.mean_of not in ("", mean_of):  # the suite was edited; logged curves are final
            self._client.delete_run(experiment.groups.pop(pair).id)
        ids = ", ".join(f"'{seed.id}'" for seed in seeds)
        runs = list(database.runs(self._client, experiment.id, f"attributes.run_id IN ({ids})"))
        group = self._group(experiment, runs[0].data.tags, runs[0].info.start_time)
        for known in experiment.runs.values():
            if known.place[:2] == pair and known.parent != group.id:
                self._client.set_tag(known.id, MlflowTag.PARENT, group.id)
                known.parent = group.id
        self._save_views(experiment, runs[0])
        try:
            metrics = list(groups.metrics_of(runs, self._client.tracking_uri))
        except UnreadableTableError:  # a lost artifact must not hold up the other writes
            self.unread = True
            return
        self._write_group(experiment, group, runs, metrics, mean_of)
        self._paint(experiment)

    def _write_group(
        self, experiment: TrackedExperiment, group: Group, seeds: list[Run], metrics: list[Metric], ids: str
    ) -> None:
        from mlflow.entities import RunTag

        lost = sum(map(groups.diverged, seeds))
        note = notes.of_group(experiment.id, seeds[0].data.tags, len(seeds) - lost, lost)
        tags = [RunTag(Tag.MEAN_OF, ids), RunTag(MlflowTag.NOTE, note)]
        self._client.log_batch(group.id, metrics, groups.params_of(seeds), tags, synchronous=True)
        last = max(seed.info.end_time for seed in seeds)
        self._client.set_terminated(group.id, MlflowStatus.FINISHED, last)
        group.mean_of, group.finished = ids, True

    def _paint(self, experiment: TrackedExperiment) -> None:
        """Give each strategy of the suite one colour in all scenarios."""
        wanted = views.colours(strategy for _, strategy in experiment.meant)
        for pair in experiment.meant.keys() & experiment.groups.keys():
            group, colour = experiment.groups[pair], wanted[pair[1]]
            if group.colour != colour:
                self._client.set_tag(group.id, MlflowTag.COLOUR, colour)
                group.colour = colour

    def _save_views(self, experiment: TrackedExperiment, run: Run) -> None:
        """A view of the run's scenario, and one of all scenarios; with links to them in the suite's note."""
        tags = run.data.tags
        shown = [name for name in tags.get(Tag.SHOW, "").split(",") if name in run.data.metrics]
        declared = from_text(tags.get(Tag.METRICS, ""))
        metrics = [named(name, declared) for name in shown or [tags[Tag.METRIC]]]
        for view in (views.view(metrics), views.view(metrics, tags[Tag.SCENARIO])):
            self._label(experiment, view.tag, view.value)
        self._annotate(experiment)

    def _annotate(self, experiment: TrackedExperiment) -> None:
        note = notes.of_suite(experiment.name, experiment.id, experiment.tags, experiment.report)
        self._label(experiment, MlflowTag.NOTE, note)

    def _label(self, experiment: TrackedExperiment, tag: str, value: str) -> None:
        """Tag an experiment, if that changes anything."""
        if experiment.tags.get(tag) != value:
            self._client.set_experiment_tag(experiment.id, tag, value)
            experiment.tags[tag] = value

    def _experiment(self, suite: str) -> TrackedExperiment:
        """The suite's experiment with an index of what is in it; made if it is not there."""
        if suite not in self._experiments:
            opened = open_experiment(self._client, self._store, suite)
            experiment = TrackedExperiment(opened.experiment_id, suite, valid_tags(opened.tags))
            for run in database.runs(self._client, experiment.id):
                self._index(experiment, run)
            self._experiments[suite] = experiment
        return self._experiments[suite]

    def _index(self, experiment: TrackedExperiment, run: Run) -> None:
        """Take note of a run that is not damaged; one of two of the same attempt goes.

        A request to create it was carried out but its answer was lost, and it was made again.
        """
        if fault_of(run):
            return
        twin = experiment.runs.get(run.data.tags.get(Tag.KEY, ""))
        better = twin is None or run.info.status == MlflowStatus.FINISHED != twin.status
        if twin is not None and twin.began == run.info.start_time:
            self._client.delete_run(twin.id if better else run.info.run_id)
        if better:
            experiment.add(run)
