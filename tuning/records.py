"""Studies and trials on their way from the storage to MLflow: on a thread, while trials are computed.

Everything that MLflow gets can be read off the storage. So whatever is missing there, because it was away or
a process was killed, is brought by the next `asyncfl tune`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.tracking import database
from benchmarks.tracking.delivery import Writer
from benchmarks.tracking.entries import now
from benchmarks.tracking.store import Store
from benchmarks.tracking.studies import StudyTracking, TrialRecord
from fl_core.schema import Origin, StudyStatus, Tag, TrialState
from tuning.ledger import ORIGIN, RESULT, Ledger
from tuning.locks import Locks

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

WRITING = "mlflow"  # the lock under which experiment and studies are made


class Records(Writer):
    """Writes a campaign to MLflow; whatever fails is made up for at the end, and nothing is lost."""

    def __init__(self, store: Store, suite: str, description: str, locks: Locks) -> None:
        super().__init__(store)
        self.suite, self.description, self.locks = suite, description, locks
        self._tracking: StudyTracking | None = None

    def open(self, ledgers: Sequence[Ledger]) -> None:
        """Find or make the parents of trials; soon."""

        def begin() -> None:
            with self.locks.held(WRITING):
                self._tracking = self._opened(ledgers)

        self.soon(begin)

    def begin(self, study: str, number: int, origin: Origin) -> Future[str | None]:
        """The id of a trial's run, soon; None if MLflow is away."""
        return self.soon(lambda: self._tracking.begin(study, number, origin) if self._tracking else None)

    def write(self, ledger: Ledger, number: int) -> None:
        """Bring a trial that has ended into MLflow; soon."""

        def write() -> None:
            if self._tracking:
                self._tracking.write(trial_record(ledger, ledger.trials()[number]))

        self.soon(write)

    def close(self, ledgers: Sequence[Ledger], status: StudyStatus) -> None:
        """Bring all that is missing, and how the studies stand; now."""
        self.last(lambda: self._finish(ledgers, status))

    def _opened(self, ledgers: Sequence[Ledger]) -> StudyTracking:
        """Under the lock: of several processes one makes what is missing, and the others find it."""
        database.create(self.store.tracking_uri)
        tracking = StudyTracking(self.store, self.suite)
        tracking.open(self.description, [study_tags(ledger) for ledger in ledgers])
        return tracking

    def _finish(self, ledgers: Sequence[Ledger], status: StudyStatus) -> None:
        with self.locks.held(WRITING):  # throughout, so that two processes do not bring the same trial
            tracking = self._opened(ledgers)  # with what others have written meanwhile
            for ledger in ledgers:
                ended = ledger.ended()
                for trial in ended:
                    tracking.write(trial_record(ledger, trial))
                done = len(ended) >= ledger.planned
                tracking.summarise(study_tags(ledger, StudyStatus.FINISHED if done else status, tracking))


def trial_record(ledger: Ledger, trial: FrozenTrial) -> TrialRecord:
    """A trial that has ended, as MLflow shows it."""
    attrs = trial.user_attrs
    result: dict[str, Any] = attrs.get(RESULT, {})
    ended = {"COMPLETE": TrialState.COMPLETE, "PRUNED": TrialState.PRUNED}
    return TrialRecord(
        study=ledger.plan.name,
        number=trial.number,
        state=ended.get(trial.state.name, TrialState.FAILED),
        origin=Origin(attrs.get(ORIGIN, Origin.SAMPLER)),
        parameters=trial.params,
        objective=trial.value,
        by_seed=dict(
            zip(ledger.plan.seeds + ledger.plan.seeds_again, result.get("by_seed", ()), strict=False)
        ),
        curve=[(int(iteration), value) for iteration, value in result.get("curve", ())],
        diverged=result.get("diverged", 0),
        unreached=result.get("unreached", 0),
        reason=result.get("error", ""),
        began=_milliseconds(trial.datetime_start),
        ended=_milliseconds(trial.datetime_complete),
    )


def study_tags(
    ledger: Ledger, status: StudyStatus = StudyStatus.RUNNING, tracking: StudyTracking | None = None
) -> dict[Tag, Any]:
    """Return a study's tags; those of its best trial once something is known about that."""
    best = ledger.best()
    known = tracking.trials.get((ledger.plan.name, best.number)) if best and tracking else None
    return ledger.plan.about() | {
        Tag.IDENTITY: ledger.identity,
        Tag.STATUS: status,
        Tag.BEST: best.params if best else {},
        Tag.BEST_VALUE: best.value if best else None,
        Tag.BEST_TRIAL: known.id if known else None,
        Tag.IMPORTANCE: ledger.importance() if tracking else {},
    }


def _milliseconds(moment: datetime | None) -> int:
    """Since 1970; Optuna's times are local and do not say so."""
    return now() if moment is None else int(moment.astimezone(UTC).timestamp() * 1000)
