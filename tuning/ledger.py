"""The trials of one study in the storage: which process takes which, and the results.

Trials are taken under a lock that all processes on the storage share, so there are never more than planned. A
taken trial bears the name of its process; a dead process leaves its trials RUNNING, and the next process to
take trials puts them back into the queue. (Optuna's own heartbeat needs a database, and `optimize`.)
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks.errors import UserError
from fl_core.schema import Origin, TrialState
from tuning import samplers
from tuning.objective import Measured
from tuning.space import distributions
from tuning.storage import Storage
from tuning.study import Study

if TYPE_CHECKING:
    import optuna
    from optuna import Trial
    from optuna.trial import FrozenTrial

TAKING = "taking"  # the lock under which trials are taken
QUEUED = "fixed_params"  # Optuna's attribute of a trial whose parameters were given to the queue

# Attributes of a study.
DEFINITION = "definition"  # all that its trials have in common
IDENTITY = "identity"  # unique, since a study that is deleted and made again is another one

# Attributes of a trial.
ORIGIN = "from"  # an `Origin`
AGAIN = "again"  # the number of the trial that it repeats under more seeds
WORKER = "worker"  # the process that took it
RESULT = "result"
RUN = "mlflow_run"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a trial, besides its value."""

    by_seed: Sequence[float] = ()  # the objective, in the order of the seeds
    diverged: int = 0  # seeds
    unreached: int = 0  # seeds that did not reach the target
    measured: Sequence[Measured] = ()  # in the order of the seeds
    curve: Sequence[tuple[int, float]] = field(default=())  # iteration and metric, means over seeds
    error: str = ""


