"""One `asyncfl tune`: trials are taken, simulated in workers and reported, until studies are full."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from benchmarks import logs
from benchmarks.engine import Engine
from benchmarks.errors import UserError
from benchmarks.pool.dispatch import Pool
from benchmarks.pool.job import Final, GivenUp, Message
from benchmarks.tracking.store import Store
from fl_core.schema import Origin, StudyStatus
from fl_core.text import many
from tuning.ledger import ORIGIN, Ledger
from tuning.pending import BY_SEED, Pending
from tuning.records import Records
from tuning.storage import Storage, storage_errors_explained
from tuning.study import Campaign
from tuning.trials_job import Evaluated, SeedEnded, StopTrial, TrialsJob

if TYPE_CHECKING:
    from optuna import Trial

log = logging.getLogger(__name__)

PULSE = 1.0  # seconds until the storage is polled again for trials that others left


class Driver:
    """Runs the studies of a campaign; several of them, anywhere, share one storage."""

    def __init__(self, campaign: Campaign, storage: Storage, store: Store) -> None:
        self.campaign, self.storage = campaign, storage
        self.name = f"{platform.node()}-{os.getpid()}-{uuid4().hex[:8]}"
        with storage_errors_explained(storage.name):
            self.ledgers = [Ledger(storage, study, self.name) for study in campaign.studies]
        self.records = Records(store, campaign.suite.name, _description(campaign), storage.locks)
        self.before = self.ended
        self.store = store
        self._pending: dict[tuple[str, int], Pending] = {}  # by study and number
        self._prepared: TrialsJob | None = None  # begun, for the worker that is idle next

    @property
    def ended(self) -> int:
        """Counted trials of all studies that have ended, in any process."""
        return sum(len(ledger.ended()) for ledger in self.ledgers)

    @property
    def finished(self) -> bool:
        """Whether every study has all of its trials."""
        return all(len(ledger.ended()) >= ledger.planned for ledger in self.ledgers)

    def run(self, engine: Engine, show: Callable[[int], None]) -> None:
        """Compute until nothing is left; `show` gets the number of ended trials.

        Raises UserError if the storage fails, or a disk has no room for MLflow's records. However it ends,
        reported results are kept, and trials in progress are retried by the others, or by the next
        `asyncfl tune`.
        """
        self.store.make()
        at_work = self.storage.locks.held(f"worker {self.name}")  # no other process retries its trials
        with logs.kept(self.store.session_log), storage_errors_explained(self.storage.name), at_work:
            log.info("%s: %d of %d trials ended", self.campaign.suite.name, self.before, self.campaign.trials)
            self.records.open(self.ledgers)
            status = StudyStatus.INTERRUPTED
            try:
                if not self.finished:
                    with logs.phase("computing"):
                        self._compute(engine, show)
                status = StudyStatus.RUNNING  # of a study that others still work on
            finally:
                self.records.close(self.ledgers, status)
            self._must_have_room()

    def _must_have_room(self) -> None:
        """UserError where a disk has none for MLflow's records."""
        if self.records.full:
            done = f"{self.ended} of {many(self.campaign.trials, 'trial')} finished and kept"
            raise UserError(f"{self.records.full}: {done}; free disk space and rerun the same command")

    def _compute(self, engine: Engine, show: Callable[[int], None]) -> None:
        worlds = {study.tried_on.problem: study.seeds[0] for study in self.campaign.studies}
        pool: Pool[TrialsJob, Any] = engine.pool(self.campaign.trials, self.store.log, worlds)
        with pool:
            while True:
                self._must_have_room()
                self._submit(pool)
                if self.finished:
                    return
                messages = pool.messages(PULSE)
                self._submit_prepared(pool)  # before what has ended is written: no worker waits for that
                ended = [self._take_in(job, message, pool) for job, message in messages]
                if any(ended) or not messages:  # meanwhile, other processes may have progressed
                    show(self.ended)

    def _submit(self, pool: Pool[TrialsJob, Any]) -> None:
        """Begin trials for every idle worker, as long as there are any, and prepare those that come next."""
        self._submit_prepared(pool)
        for _ in range(pool.idle):
            if not (job := self._next(self.ledgers)):
                return
            pool.submit(job)
        if self._prepared is None:  # a study at rest: its sampler knows all that came before
            at_work = {study for study, _ in self._pending}
            self._prepared = self._next(
                [ledger for ledger in self.ledgers if ledger.plan.name not in at_work]
            )

    def _submit_prepared(self, pool: Pool[TrialsJob, Any]) -> None:
        if self._prepared and pool.idle:
            pool.submit(self._prepared)
            self._prepared = None

    def _next(self, ledgers: Sequence[Ledger]) -> TrialsJob | None:
        """The next trials, scenario by scenario, of the study that is furthest from its end."""
        order = {study.scenario: place for place, study in reversed([*enumerate(self.campaign.studies)])}

        def place(ledger: Ledger) -> tuple[int, float]:
            return order[ledger.plan.scenario], len(ledger.counted()) / ledger.plan.planned

        for ledger in sorted(ledgers, key=place):
            if trials := ledger.take(self.campaign.spec.batch):
                return self._begun(ledger, trials)
        return None

    def _begun(self, ledger: Ledger, trials: Sequence[Trial]) -> TrialsJob:
        plan = ledger.plan
        for trial in trials:
            run = self.records.begin(plan.name, trial.number, Origin(trial.user_attrs[ORIGIN]))
            self._pending[plan.name, trial.number] = Pending(ledger, trial, run)
        return TrialsJob(
            plan.name,
            plan.tried_on,
            {trial.number: plan.strategy_with(trial.params) for trial in trials},
            ledger.seeds(trials[0]),
            plan.objective.metric.name,
            by_seed=plan.pruner in BY_SEED,
        )

    def _take_in(self, job: TrialsJob, message: Message, pool: Pool[TrialsJob, Any]) -> bool:
        """Take note of a message; True if trials have ended."""
        if isinstance(message, Evaluated | SeedEnded):
            trial = self._pending[job.study, message.trial]
            trial.see(message)
            if trial.pruned:  # sent again at every message: a note to a worker that died is lost
                pool.send(job, StopTrial(message.trial))
        if not isinstance(message, Final):
            return False
        for number in job.strategies:
            trial = self._pending.pop((job.study, number))
            if isinstance(message, GivenUp):
                trial.error = message.reason
            if trial.error:
                log.warning("%s, trial %d: %s", job.study, number, trial.error)
            if trial.end():
                self.records.write(trial.ledger, number)
        return True


def _description(campaign: Campaign) -> str:
    study = campaign.studies[0]
    return (
        f"Tuning of {campaign.suite.name}: "
        f"{many(study.trials, 'trial')} × {many(len(study.seeds), 'seed')} × {study.budget} "
        f"for each strategy in each scenario; judged on {study.judged_on}."
    )
