"""One `asyncfl tune`: trials are taken, simulated in worker processes and told, until studies are full."""

from __future__ import annotations

import multiprocessing
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import connection
from multiprocessing.context import ForkServerContext
from statistics import fmean
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks.messages import Died
from benchmarks.tracking.store import Store
from tuning.computing import Batch, BatchDone, Ended, Evaluated
from tuning.ledger import ORIGIN, Ledger, Result
from tuning.objective import Curve
from tuning.records import Records
from tuning.storage import Storage, troubles_told
from tuning.study import Campaign
from tuning.worker import BY_SEED, Pending, Worker, is_hopeless, mean_curve

if TYPE_CHECKING:
    from optuna import Trial

PULSE = 1.0  # seconds until the storage is asked again for what others left


class Driver:
    """Runs the studies of a campaign; several of them, anywhere, share one storage."""

    def __init__(self, campaign: Campaign, storage: Storage, store: Store) -> None:
        self.campaign, self.storage = campaign, storage
        self.name = f"{platform.node()}-{os.getpid()}-{uuid4().hex[:8]}"
        with troubles_told(storage.name):
            self.ledgers = [Ledger(storage, study, self.name) for study in campaign.studies]
        self.records = Records(store, campaign.suite.name, _description(campaign), storage.locks)
        self.before = self.ended

    @property
    def ended(self) -> int:
        """Counted trials of all studies that have ended, by whomever."""
        return sum(len(ledger.ended()) for ledger in self.ledgers)

    @property
    def finished(self) -> bool:
        """Whether every study has all of its trials."""
        return all(len(ledger.ended()) >= ledger.plan.trials for ledger in self.ledgers)

    def run(self, workers: int, show: Callable[[int], None]) -> None:
        """Compute until nothing is left, with so many processes; `show` is told how many trials have ended.

        Raises UserError if the storage fails. However it ends, what was told is kept, and what was taken is
        taken up again by the others, or by the next `asyncfl tune`.
        """
        with troubles_told(self.storage.name), self._at_work():
            self.records.open(self.ledgers)
            status = "interrupted"
            try:
                if not self.finished:
                    self._compute(workers, show)
                status = "running"  # of a study that others are still at
            finally:
                self.records.close(self.ledgers, status)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """While this lasts, nobody else takes up this process's trials."""
        with self.storage.locks.held(f"worker {self.name}"):
            yield

    def _compute(self, size: int, show: Callable[[int], None]) -> None:
        context = multiprocessing.get_context("forkserver")
        workers: list[Worker] = []
        try:
            while True:
                self._employ(workers, size, context)
                if self.finished:
                    return
                ready = connection.wait([worker.pipe for worker in workers], PULSE)
                heard = [self._heard(worker, workers) for worker in list(workers) if worker.pipe in ready]
                if any(heard) or not ready:  # if nothing is heard, others may have got on
                    show(self.ended)
        finally:
            for worker in workers:
                worker.end()

    def _employ(self, workers: list[Worker], size: int, context: ForkServerContext) -> None:
        """Give everyone something to do, as long as there is something."""
        for worker in workers:
            if not worker.pending and not self._give(worker):
                return
        while len(workers) < size:
            ledger, trials = self._next()
            if not trials:
                return
            workers.append(Worker(context))
            self._begin(workers[-1], ledger, trials)

    def _give(self, worker: Worker) -> bool:
        ledger, trials = self._next()
        if trials:
            self._begin(worker, ledger, trials)
        return bool(trials)

    def _next(self) -> tuple[Ledger, list[Trial]]:
        """The next trials, of the study that is furthest from its end."""
        ledgers = sorted(self.ledgers, key=lambda one: len(one.counted()) / one.plan.trials)
        for ledger in ledgers:
            if trials := ledger.take(self.campaign.says.batch):
                return ledger, trials
        return ledgers[0], []

    def _begin(self, worker: Worker, ledger: Ledger, trials: Sequence[Trial]) -> None:
        plan = ledger.plan
        worker.ledger = ledger
        worker.pending = [
            Pending(
                trial,
                self.records.begin(plan.name, trial.number, trial.user_attrs[ORIGIN]),
                [Curve() for _ in plan.seeds],
            )
            for trial in trials
        ]
        worker.send(
            Batch(
                plan.tried_on,
                tuple(plan.strategy_with(trial.params) for trial in trials),
                plan.seeds,
                plan.objective.metric,
                by_seed=plan.pruner in BY_SEED,
            )
        )

    def _heard(self, worker: Worker, workers: list[Worker]) -> bool:
        """Take in a message; True if trials have ended."""
        message = worker.hear()
        if isinstance(message, Died):
            workers.remove(worker)
            worker.end()
            if worker.ledger and worker.pending:
                worker.ledger.give_back([one.trial for one in worker.pending])
            return False
        assert worker.ledger is not None
        if isinstance(message, BatchDone):
            for one in worker.pending:
                self._tell(worker.ledger, one)
            worker.pending = []
            return True
        one = worker.pending[message.trial]
        if isinstance(message, Evaluated):
            points = one.curves[message.seed].points
            points[message.row :] = [message.point]
        else:
            self._ended(one, message)
        if not one.pruned and is_hopeless(worker.ledger, one):
            one.pruned = True
            worker.send(message.trial)
        return False

    @staticmethod
    def _ended(one: Pending, message: Ended) -> None:
        if message.status == "error":
            one.error = message.error
        else:
            one.curves[message.seed].status = message.status

    def _tell(self, ledger: Ledger, one: Pending) -> None:
        """What came of a trial, to the storage and to MLflow."""
        objective, run = ledger.plan.objective, one.run.result()
        if one.error:
            state, value, result = "failed", None, Result(error=one.error)
        elif one.pruned:
            state, value, result = "pruned", None, Result(curve=mean_curve(one.curves))
        else:
            by_seed = [objective.of(curve) for curve in one.curves]
            state, value = "complete", fmean(by_seed)
            result = Result(
                by_seed,
                sum(curve.diverged for curve in one.curves),
                sum(not objective.reached(curve) for curve in one.curves),
                mean_curve(one.curves),
            )
        if ledger.tell(one.trial, state, value, result, run):
            self.records.write(ledger, one.trial.number)


def _description(campaign: Campaign) -> str:
    study = campaign.studies[0]
    return (
        f"Tuning of {campaign.suite.name}: {study.trials} trials × {len(study.seeds)} seeds × {study.budget} "
        f"for each strategy in each scenario; judged on {study.judged_on}."
    )
