"""Driver of `asyncfl tune`: take trials, compute runs, and report values until all studies are complete.

`commands/tune.py` and the leaderboard call it. Optuna's storage assigns trials to processes
(`tuning/trial_queue.py`); results are runs in MLflow, as of any suite, and the value of a trial is made from
them (`tuning/objective.py`).

Fixed: a resumed campaign ends with the trials of an uninterrupted one. Free: waiting times.
"""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from benchmarks import log_file
from benchmarks.engine import Engine
from benchmarks.errors import GO_ON, UserError
from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Announcement
from benchmarks.mlflow_store.provenance import provenance
from benchmarks.mlflow_store.run_result import RunResult, TrialResult, text
from benchmarks.mlflow_store.store import Store
from benchmarks.pool.job import GivenUp, Message
from benchmarks.pool.pool import Pool
from benchmarks.runs.messages import Evaluated, Finished, NoRoom
from benchmarks.runs.run_jobs import RunJob
from benchmarks.runs.session import delivering
from fl_core.recorded_names import CAMPAIGN, Origin, Status, StudyStatus, Tag, TrialMetric
from fl_core.text import many
from tuning.objective import Curve, curve_point
from tuning.results import StudyResult
from tuning.storage import Storage, storage_errors_explained
from tuning.study import PRUNERS_BY_EVALUATION, PRUNERS_BY_SEED, Campaign
from tuning.trial import TrialRun
from tuning.trial_queue import ORIGIN, Search

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.trial import FrozenTrial

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # without a message, after which the storage is asked for trials of processes that died


@dataclass(eq=False)
class TrialInProgress:
    """A trial with runs in the present process.

    Its pruner looks at evaluations (median, hyperband) or at seeds (wilcoxon); most studies have none.
    """

    search: Search
    trial: Trial
    runs: list[TrialRun]  # one for each seed of the study
    results: dict[str, RunResult] = field(default_factory=dict)  # by key
    curves: dict[str, Curve] = field(default_factory=dict)  # of runs that a pruner looks at, by key
    withdrawn: set[str] = field(default_factory=set)  # keys of runs that are not needed any more
    reported: int = 0  # evaluations, or seeds, that the pruner has seen
    pruned: bool = False

    def __post_init__(self) -> None:
        # Values of an interrupted attempt. Optuna keeps the first value of a step, so they are not reported
        # again.
        self._reported_values = self.search.trials()[self.trial.number].intermediate_values
        self.reported = max(self._reported_values, default=0)

    @property
    def next_runs(self) -> list[TrialRun]:
        """Return the runs to submit next: all, or a single run for a pruner of seeds."""
        missing = [run for run in self.runs if run.key not in self.results]
        return missing[:1] if self.search.plan.pruner in PRUNERS_BY_SEED else missing

    @property
    def given_up(self) -> bool:
        """Return whether runs not yet begun can be skipped."""
        return self.pruned or any(not result.status.terminated for result in self.results.values())

    @property
    def ended(self) -> bool:
        """Whether each run has a result or is not needed."""
        return all(run.key in self.results or run.key in self.withdrawn for run in self.runs)

    def evaluated(self, run: TrialRun, message: Evaluated) -> None:
        """Record an evaluation, and ask a pruner of evaluations."""
        plan = self.search.plan
        curve = self.curves.setdefault(run.key, Curve())
        # A resumed run sends rows again.
        curve.points[message.row :] = [curve_point(message.values, plan.objective.metric.name)]
        if plan.pruner not in PRUNERS_BY_EVALUATION or self.pruned or not isfinite(curve.points[0].value):
            return
        curves = [self.curves.get(run.key, Curve()) for run in self.runs]
        rows = min(len(curve.points) for curve in curves)
        for row in range(max(self.reported, 1), rows):  # the first model is the same for all
            self._report(fmean(plan.objective.value(curve, curve.points[row]) for curve in curves), row)
            if self.trial.should_prune():
                self.pruned = True
                return

    def finished(self, run: TrialRun, result: RunResult) -> None:
        """Record a result, and ask a pruner of seeds."""
        self.results[run.key] = result
        if self.search.plan.pruner not in PRUNERS_BY_SEED or TrialMetric.OBJECTIVE not in result.metrics:
            return
        seed = len(self.results) - 1
        if seed >= self.reported:
            self._report(result.metrics[TrialMetric.OBJECTIVE], seed)
        self.pruned = len(self.results) < len(self.runs) and self.trial.should_prune()

    def _report(self, value: float, step: int) -> None:
        if step not in self._reported_values:
            self.trial.report(value, step)
        self.reported = step + 1

    def tell(self) -> None:
        """Let the sampler know the result."""
        by_seed = {run.seed: self.results[run.key] for run in self.runs if run.key in self.results}
        result = TrialResult(self.trial.number, Origin.SAMPLER, self.trial.params, by_seed, self.pruned)
        self.search.tell(self.trial, result.state, result.value)


