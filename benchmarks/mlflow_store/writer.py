"""The only writer to MLflow: layout of suites, runs, groups and baselines in MLflow.

`Delivery` calls it from its thread, the only one that may. The metrics, tags and parameters of a run are
chosen in `benchmarks/mlflow_store/tags_and_metrics.py`. The layout:

    experiment        a suite
    run, kind=group   scenario × strategy: the parent of its seeds, and their mean once all are finished
    run, kind=run     one run; asyncfl.key is its identity
    run, kind=pooled  a centralised baseline
    run, kind=report  the report page

    experiment        <suite>.tuning
    run, kind=study   a strategy's search in a scenario
    run, kind=trial   a trial under one seed, its child

Every call can be repeated: entries left half-written by a killed process are completed, and nothing is
duplicated.

Fixed: the layout, which is stored, and read by reports; a run is marked as finished last.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from shutil import copy, copytree
from typing import TYPE_CHECKING

from benchmarks.errors import warn
from benchmarks.mlflow_store import artifact_locations, database, views
from benchmarks.mlflow_store.entities import (
    data_set_of,
    diverged,
    metrics_of_group,
    metrics_of_run,
    params_of_group,
)
from benchmarks.mlflow_store.mlflow_experiment import INDEXED_TAGS, TrackedExperiment, create_experiment
from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.mlflow_store.parquet import UnreadableTableError
from benchmarks.mlflow_store.reader import opened
from benchmarks.mlflow_store.run_files import Copies, Copy, copy_of
from benchmarks.mlflow_store.run_result import (
    MAX_TAG_CHARACTERS,
    MlflowStatus,
    Pair,
    Place,
    RunRequirements,
    RunResult,
    cut,
    fault_of,
    must_be_current,
    name_of_seed,
    name_of_trial,
    names_of,
    now,
    valid_tags,
)
from benchmarks.mlflow_store.store import Store
from benchmarks.redaction import redacted
from fl_core.metrics import TRAINING, from_text, named
from fl_core.recorded_names import (
    ARRIVALS,
    CLIENTS,
    CURVE,
    NETWORK,
    POWER,
    Clock,
    Kind,
    MlflowTag,
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
    Tag.CONDITIONS,
    Tag.PROBLEM,
    Tag.PARTITION,
    Tag.TIMING,
    Tag.STRATEGY,
    Tag.PAPER,
    Tag.METRIC,
    Tag.SUITE,
)


class Tracking:
    """An open MLflow store; methods pass on MLflow's errors."""

    def __init__(self, store: Store) -> None:
        self._store, self._outbox = store, Outbox(store.outbox)
        self._experiments: dict[str, TrackedExperiment] = {}
        self.unread = False  # whether a group lacks its mean, since a seed's curve could not be read

    @cached_property
    def _client(self) -> MlflowClient:
        """MLflow's client, imported on first use: the import takes seconds."""
        return database.client(self._store.tracking_uri)

    @property
    def opened(self) -> bool:
        """Whether MLflow has opened the store."""
        return "_client" in self.__dict__

    def finished(self, suite: str, requirements: Mapping[str, RunRequirements] | None = None) -> set[str]:
        """Return the keys of finished runs and baselines, without errors and outdated runs.

        Runs with `requirements` (by key) are finished only if they meet them and have all their files; a
        warning tells users of the others.
        """
        experiment = self._existing(suite)
        runs = experiment.runs if experiment else {}
        asked = requirements or {}
        lacking = {key for key in asked.keys() & runs if not runs[key].requirements.serves(asked[key])}
        edited = sum(not runs[key].requirements.is_current(asked[key]) for key in lacking)
        if edited:
            warn(
                f"{suite}: your code or data changed after {many(edited, 'run')} were recorded, "
                "which will be computed again"
            )
        done = {key for key, run in runs.items() if run.finished} - lacking
        lost = [key for key in asked if key in done and self._is_lost(runs[key])]
        if lost:
            folder = artifact_locations.place(runs[lost[0]].artifact_uri, self._store.tracking_uri)
            warn(
                f"{many(len(lost), 'finished run')} of {suite} lost files, such as those in "
                f"{folder}, and will be computed again. To avoid this, stop now and restore the "
                "files"
            )
        return done - {*lost}

    def results(self, suite: str, keys: Collection[str]) -> dict[str, RunResult]:
        """Return the results of finished runs by key."""
        experiment = self._existing(suite)
        if experiment is None:
            return {}
        with opened(self._store.tracking_uri) as reader:
            results = reader.results(experiment.id)
        return {
            result.key: result
            for result in results
            if result.key in keys and experiment.runs[result.key].run_id == result.run_id
        }

    def describe(self, suite: str, description: str, highlight: Sequence[str] = ()) -> None:
        """Describe the suite, and store the strategies drawn in ink in figures."""
        experiment = self._experiment(suite)
        self._label(experiment, Tag.DESCRIPTION, description)
        if highlight or Tag.HIGHLIGHT in experiment.tags:
            self._label(experiment, Tag.HIGHLIGHT, json.dumps(highlight, ensure_ascii=False))
        self._annotate(experiment)

    def describe_studies(self, suite: str, studies: Sequence[Mapping[str, str]]) -> None:
        """Create or update a tuning campaign's studies from tags, and mark superseded studies.

        A study of the same strategy and scenario with another identity is superseded, with its trials.
        """
        from mlflow.entities import Metric, RunTag

        experiment = self._experiment(suite)
        identities = {study[Tag.IDENTITY] for study in studies}
        pairs = {(study[Tag.SCENARIO], study[Tag.STRATEGY]) for study in studies}
        for identity, recorded in experiment.studies.items():
            superseded = identity not in identities
            if recorded.pair in pairs and recorded.superseded != superseded:
                trials = (run for run in experiment.runs.values() if run.parent == recorded.run_id)
                for run in (recorded, *trials):
                    self._mark(run, Tag.SUPERSEDED, superseded)
        finished = MlflowStatus.FINISHED
        for study in studies:
            recorded = self._study(experiment, study)
            value = study.get(Tag.BEST_VALUE)
            best = [Metric(TrialMetric.BEST_VALUE, float(value), now(), 0)] if value else []
            tags = [RunTag(name, cut(text, MAX_TAG_CHARACTERS)) for name, text in study.items()]
            self._client.log_batch(recorded.run_id, best, tags=tags, synchronous=True)
            end = recorded.start_time + round(1000 * float(study.get(Tag.WALL_SECONDS, 0)))
            state = (recorded.state, recorded.end_time)
            if study[Tag.STATUS] == StudyStatus.FINISHED and state != (finished, end):
                self._client.set_terminated(recorded.run_id, finished, end)
                recorded.state, recorded.end_time = finished, end
        self._choose(experiment, studies)
        experiment.names = names_of(pairs, experiment.conditions)
        self._rename(experiment)
        # Views of studies or names that the suite no longer has are removed.
        outdated = [tag for tag in experiment.tags if tag.startswith(views.TAG_PREFIX + views.KEY_PREFIX)]
        current = {view.tag: view.value for view in views.of_campaign(studies, experiment.names)}
        for tag, value in (dict.fromkeys(outdated) | current).items():
            self._label(experiment, tag, value)
        self._annotate(experiment)

    def _choose(self, experiment: TrackedExperiment, studies: Sequence[Mapping[str, str]]) -> None:
        """Mark the runs of each study's best trial, and remove outdated marks."""
        experiment.best = {
            (experiment.studies[study[Tag.IDENTITY]].run_id, study.get(Tag.BEST_TRIAL, ""))
            for study in studies
        }
        for run in experiment.runs.values():
            self._mark(run, Tag.CHOSEN, (run.parent, run.tags.get(Tag.TRIAL, "")) in experiment.best)

    def _study(self, experiment: TrackedExperiment, tags: Mapping[str, str]) -> RunResult:
        """Return the study for the tags of a study or trial; create a missing study."""
        identity = tags[Tag.IDENTITY]
        if identity not in experiment.studies:
            pair = tags[Tag.SCENARIO], tags[Tag.STRATEGY]
            study_tags: dict[str, str] = {tag: tags[tag] for tag in (Tag.STUDY, Tag.IDENTITY)}
            study_tags |= {Tag.CONDITIONS: tags.get(Tag.CONDITIONS, "[]")}
            study_tags |= {Tag.KIND: Kind.STUDY, Tag.SCENARIO: pair[0], Tag.STRATEGY: pair[1]}
            study_tags[MlflowTag.COLOUR] = experiment.colour_of(pair[1])
            run = self._client.create_run(experiment.id, now(), study_tags, experiment.name_of(pair))
            experiment.add(RunResult.of_run(run))
        return experiment.studies[identity]

    def _mark(self, run: RunResult, tag: Tag, marked: bool) -> None:
        """Mark a run with a tag, or remove the mark, if necessary."""
        if marked and tag not in run.tags:
            self._tag(run, tag, "true")
        elif tag in run.tags and not marked:
            self._client.delete_tag(run.run_id, tag)
            del run.tags[tag]

    def _tag(self, run: RunResult, tag: str, value: str) -> None:
        self._client.set_tag(run.run_id, tag, value)
        run.tags[tag] = value

    def select(
        self, suite: str, places: Mapping[str, Place], conditions: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Select the current runs by key among runs with equal labels: a suite was edited, or run with --set.

        The others get the tag `Tag.SUPERSEDED`, and reports leave them out; if selected again they lose it.

        Args:
            suite: Name of the experiment.
            places: Key of each current run → its `Place`.
            conditions: Scenario → the parts of its label, if known.
        """
        experiment, taken = self._experiment(suite), set(places.values())
        experiment.conditions |= conditions or {}
        for key, run in experiment.runs.items():
            if key in places or run.place in taken:
                self._mark(run, Tag.SUPERSEDED, key not in places)
        pairs = {(scenario, strategy) for scenario, strategy, _, _ in places.values()}
        experiment.names = names_of(pairs, experiment.conditions)
        self._relabel(experiment, places)
        experiment.planned_keys = {}
        for key, (scenario, strategy, trial, _) in places.items():
            if not trial:
                experiment.planned_keys.setdefault((scenario, strategy), set()).add(key)
        for pair in experiment.planned_keys:
            self._summarise_group(experiment, pair)
        self._rename(experiment)
        self._colour_groups(experiment)

    def _rename(self, experiment: TrackedExperiment) -> None:
        """Give groups, seeds and studies short names, made of the varying parts of the current suite."""
        for key in set().union(*experiment.planned_keys.values()) & experiment.runs.keys():
            run = experiment.runs[key]
            self._name(run, name_of_seed(experiment.name_of(run.pair), run.tags[Tag.SEED]))
        groups = [group for pair, group in experiment.groups.items() if pair in experiment.names]
        for parent in (*groups, *experiment.studies.values()):
            self._name(parent, experiment.name_of(parent.pair))

    def _name(self, run: RunResult, name: str) -> None:
        """Give a run a name, if the present name differs."""
        if run.name != name:
            self._client.update_run(run.run_id, name=name)
            run.tags[MlflowTag.NAME] = name

    def _relabel(self, experiment: TrackedExperiment, places: Mapping[str, Place]) -> None:
        """Give runs the current labels of the suite, and delete groups and views without any seeds left.

        An interrupted renaming is completed by the next call: the name is changed before the tags, and a
        deserted group is recognised by seeds that still have it as their parent.
        """
        for key, place in places.items():
            run = experiment.runs.get(key)
            if run is None or run.place == place:
                continue
            scenario, strategy, _, seed = place
            self._name(run, name_of_seed(experiment.name_of((scenario, strategy)), seed))
            labels = {Tag.SCENARIO: scenario, Tag.STRATEGY: strategy, Tag.SEED: seed}
            if scenario in experiment.conditions:
                labels[Tag.CONDITIONS] = json.dumps(experiment.conditions[scenario], ensure_ascii=False)
            for tag, text in labels.items():
                self._tag(run, tag, text)
        inhabited = {run.pair for run in experiment.runs.values()}
        parents = {run.parent for run in experiment.runs.values()}
        deserted = [
            pair
            for pair, group in experiment.groups.items()
            if pair not in inhabited and group.run_id in parents
        ]
        for pair in deserted:
            self._client.delete_run(experiment.groups.pop(pair).run_id)
        for scenario in {scenario for scenario, _ in deserted} - {scenario for scenario, _ in inhabited}:
            self._label(experiment, views.View(scenario, {}).tag, None)

    def write(self, *results: RunResult) -> None:
        """Write results missing in MLflow from the outbox, and complete results written only in part.

        A result replaces an older record of the same run if that is an error, does not meet the requirements
        of the new one, or has lost its files.
        """
        pairs = {self._write(result) for result in results}
        self._copy_tables(results)
        for suite, pair in sorted(filter(None, pairs)):
            self._summarise_group(self._experiments[suite], pair)

    def _is_lost(self, run: RunResult) -> bool:
        """Return whether any of a run's tables are gone; baselines have no tables."""
        of_kind: dict[str, tuple[Table, ...]] = {Kind.RUN: (CURVE, ARRIVALS, CLIENTS), Kind.TRIAL: (CURVE,)}
        tables = [table.file for table in of_kind.get(run.kind, ())]
        return artifact_locations.are_lost(run.artifact_uri, self._store.tracking_uri, tables)

    def _write(self, result: RunResult) -> tuple[str, Pair] | None:
        """Write a result to MLflow; return suite and group, or None if the result exists already."""
        experiment = self._experiment(result.suite)
        recorded = experiment.runs.get(result.key)
        enough = recorded and recorded.requirements.serves(result.requirements)
        if recorded and recorded.finished and enough and not self._is_lost(recorded):
            return None
        if recorded and recorded.start_time != result.start_time:
            # The record of an earlier attempt, which failed or was cut short, gives way.
            self._client.delete_run(recorded.run_id)
            recorded = None
        if recorded is None:
            recorded = experiment.runs[result.key] = self._create_run(experiment, result)
        if recorded.state != MlflowStatus.RUNNING:
            return None
        self._write_contents(recorded, result)
        recorded.state = result.state
        self._client.set_terminated(recorded.run_id, recorded.state, result.end_time)
        return result.suite, recorded.pair

    def keep_page(self, suite: str, page: Path) -> None:
        """Keep the report page as an artifact, replacing an older page, with a link in the suite's note."""
        experiment = self._experiment(suite)
        if experiment.report is None:
            tags: dict[str, str] = {Tag.KIND: Kind.REPORT, Tag.SUITE: suite}
            began = min((run.start_time for run in experiment.runs.values()), default=now())
            run = self._client.create_run(experiment.id, began, tags, "report page")  # last in the list
            experiment.report = RunResult.of_run(run)
        self._store_files(experiment.report, page)
        self._client.set_terminated(experiment.report.run_id, MlflowStatus.FINISHED)
        self._annotate(experiment)

    def _create_run(self, experiment: TrackedExperiment, result: RunResult) -> RunResult:
        """Create the run of a result in MLflow, without contents, as a child of a group or study."""
        tags = dict(result.tags)
        if result.kind == Kind.RUN:
            tags[MlflowTag.NAME] = name_of_seed(experiment.name_of(result.pair), tags[Tag.SEED])
            tags[MlflowTag.PARENT] = self._group(experiment, tags, result.start_time).run_id
        elif result.kind == Kind.TRIAL:
            tags[MlflowTag.NAME] = name_of_trial(tags)
            study = tags[MlflowTag.PARENT] = self._study(experiment, tags).run_id
            if (study, tags[Tag.TRIAL]) in experiment.best:
                tags[Tag.CHOSEN] = "true"
        if result.kind != Kind.POOLED:
            tags[MlflowTag.COLOUR] = experiment.colour_of(tags[Tag.STRATEGY])
        run = self._client.create_run(experiment.id, result.start_time, tags)
        return RunResult.of_run(run)

    def _group(self, experiment: TrackedExperiment, seed_tags: Mapping[str, str], began: int) -> RunResult:
        """Return the group of a run's seeds, from the tags of a seed; create a missing group."""
        pair = seed_tags[Tag.SCENARIO], seed_tags[Tag.STRATEGY]
        if pair not in experiment.groups:
            tags: dict[str, str] = {tag: seed_tags.get(tag, "") for tag in SHARED}
            tags |= {Tag.KIND: Kind.GROUP, MlflowTag.NOTE: views.note_of_group(experiment.id, seed_tags)}
            run = self._client.create_run(experiment.id, began, tags, experiment.name_of(pair))
            if data_sets := data_set_of(seed_tags, of_seeds=True):
                self._client.log_inputs(run.info.run_id, data_sets)
            experiment.groups[pair] = RunResult.of_run(run)
        return experiment.groups[pair]

    def _write_contents(self, recorded: RunResult, result: RunResult) -> None:
        """Write parameters, metrics, data sets and files of a result to a run in MLflow."""
        from mlflow.entities import Param

        params = [Param(name, text) for name, text in result.params.items()]
        metrics = list(metrics_of_run(result, self._outbox.curve(result)))
        self._client.log_batch(recorded.run_id, metrics, params, synchronous=True)
        if result.kind != Kind.TRIAL and (data_sets := data_set_of(result.tags)):
            self._client.log_inputs(recorded.run_id, data_sets)
        self._store_files(recorded, self._outbox.artifacts(result))

    def _copy_tables(self, results: Sequence[RunResult]) -> None:
        """Copy the tables of runs for reports, if the store is an SQLite file."""
        uri = self._store.tracking_uri
        copies: dict[str, dict[str, Copy]] = {}
        for result in results if database.file(uri) is not None else ():
            run = self._experiments[result.suite].runs[result.key]
            folder = artifact_locations.place(run.artifact_uri, uri)
            if result.kind == Kind.RUN and folder and (tables := copy_of(folder, result)):
                copies.setdefault(run.experiment_id, {})[run.run_id] = tables
        for experiment, of_runs in copies.items():
            Copies(uri, experiment).add(of_runs)

    def _store_files(self, run: RunResult, files: Path) -> None:
        """Keep a file, or all files of a folder, as artifacts of a run."""
        uri = self._store.tracking_uri
        folder = None if self._store.is_server else artifact_locations.place(run.artifact_uri, uri)
        if folder is None:
            log = self._client.log_artifacts if files.is_dir() else self._client.log_artifact
            log(run.run_id, str(files))
        elif files.is_dir():
            copytree(files, folder, dirs_exist_ok=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            copy(files, folder)

    def _summarise_group(self, experiment: TrackedExperiment, pair: Pair) -> None:
        """Log the summary of a group's seeds to the group, once all seeds are finished."""
        keys = experiment.planned_keys.get(pair, set())
        seeds = sorted(
            (experiment.runs[key] for key in keys & experiment.runs.keys()), key=lambda seed: seed.place
        )
        if not keys or len(seeds) < len(keys) or not all(seed.finished for seed in seeds):
            return
        mean_of = cut(",".join(seed.run_id for seed in seeds), MAX_TAG_CHARACTERS)
        group = experiment.groups.get(pair)
        mean_before = group.tags.get(Tag.MEAN_OF, "") if group else ""
        if group and mean_before == mean_of and group.finished:
            return
        if group and mean_before not in ("", mean_of):  # the suite was edited; logged curves are final
            self._client.delete_run(experiment.groups.pop(pair).run_id)
        with opened(self._store.tracking_uri) as reader:
            runs = reader.results(experiment.id, [seed.run_id for seed in seeds])
        group = self._group(experiment, runs[0].tags, runs[0].start_time)
        for run in experiment.runs.values():
            if run.pair == pair and run.parent != group.run_id:
                self._tag(run, MlflowTag.PARENT, group.run_id)
        self._save_views(experiment, runs[0])
        try:
            metrics = list(metrics_of_group(runs, self._client.tracking_uri))
        except UnreadableTableError:  # a lost artifact must not hold up the other writes
            self.unread = True
            return
        self._write_group(experiment, group, runs, metrics, mean_of)
        self._colour_groups(experiment)

    def _write_group(
        self,
        experiment: TrackedExperiment,
        group: RunResult,
        seeds: list[RunResult],
        metrics: list[Metric],
        ids: str,
    ) -> None:
        """Write the means over seeds to the group's run, and mark the run as finished."""
        from mlflow.entities import RunTag

        lost = sum(map(diverged, seeds))
        seconds = sum(seed.seconds for seed in seeds)
        note = views.note_of_group(experiment.id, seeds[0].tags, len(seeds) - lost, lost)
        tags = [RunTag(Tag.MEAN_OF, ids), RunTag(MlflowTag.NOTE, note)]
        self._client.log_batch(group.run_id, metrics, params_of_group(seeds), tags, synchronous=True)
        end = group.start_time + round(1000 * seconds)  # not when the last seed ended, perhaps days later
        self._client.set_terminated(group.run_id, MlflowStatus.FINISHED, end)
        group.tags[Tag.MEAN_OF], group.state = ids, MlflowStatus.FINISHED

    def _colour_groups(self, experiment: TrackedExperiment) -> None:
        """Give the groups of each strategy a common colour in all scenarios."""
        for pair in experiment.planned_keys.keys() & experiment.groups.keys():
            group, colour = experiment.groups[pair], experiment.colour_of(pair[1])
            if group.tags.get(MlflowTag.COLOUR) != colour:
                self._tag(group, MlflowTag.COLOUR, colour)

    def _save_views(self, experiment: TrackedExperiment, run: RunResult) -> None:
        """Save views of the scenario, all scenarios and single runs, with links in the suite's note."""
        tags = run.tags
        single = TRAINING if tags.get(Tag.EVALUATE) == "test" else ()  # evaluated only at the end: no curve
        requested = tags.get(Tag.SHOW, "").split(",")
        curve_names = [name for name in requested if name in run.metrics and name not in single]
        declared = from_text(tags.get(Tag.METRICS, ""))
        metrics = [named(name, declared) for name in curve_names or [tags[Tag.METRIC]]]
        fields = {Clock.BYTES: NETWORK, Clock.ENERGY: POWER}
        clocks = [c for c, key in fields.items() if any(name.startswith(key) for name in run.params)]
        target = Tag.TARGET in tags
        for view in (
            views.view(metrics),
            views.view(metrics, tags[Tag.SCENARIO], more_clocks=clocks, target=target),
            views.runs_view(metrics, target=target),
        ):
            self._label(experiment, view.tag, view.value)
        self._annotate(experiment)

    def _annotate(self, experiment: TrackedExperiment) -> None:
        page = experiment.report.run_id if experiment.report else ""
        note = views.note_of_suite(experiment.name, experiment.id, experiment.tags, page)
        self._label(experiment, MlflowTag.NOTE, note)

    def _label(self, experiment: TrackedExperiment, tag: str, value: str | None) -> None:
        """Tag an experiment, or remove the tag, if the present value differs."""
        if value is None and experiment.tags.pop(tag, None) is not None:
            self._client.delete_experiment_tag(experiment.id, tag)
        elif value is not None and experiment.tags.get(tag) != value:
            self._client.set_experiment_tag(experiment.id, tag, value)
            experiment.tags[tag] = value

    def _experiment(self, suite: str) -> TrackedExperiment:
        """Return the suite's experiment with an index of the runs; create a missing experiment."""
        experiment = self._existing(suite)
        if experiment is None:
            create_experiment(self._client, self._store, suite)
            experiment = self._existing(suite)
            assert experiment is not None
        return experiment

    def _existing(self, suite: str) -> TrackedExperiment | None:
        """Return the suite's experiment with an index of the runs; None if missing."""
        if suite not in self._experiments:
            with opened(self._store.tracking_uri) as reader:
                entry = reader.experiments().get(suite)
                if entry is None:
                    return None
                results = reader.results(entry.id, tags=INDEXED_TAGS)
            must_be_current(results, redacted(self._store.tracking_uri))
            experiment = TrackedExperiment(entry.id, suite, valid_tags(entry.tags))
            for result in results:
                self._index(experiment, result)
            self._experiments[suite] = experiment
        return self._experiments[suite]

    def _index(self, experiment: TrackedExperiment, run: RunResult) -> None:
        """Add an undamaged run to the index; of duplicates from a single attempt, delete the less complete.

        There are duplicates if a server created a run, its answer was lost, and the request was sent again.
        """
        if fault_of(run):
            return
        twin = experiment.runs.get(run.key)
        better = twin is None or (run.finished and not twin.finished)
        if twin is not None and twin.start_time == run.start_time:
            self._client.delete_run(twin.run_id if better else run.run_id)
        if better:
            experiment.add(run)
