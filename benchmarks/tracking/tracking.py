"""The only writer to MLflow: what suites, runs, groups and baselines look like there.

    experiment        a suite
    run, kind=group   scenario × strategy: the parent of its seeds, and their mean once all are finished
    run, kind=run     one run; asyncfl.key is its identity
    run, kind=pooled  a centralised baseline
    run, kind=report  the report page

    experiment        <suite>.tuning
    run, kind=study   a strategy's search in a scenario
    run, kind=trial   a trial under one seed, its child

Every call can be repeated: what a killed process left half-written is completed, and nothing is duplicated.
To be used from one thread.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from shutil import copy, copytree
from typing import TYPE_CHECKING

from benchmarks.errors import warn
from benchmarks.redaction import redacted
from benchmarks.tracking import database, groups, notes, places, views
from benchmarks.tracking.entries import (
    LONGEST_TAG,
    Made,
    cut,
    data_set_of,
    fault_of,
    metrics_of,
    must_be_current,
    name_of,
    name_of_seed,
    now,
    params_of,
    tags_of,
    valid_tags,
)
from benchmarks.tracking.experiment import (
    INDEXED,
    Group,
    KnownRun,
    MlflowStatus,
    Pair,
    Place,
    TrackedExperiment,
    TrackedStudy,
    open_experiment,
)
from benchmarks.tracking.outbox import OutboxRecord, Result
from benchmarks.tracking.parquet import UnreadableTableError
from benchmarks.tracking.reader import Entry, opened
from benchmarks.tracking.store import Store
from fl_core.metrics import TRAINING, from_text, named
from fl_core.schema import (
    ARRIVALS,
    CLIENTS,
    CURVE,
    NETWORK,
    Kind,
    MlflowTag,
    Status,
    StudyStatus,
    Table,
    Tag,
    TrialMetric,
)
from fl_core.text import many

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

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
        self._store = store
        self._experiments: dict[str, TrackedExperiment] = {}
        self.unread = False  # whether a group waits for its sums, since a seed's curve could not be read

    @cached_property
    def _client(self) -> MlflowClient:
        """MLflow's client, once there is something to write: it takes seconds to import."""
        return database.client(self._store.tracking_uri)

    @property
    def opened(self) -> bool:
        """Whether MLflow has opened the store."""
        return "_client" in self.__dict__

    def finished(self, suite: str, wanted: Mapping[str, Made] | None = None) -> set[str]:
        """Keys of what need not be computed again: all but errors, and runs not made as `wanted` says.

        Of the wanted runs, those whose files are gone are not finished either, as a warning says.
        """
        experiment = self._found(suite)
        runs = experiment.runs if experiment else {}
        asked = wanted or {}
        lacking = {key for key in asked.keys() & runs if not runs[key].made.serves(asked[key])}
        edited = sum(not runs[key].made.is_current(asked[key]) for key in lacking)
        if edited:
            warn(f"{suite}: your code or data changed since {many(edited, 'run')}: computed again")
        done = {key for key, known in runs.items() if known.status == MlflowStatus.FINISHED} - lacking
        lost = [key for key in asked if key in done and self._is_lost(runs[key])]
        if lost:
            where = places.place(runs[lost[0]].artifact_uri, self._store.tracking_uri)
            warn(
                f"{many(len(lost), 'finished run')} of {suite} lost files, such as those in {where}: "
                "computed again; to avoid that, stop and put them back"
            )
        return done - {*lost}

    def results(self, suite: str, keys: Collection[str]) -> dict[str, tuple[Status, str, dict[str, float]]]:
        """Return status, reason and metrics of finished runs by their keys."""
        experiment = self._found(suite)
        if experiment is None:
            return {}
        with opened(self._store.tracking_uri) as reader:
            entries = reader.entries(experiment.id)
        return {
            key: (Status(entry.tags[Tag.STATUS]), entry.tags.get(Tag.REASON, ""), entry.metrics)
            for entry in entries
            if (key := entry.tags.get(Tag.KEY, "")) in keys and experiment.runs[key].id == entry.run_id
        }

    def describe(self, suite: str, description: str, highlight: Sequence[str] = ()) -> None:
        """Describe the suite, and name the strategies that figures draw in ink."""
        experiment = self._experiment(suite)
        self._label(experiment, Tag.DESCRIPTION, description)
        if highlight or Tag.HIGHLIGHT in experiment.tags:
            self._label(experiment, Tag.HIGHLIGHT, json.dumps(highlight, ensure_ascii=False))
        self._annotate(experiment)

    def describe_studies(self, suite: str, studies: Sequence[Mapping[str, str]]) -> None:
        """Bring the studies of a tuning campaign, given by their tags; mark those that they replace.

        A study of the same strategy and scenario with another identity is superseded, with its trials.
        """
        from mlflow.entities import Metric, RunTag

        experiment = self._experiment(suite)
        wanted = {study[Tag.IDENTITY] for study in studies}
        pairs = {(study[Tag.SCENARIO], study[Tag.STRATEGY]) for study in studies}
        for identity, known in experiment.studies.items():
            if known.pair in pairs and known.superseded != (identity not in wanted):
                known.superseded = identity not in wanted
                self._supersede(known.id, known.superseded)
                for run in experiment.runs.values():
                    if run.parent == known.id and run.superseded != known.superseded:
                        run.superseded = known.superseded
                        self._supersede(run.id, run.superseded)
        for study in studies:
            known = self._study(experiment, study)
            value = study.get(Tag.BEST_VALUE)
            best = [Metric(TrialMetric.BEST_VALUE, float(value), now(), 0)] if value else []
            tags = [RunTag(name, cut(text, LONGEST_TAG)) for name, text in study.items()]
            self._client.log_batch(known.id, best, tags=tags, synchronous=True)
            if study[Tag.STATUS] == StudyStatus.FINISHED and not known.finished:
                self._client.set_terminated(known.id, MlflowStatus.FINISHED)
                known.finished = True
        scenarios = {scenario for scenario, _ in pairs}
        for study in studies:
            parts = (study[Tag.STRATEGY], study[Tag.SCENARIO])
            view = views.study_view(study, " · ".join(parts[: min(2, len(scenarios))]))
            self._label(experiment, view.tag, view.value)
        self._annotate(experiment)

    def _study(self, experiment: TrackedExperiment, tags: Mapping[str, str]) -> TrackedStudy:
        """Return the study with these tags, or of a trial with them; made if it is not there."""
        identity = tags[Tag.IDENTITY]
        if identity not in experiment.studies:
            pair = tags[Tag.SCENARIO], tags[Tag.STRATEGY]
            own: dict[str, str] = {tag: tags[tag] for tag in (Tag.STUDY, Tag.IDENTITY)}
            own |= {Tag.KIND: Kind.STUDY, Tag.SCENARIO: pair[0], Tag.STRATEGY: pair[1]}
            run = self._client.create_run(experiment.id, now(), own, " · ".join(reversed(pair)))
            experiment.add(Entry.of_run(run))
        return experiment.studies[identity]

    def _supersede(self, run: str, superseded: bool) -> None:
        """Mark a run as replaced, or take the mark away."""
        if superseded:
            self._client.set_tag(run, Tag.SUPERSEDED, "true")
        else:
            self._client.delete_tag(run, Tag.SUPERSEDED)

    def select(self, suite: str, places: Mapping[str, Place]) -> None:
        """Of runs that look alike, those with these keys count: a suite was edited, or run with --set.

        The others get the tag `Tag.SUPERSEDED`, which reports leave out; selected again they lose it.
        """
        experiment, taken = self._experiment(suite), set(places.values())
        others = [run for key, run in experiment.runs.items() if key not in places and run.place in taken]
        chosen = [run for key, run in experiment.runs.items() if key in places]
        for runs, superseded in ((others, True), (chosen, False)):
            for run in runs:
                if run.superseded != superseded:
                    self._supersede(run.id, superseded)
                    run.superseded = superseded
        self._rename(experiment, places)
        experiment.meant = {}
        for key, (scenario, strategy, trial, _) in places.items():
            if trial:
                continue
            experiment.meant.setdefault((scenario, strategy), set()).add(key)
        for pair in experiment.meant:
            self._sum_up(experiment, pair)
        self._paint(experiment)

    def _rename(self, experiment: TrackedExperiment, places: Mapping[str, Place]) -> None:
        """Give runs the labels that their suite has now, and delete the groups that lose all their seeds.

        A renaming that was interrupted is completed: the name is changed before the tags, and a deserted
        group is known by seeds that still have it as their parent.
        """
        for key, place in places.items():
            run = experiment.runs.get(key)
            if run is None or run.place == place:
                continue
            scenario, strategy, _, seed = place
            self._client.update_run(run.id, name=name_of_seed(scenario, strategy, seed))
            for tag, text in ((Tag.SCENARIO, scenario), (Tag.STRATEGY, strategy), (Tag.SEED, seed)):
                self._client.set_tag(run.id, tag, text)
            run.place = place
        inhabited = {run.place[:2] for run in experiment.runs.values()}
        parents = {run.parent for run in experiment.runs.values()}
        for pair, group in list(experiment.groups.items()):
            if pair not in inhabited and group.id in parents:
                self._client.delete_run(group.id)
                del experiment.groups[pair]

    def write(self, *records: OutboxRecord) -> None:
        """Bring records into MLflow that are not there, and complete what is half there.

        An older error of the same run gives way to a record, and so does a record with less at its marks, one
        made by the user's code before it was edited, or one whose files are gone.
        """
        pairs = {self._write(record, record.result) for record in records}
        for suite, pair in sorted(filter(None, pairs)):
            self._sum_up(self._experiments[suite], pair)

    def _is_lost(self, run: KnownRun) -> bool:
        """Whether some of a run's tables are gone; baselines have none."""
        of_kind: dict[str, tuple[Table, ...]] = {Kind.RUN: (CURVE, ARRIVALS, CLIENTS), Kind.TRIAL: (CURVE,)}
        tables = [table.file for table in of_kind.get(run.kind, ())]
        return places.are_lost(run.artifact_uri, self._store.tracking_uri, tables)

    def _write(self, record: OutboxRecord, result: Result) -> tuple[str, Pair] | None:
        """Bring a record into MLflow; its suite and group, or None if it is there."""
        experiment = self._experiment(result.suite)
        known = experiment.runs.get(result.key)
        enough = known and known.made.serves(Made.of(result.about))
        if known and known.status == MlflowStatus.FINISHED and enough and not self._is_lost(known):
            return None
        if known and known.began != result.began:  # another attempt, which failed or was never completed
            self._client.delete_run(known.id)
            known = None
        if known is None:
            known = experiment.runs[result.key] = self._begin(experiment, result)
        if known.status != MlflowStatus.RUNNING:
            return None
        self._fill(known, record, result)
        failed = result.status is Status.ERROR
        known.status = MlflowStatus.FAILED if failed else MlflowStatus.FINISHED
        self._client.set_terminated(known.id, known.status, result.ended)
        return result.suite, known.place[:2]

    def keep_page(self, suite: str, page: Path) -> None:
        """Keep the report page as an artifact, in the place of an older one; the suite's note links to it."""
        experiment = self._experiment(suite)
        if not experiment.report:
            tags: dict[str, str] = {Tag.KIND: Kind.REPORT, Tag.SUITE: suite}
            began = min((known.began for known in experiment.runs.values()), default=now())
            run = self._client.create_run(experiment.id, began, tags, "report page")  # below all others
            experiment.add(Entry.of_run(run))
        self._keep(experiment.report, experiment.report_uri, page)
        self._client.set_terminated(experiment.report, MlflowStatus.FINISHED)
        self._annotate(experiment)

    def _begin(self, experiment: TrackedExperiment, result: Result) -> KnownRun:
        tags = tags_of(result)
        if result.kind is Kind.RUN:
            tags[MlflowTag.PARENT] = self._group(experiment, tags, result.began).id
        elif result.kind is Kind.TRIAL:
            tags[MlflowTag.PARENT] = self._study(experiment, tags).id
        run = self._client.create_run(experiment.id, result.began, tags, name_of(result))
        return KnownRun.of_entry(Entry.of_run(run))

    def _group(self, experiment: TrackedExperiment, seed_tags: Mapping[str, str], began: int) -> Group:
        """The parent of a run's seeds, from the tags of one of them."""
        scenario, strategy = pair = seed_tags[Tag.SCENARIO], seed_tags[Tag.STRATEGY]
        if pair not in experiment.groups:
            tags: dict[str, str] = {tag: seed_tags.get(tag, "") for tag in SHARED}
            tags |= {Tag.KIND: Kind.GROUP, MlflowTag.NOTE: notes.of_group(experiment.id, seed_tags)}
            run = self._client.create_run(experiment.id, began, tags, f"{strategy} · {scenario}")
            if data_sets := data_set_of(seed_tags, of_seeds=True):
                self._client.log_inputs(run.info.run_id, data_sets)
            experiment.groups[pair] = Group(run.info.run_id, mean_of="", finished=False, colour="")
        return experiment.groups[pair]

    def _fill(self, known: KnownRun, record: OutboxRecord, result: Result) -> None:
        from mlflow.entities import Param

        shown = result.parameters or record.description
        params = [Param(name, text) for name, text in params_of(shown)]
        self._client.log_batch(known.id, list(metrics_of(record, result)), params, synchronous=True)
        if result.kind is not Kind.TRIAL and (data_sets := data_set_of(tags_of(result))):
            self._client.log_inputs(known.id, data_sets)
        self._keep(known.id, known.artifact_uri, record.artifacts)

    def _keep(self, run: str, address: str, files: Path) -> None:
        """Keep a file, or those of a folder, as artifacts of a run."""
        folder = None if self._store.is_server else places.place(address, self._store.tracking_uri)
        if folder is None:
            (self._client.log_artifacts if files.is_dir() else self._client.log_artifact)(run, str(files))
        elif files.is_dir():
            copytree(files, folder, dirs_exist_ok=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            copy(files, folder)

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
        with opened(self._store.tracking_uri) as reader:
            runs = reader.entries(experiment.id, [seed.id for seed in seeds])
        group = self._group(experiment, runs[0].tags, runs[0].start_time)
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
        self, experiment: TrackedExperiment, group: Group, seeds: list[Entry], metrics: list[Metric], ids: str
    ) -> None:
        from mlflow.entities import RunTag

        lost = sum(map(groups.diverged, seeds))
        note = notes.of_group(experiment.id, seeds[0].tags, len(seeds) - lost, lost)
        tags = [RunTag(Tag.MEAN_OF, ids), RunTag(MlflowTag.NOTE, note)]
        self._client.log_batch(group.id, metrics, groups.params_of(seeds), tags, synchronous=True)
        last = max(seed.end_time for seed in seeds)
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

    def _save_views(self, experiment: TrackedExperiment, run: Entry) -> None:
        """A view of the run's scenario, and one of all scenarios; with links to them in the suite's note."""
        tags = run.tags
        single = TRAINING if tags.get(Tag.EVALUATE) == "test" else ()  # at the end alone: no curve
        wanted = tags.get(Tag.SHOW, "").split(",")
        shown = [name for name in wanted if name in run.metrics and name not in single]
        declared = from_text(tags.get(Tag.METRICS, ""))
        metrics = [named(name, declared) for name in shown or [tags[Tag.METRIC]]]
        network = any(name.startswith(NETWORK) for name in run.params)
        target = Tag.TARGET in tags
        for view in (
            views.view(metrics),
            views.view(metrics, tags[Tag.SCENARIO], network=network, target=target),
        ):
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
        experiment = self._found(suite)
        if experiment is None:
            open_experiment(self._client, self._store, suite)
            experiment = self._found(suite)
            assert experiment is not None
        return experiment

    def _found(self, suite: str) -> TrackedExperiment | None:
        """The suite's experiment with an index of what is in it, if it is there."""
        if suite not in self._experiments:
            with opened(self._store.tracking_uri) as reader:
                there = reader.experiments().get(suite)
                if there is None:
                    return None
                entries = reader.entries(there.id, tags=INDEXED)
            must_be_current(entries, redacted(self._store.tracking_uri))
            experiment = TrackedExperiment(there.id, suite, valid_tags(there.tags))
            for entry in entries:
                self._index(experiment, entry)
            self._experiments[suite] = experiment
        return self._experiments[suite]

    def _index(self, experiment: TrackedExperiment, entry: Entry) -> None:
        """Take note of a run that is not damaged; one of two of the same attempt goes.

        A request to create it was carried out but its answer was lost, and it was made again.
        """
        if fault_of(entry):
            return
        twin = experiment.runs.get(entry.tags.get(Tag.KEY, ""))
        better = twin is None or entry.status == MlflowStatus.FINISHED != twin.status
        if twin is not None and twin.began == entry.start_time:
            self._client.delete_run(twin.id if better else entry.run_id)
        if better:
            experiment.add(entry)