class Driver:
    """Driver of a campaign's studies; several drivers, anywhere, share a storage."""

    def __init__(self, campaign: Campaign, storage: Storage, store: Store) -> None:
        self.campaign, self.storage, self.store = campaign, storage, store
        self.name = f"{platform.node()}-{os.getpid()}-{uuid4().hex[:8]}"
        with storage_errors_explained(storage.name):
            self.searches = [Search(storage, study, self.name) for study in campaign.studies]
        self.results: dict[str, RunResult] = {}  # of runs that have ended, by key
        self.finished_earlier = self.ended  # trials
        self.outage = ""  # why MLflow could not be reached at the end; empty if it could
        self.failing = False  # whether a rerun alone would not help: MLflow refuses a record, or fails
        self._planned: dict[tuple[str, int], list[TrialRun]] = {}  # by study's identity and trial's number
        self._trials: dict[str, TrialInProgress] = {}  # in progress, by the key of each of their runs
        # Trials that were taken together; their values are reported together, so that the sampler's next
        # draws do not depend on which of them ended first.
        self._batches: list[list[TrialInProgress]] = []
        self._prepared: list[TrialInProgress] = []  # taken in advance, for the next idle worker

    @property
    def experiment(self) -> str:
        """Return the name of the experiment for trials."""
        return f"{self.campaign.name}{CAMPAIGN}"

    @property
    def ended(self) -> int:
        """Return the number of finished trials of all studies, in any process."""
        return sum(len(search.ended()) for search in self.searches)

    @property
    def finished(self) -> bool:
        """Return whether every study is complete."""
        return all(len(search.ended()) >= search.plan.trials for search in self.searches)

    @property
    def studies(self) -> list[StudyResult]:
        """The results of all studies, in the order of the campaign."""
        return [
            StudyResult(
                search.plan,
                [trial_result(trial, self._runs(search, trial), self.results) for trial in search.ended()],
            )
            for search in self.searches
        ]

    def run(self, engine: Engine, show: Callable[[int], None]) -> None:
        """Compute until all studies are complete; `show` gets the number of ended trials.

        However it ends, records of ended runs are kept, and trials in progress are retried by other
        processes, or by the next `asyncfl tune`.

        Raises:
            UserError: The storage fails, or a disk is full.
        """
        with ExitStack() as stack:
            delivery = stack.enter_context(delivering(self.store, shared=True))
            stack.enter_context(storage_errors_explained(self.storage.name))
            # While this lock is held, no other process takes this one for dead and retries its trials.
            stack.enter_context(self.storage.locks.held(f"worker {self.name}"))
            log.info(
                "%s: %d of %d trials ended", self.campaign.name, self.finished_earlier, self.campaign.trials
            )
            try:
                missing = self._remaining_runs(delivery)
                self._announce(delivery, StudyStatus.RUNNING)
                show(self.ended)
                while missing or not self.finished:
                    with log_file.phase("computing"):
                        self._compute(missing, delivery, engine, show)
                    missing = self._remaining_runs(delivery)  # once results of other processes are read
            except KeyboardInterrupt:
                self._announce(delivery, StudyStatus.INTERRUPTED)
                raise
            else:
                self._announce(delivery, StudyStatus.FINISHED)
            finally:
                delivery.close()
                self.outage, self.failing = delivery.pending_reason, delivery.failing
        if delivery.full_disk:
            raise self._no_room(delivery.full_disk)

    def read(self) -> None:
        """Read the results of ended trials, without computing any."""
        with delivering(self.store, shared=True) as delivery, storage_errors_explained(self.storage.name):
            self._read_results(delivery)

    def _runs(self, search: Search, trial: FrozenTrial | Trial) -> list[TrialRun]:
        """Return the runs of a trial: under the common seeds, then under the seeds for the best trials."""
        place = search.plan.identity, trial.number
        if place not in self._planned:
            plan, origin = search.plan, Origin(trial.user_attrs.get(ORIGIN, Origin.SAMPLER))
            self._planned[place] = plan.runs(
                trial.number, trial.params, origin, plan.seeds + plan.seeds_again
            )
        return self._planned[place]

    def _common_runs(self, search: Search, trial: FrozenTrial | Trial) -> list[TrialRun]:
        """Return the runs of a trial under the seeds common to all trials."""
        return self._runs(search, trial)[: len(search.plan.seeds)]

    def _read_results(self, delivery: Delivery) -> list[TrialRun]:
        """Read the results of all trials; return runs of complete trials with a lost record."""
        keys = {
            run.key
            for search in self.searches
            for trial in search.drawn()
            for run in self._runs(search, trial)
        }
        if unknown := keys - self.results.keys():
            self.results |= delivery.results(self.experiment, unknown)
        needed = [
            run
            for search in self.searches
            for trial in search.ended()
            if trial.state.name == "COMPLETE"
            for run in self._common_runs(search, trial)
            if run.key in unknown
        ]
        lost = delivery.missing(needed) if needed else []
        for run in lost:
            self.results.pop(run.key, None)
        return lost

    def _remaining_runs(self, delivery: Delivery) -> list[TrialRun]:
        """Return the runs to compute besides runs of new trials.

        They are lost runs or, once all trials have ended, the best trials under more seeds.
        """
        lost = self._read_results(delivery)
        return lost or (self._missing_repetitions() if self.finished else [])

    def _announce(self, delivery: Delivery, status: StudyStatus) -> None:
        """Write studies, progress and the current runs to MLflow."""
        runs = [
            run
            for search in self.searches
            for trial in search.drawn()
            for run in self._runs(search, trial)
            if run.seed in search.plan.seeds or run.key in self.results
        ]
        studies = [
            {str(tag): text(value) for tag, value in tags.items() if value not in (None, {}, [], "")}
            for search, result in zip(self.searches, self.studies, strict=True)
            for tags in [study_tags(search, result, status)]
        ]
        announcement = Announcement(
            self.experiment,
            _description(self.campaign),
            {run.key: run.place for run in runs},
            studies=studies,
            conditions={search.plan.scenario: [*search.plan.conditions] for search in self.searches},
        )
        delivery.outbox.announce(announcement)
        delivery.announce(announcement)

    def _no_room(self, operation: str) -> UserError:
        done = f"{self.ended} of {many(self.campaign.trials, 'trial')} finished and kept"
        return UserError(f"{operation}: {done}; {GO_ON}")

    def _compute(
        self,
        missing_runs: Sequence[TrialRun],
        delivery: Delivery,
        engine: Engine,
        show: Callable[[int], None],
    ) -> None:
        """Compute the given runs and new trials, until all studies are complete."""
        tags = provenance()
        worlds = {study.tried_on.problem: study.seeds[0] for study in self.campaign.studies}
        pool: Pool[RunJob, Any] = engine.pool(self.campaign.simulations, self.store.log, worlds)

        def submit(runs: Sequence[TrialRun]) -> None:
            for run in runs:
                pool.submit(RunJob(run, delivery.outbox, tags))

        with pool:
            submit(missing_runs)
            while True:
                if delivery.full_disk:
                    raise self._no_room(delivery.full_disk)
                self._start_trials(pool, submit)
                self._report_batches(show)  # a resumed trial may have no run left to compute
                if not pool.busy and self.finished:
                    return
                messages = pool.messages(POLL_SECONDS)
                if not messages:
                    show(self.ended)  # meanwhile, other processes may have progressed
                for job, message in messages:
                    event = job.failed(message.reason) if isinstance(message, GivenUp) else message
                    self._handle(job, event, pool, submit)
                    if isinstance(event, Finished):
                        self._submit_prepared(pool, submit)  # first of all, so that no worker is idle
                        delivery.send()
                        self._report_batches(show)

    def _start_trials(self, pool: Pool[RunJob, Any], submit: Callable[[Sequence[TrialRun]], None]) -> None:
        """Begin trials for every idle worker, and prepare the next trials."""
        self._submit_prepared(pool, submit)
        for _ in range(pool.idle):
            if not (batch := self._next_batch(self.searches)):
                return
            for trial in batch:
                submit(trial.next_runs)
        # Only of a study without trials in progress: its sampler knows all values that it is to know.
        if not self._prepared:
            at_work = {trial.search for batch in self._batches for trial in batch}
            self._prepared = self._next_batch([search for search in self.searches if search not in at_work])

    def _submit_prepared(self, pool: Pool[RunJob, Any], submit: Callable[[Sequence[TrialRun]], None]) -> None:
        if self._prepared and pool.idle:
            for trial in self._prepared:
                submit(trial.next_runs)
            self._prepared = []

    def _next_batch(self, searches: Sequence[Search]) -> list[TrialInProgress]:
        """Return the next trials: of the first unfinished scenario, the study furthest from the end."""
        order = {study.scenario: place for place, study in reversed([*enumerate(self.campaign.studies)])}

        def place(search: Search) -> tuple[int, float]:
            return order[search.plan.scenario], len(search.counted()) / search.plan.trials

        for search in sorted(searches, key=place):
            if trials := search.take(self.campaign.spec.batch):
                batch = [
                    TrialInProgress(
                        search, trial, self._common_runs(search, trial), self._earlier_results(search, trial)
                    )
                    for trial in trials
                ]
                self._trials |= {run.key: trial for trial in batch for run in trial.runs}
                self._batches.append(batch)
                return batch
        return []

    def _earlier_results(self, search: Search, trial: Trial) -> dict[str, RunResult]:
        """Return the results of runs finished before the trial was interrupted, by key.

        With a pruner there are none: it has to see each of them again.
        """
        if search.plan.pruner != "none":
            return {}
        results = {run.key: self.results.get(run.key) for run in self._common_runs(search, trial)}
        return {key: result for key, result in results.items() if result and result.status.terminated}

    def _handle(
        self,
        job: RunJob,
        event: Message,
        pool: Pool[RunJob, Any],
        submit: Callable[[Sequence[TrialRun]], None],
    ) -> None:
        """Handle a message about a run: inform the pruner, keep the result, submit or cancel runs."""
        run = job.task
        assert isinstance(run, TrialRun)
        if isinstance(event, NoRoom):
            raise self._no_room(event.reason)
        trial = self._trials.get(run.key)
        if isinstance(event, Evaluated) and trial is not None:
            trial.evaluated(run, event)
            if trial.given_up:  # at every evaluation again: a worker that died has not read the request
                pool.cancel(job)
        if isinstance(event, Finished):
            result = self.results[run.key] = event.result
            if result.status is Status.ERROR:
                log.warning("%s, trial %d: %s", run.study, run.number, result.reason)
            if trial is not None:
                trial.finished(run, result)
                if trial.search.plan.pruner in PRUNERS_BY_SEED:
                    if trial.given_up:
                        trial.withdrawn = {trial_run.key for trial_run in trial.runs}
                    else:
                        submit(trial.next_runs)
        if trial is not None and trial.given_up:
            trial.withdrawn |= pool.withdraw({trial_run.key for trial_run in trial.runs})

    def _report_batches(self, show: Callable[[int], None]) -> None:
        """Report the values of batches without a trial in progress."""
        for batch in list(self._batches):
            if all(trial.ended for trial in batch):
                self._batches.remove(batch)
                for trial in batch:
                    trial.tell()
                    for run in trial.runs:
                        del self._trials[run.key]
                show(self.ended)

    def _missing_repetitions(self) -> list[TrialRun]:
        """Return the runs of the best trials under more seeds, without runs with a result."""
        missing = []
        for search, result in zip(self.searches, self.studies, strict=True):
            plan, trials = search.plan, {trial.number: trial for trial in search.ended()}
            first = StudyResult(plan, [trial.under(plan.seeds) for trial in result.trials])
            for best in first.best_first[: plan.repeated]:
                more = self._runs(search, trials[best.number])[len(plan.seeds) :]
                missing += [run for run in more if run.key not in self.results]
        return missing