class Ledger:
    """A study in the storage, as one process sees it."""

    def __init__(self, storage: Storage, plan: Study, worker: str) -> None:
        self.storage, self.plan, self.worker = storage, plan, worker
        self.study = self._opened()

    def _opened(self) -> optuna.Study:
        """The study, made if it is not there, its first trials queued; UserError if it is another one."""
        import optuna

        plan, locks = self.plan, self.storage.locks
        with locks.held(TAKING):
            study = optuna.create_study(
                study_name=plan.name,
                storage=self.storage.optuna,
                direction=plan.objective.direction,
                pruner=samplers.pruner(plan.pruner, plan.tried_on.evaluations),
                load_if_exists=True,
            )
            known, wanted = study.user_attrs.get(DEFINITION), plan.definition()
            if known is None:
                study.set_user_attr(IDENTITY, uuid4().hex)
                study.set_user_attr(DEFINITION, wanted)
            elif known != wanted:
                differ = [key for key in wanted if known.get(key) != wanted[key]]
                raise UserError(
                    f"the study '{plan.name}' in {self.storage.name} was made with another "
                    f"{' and another '.join(differ)}: go on with that, or name another --storage"
                )
            for origin, values in plan.first[: plan.trials]:
                study.enqueue_trial(dict(values), {ORIGIN: origin.value}, skip_if_exists=True)
        return study

    @property
    def identity(self) -> str:
        """The study's own, whatever its name."""
        return str(self.study.user_attrs[IDENTITY])

    def trials(self) -> list[FrozenTrial]:
        """All trials, as they are now."""
        trials: list[FrozenTrial] = self.study.get_trials(deepcopy=False)
        return trials

    def counted(self) -> list[FrozenTrial]:
        """The trials that count towards the plan: those running or ended."""
        return [trial for trial in self.trials() if trial.state.name != "WAITING"]

    def ended(self) -> list[FrozenTrial]:
        """The counted trials that are complete, pruned or failed."""
        return [trial for trial in self.counted() if trial.state.is_finished()]

    def errors(self) -> list[str]:
        """Return the error of each ended trial that has one."""
        results = (trial.user_attrs.get(RESULT, {}) for trial in self.ended())
        return [result["error"] for result in results if result.get("error")]

    def best(self) -> FrozenTrial | None:
        """The trial with the best value, if any is repeated one of these; None if no trial is complete."""
        complete = self._best_first()
        repeated = [trial for trial in complete if AGAIN in trial.user_attrs]
        return next(iter(repeated or complete), None)

    def _best_first(self) -> list[FrozenTrial]:
        """All complete trials; those of equal values, without the target, by the metric at the end."""
        complete = [trial for trial in self.trials() if trial.state.name == "COMPLETE"]
        sign = -1 if self.plan.objective.maximise else 1
        return sorted(complete, key=lambda trial: (sign * (trial.value or 0.0), -self._end(trial)))

    def _end(self, trial: FrozenTrial) -> float:
        """The metric at the end, mean over seeds, greater being better; −∞ where a seed diverged."""
        ends = [Measured(*row).value for row in trial.user_attrs.get(RESULT, {}).get("measured", ())]
        known = [end for end in ends if end is not None]
        return self.plan.objective.metric.sign * fmean(known) if known and len(known) == len(ends) else -inf

    @property
    def planned(self) -> int:
        """Trials and repetitions; as many of these at most as trials are complete once all have ended."""
        if len(ended := self.ended()) < self.plan.trials:
            return self.plan.planned
        complete = [trial.state.name == "COMPLETE" for trial in ended if AGAIN not in trial.user_attrs]
        return self.plan.trials + min(self.plan.repeated, sum(complete))

    def seeds(self, trial: Trial | FrozenTrial) -> tuple[int, ...]:
        """The seeds under which a trial is simulated."""
        return self.plan.seeds_again if AGAIN in trial.user_attrs else self.plan.seeds

    def importance(self) -> dict[str, float]:
        """Each parameter's importance (PED-ANOVA); empty if it cannot be determined."""
        from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)  # "too few: importances will be equal"
                shares = get_param_importances(self.study, evaluator=PedAnovaImportanceEvaluator())
        except (ValueError, RuntimeError, TypeError, UserWarning):  # the third: bounds beyond 64 bits
            return {}
        return {name: float(share) for name, share in shares.items()}

    def take(self, most: int) -> list[Trial]:
        """Up to so many trials for this process; none if the others have the rest, or all is done."""
        with self.storage.locks.held(TAKING):
            self._recover()
            self._queue_again()
            trials = self.trials()
            waiting = [trial for trial in trials if trial.state.name == "WAITING"]
            first = len(self.ended()) < self.plan.trials
            room = min(most, (self.plan.trials if first else self.planned) - len(self.counted()))
            if interrupted := [trial for trial in waiting if WORKER in trial.user_attrs]:
                room = min(room, len(interrupted))  # what is drawn next may depend on their results
            blank = [trial for trial in waiting if not trial.params and QUEUED not in trial.system_attrs]
            drawn = len(trials) - len(blank)  # as many as when the process of a blank one began to draw
            self.study.sampler = samplers.sampler(self.plan.sampler, self.plan.name, drawn)
            return [self._taken() for _ in range(room)]

    def _taken(self) -> Trial:
        trial: Trial = self.study.ask(distributions(self.plan.space))
        trial.set_user_attr(WORKER, self.worker)
        if ORIGIN not in trial.user_attrs:
            trial.set_user_attr(ORIGIN, Origin.SAMPLER.value)
        return trial

    def _recover(self) -> None:
        """Put the trials of dead processes back into the queue, as they are; to be called under the lock.

        However often that happens: a trial that kills its worker is given up by the pool, and a process that
        takes trials dies for reasons of its own.
        """
        from optuna.trial import TrialState as OptunaState

        running = [trial for trial in self.trials() if trial.state.name == "RUNNING"]
        workers = {trial.user_attrs.get(WORKER, "") for trial in running}
        dead = {
            name
            for name in workers
            if name != self.worker and (not name or self.storage.locks.is_free(f"worker {name}"))
        }
        for trial in running:
            if trial.user_attrs.get(WORKER, "") in dead:
                self.storage.optuna.set_trial_state_values(trial._trial_id, OptunaState.WAITING)

    def _queue_again(self) -> None:
        """Once all trials have ended, queue the best of them, to be repeated under more seeds."""
        if not self.plan.repeated or len(self.ended()) < self.plan.trials:
            return
        queued = {trial.user_attrs[AGAIN] for trial in self.trials() if AGAIN in trial.user_attrs}
        first = [trial for trial in self._best_first() if AGAIN not in trial.user_attrs]
        for trial in first[: self.plan.repeated]:
            if trial.number not in queued:
                attrs = {AGAIN: trial.number, ORIGIN: trial.user_attrs[ORIGIN]}
                self.study.enqueue_trial(trial.params, attrs)

    def tell(
        self, trial: Trial, state: TrialState, value: float | None, result: TrialResult, run: str | None
    ) -> bool:
        """Record what came of a trial; False if another process did, which thought this one dead."""
        from optuna.exceptions import UpdateFinishedTrialError
        from optuna.trial import TrialState as OptunaState

        try:
            if run is not None:
                trial.set_user_attr(RUN, run)
            trial.set_user_attr(RESULT, asdict(result))
            ended = {TrialState.PRUNED: OptunaState.PRUNED, TrialState.FAILED: OptunaState.FAIL}
            if state in ended:
                self.study.tell(trial, state=ended[state])
            else:
                self.study.tell(trial, value)
        except (UpdateFinishedTrialError, ValueError):
            return False
        return True