def trial_result(
    trial: FrozenTrial, runs: Sequence[TrialRun], results: Mapping[str, RunResult]
) -> TrialResult:
    """Return the result of an Optuna trial, from the results of runs by key."""
    origin = Origin(trial.user_attrs.get(ORIGIN, Origin.SAMPLER))
    by_seed = {run.seed: results[run.key] for run in runs if run.key in results}
    return TrialResult(trial.number, origin, trial.params, by_seed, pruned=trial.state.name == "PRUNED")


def study_tags(search: Search, result: StudyResult, status: StudyStatus) -> dict[Tag, Any]:
    """Return the tags of a study in MLflow, with the current best trial."""
    best = result.best
    done = len(result.trials) >= search.plan.trials
    ended = status is not StudyStatus.RUNNING
    return search.plan.tags() | {
        Tag.IDENTITY: search.plan.identity,
        Tag.STATUS: StudyStatus.FINISHED if done and ended else status,
        Tag.BEST: dict(best.parameters) if best else {},
        Tag.BEST_VALUE: best.value if best else None,
        Tag.BEST_TRIAL: best.number if best else None,
        Tag.WALL_SECONDS: sum(run.seconds for trial in result.trials for run in trial.runs.values()),
        Tag.PRUNED: [trial.number for trial in result.trials if trial.pruned],
        Tag.IMPORTANCE: search.importance() if ended else {},
    }


def _description(campaign: Campaign) -> str:
    """Return the description of a campaign for MLflow."""
    study = campaign.studies[0]
    return (
        f"Tuning of {campaign.suite.name}: "
        f"{many(study.trials, 'trial')} × {many(len(study.seeds), 'seed')} × {study.budget} "
        f"for each strategy in each scenario; judged on {study.judged_on}."
    )
