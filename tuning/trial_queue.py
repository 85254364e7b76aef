"""A study in Optuna's storage: assignment of trials to processes, and values for samplers.

`Driver` has a `Search` for each study. Trials are taken under a lock that all processes on the storage share,
so there are never more than planned. A taken trial has the name of its process as an attribute; a dead
process leaves its trials RUNNING, and the next process to take trials puts them back into the queue. The
storage has parameters and values alone: results are runs in MLflow.

Fixed: names of studies and of attributes in the storage, which other processes and later sessions read; the
number of drawn trials in `take`, from which the sampler's seed follows.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from benchmarks.errors import warn
from fl_core.recorded_names import Origin, TrialState
from fl_core.text import many
from tuning import samplers
from tuning.optuna_space import distributions
from tuning.storage import Storage
from tuning.study import Study

if TYPE_CHECKING:
    import optuna
    from optuna import Trial
    from optuna.trial import FrozenTrial

TAKE_LOCK = "taking"  # the lock under which trials are taken
QUEUED = "fixed_params"  # Optuna's attribute of a trial whose parameters were given to the queue

# Attributes in the storage: other texts would lose the trials of existing campaigns.
# Of a study:
PLAN = "plan"  # `Study.name`; several studies share it if the suite was edited in between
DEFINITION = "definition"  # `Study.common`, to tell users which part was edited
# Of a trial:
ORIGIN = "from"  # an `Origin`
WORKER = "worker"  # name of the process that took it


class Search:
    """A study in the storage, as seen by a process."""

    def __init__(self, storage: Storage, plan: Study, worker: str) -> None:
        self.storage, self.plan, self.worker = storage, plan, worker
        self.study = self._open_study()

    def _open_study(self) -> optuna.Study:
        """Return the study, created if missing, with the first trials queued.

        Its name in the storage ends in the plan's identity: after an edit of the suite, it is another study.
        """
        import optuna

        plan, name = self.plan, f"{self.plan.name} · {self.plan.identity}"
        with self.storage.locks.held(TAKE_LOCK):  # only one process creates it and queues trials
            studies = self.storage.optuna.get_all_studies()
            if name not in {study.study_name for study in studies}:
                self._warn_of_changes(studies)
            study = optuna.create_study(
                study_name=name,
                storage=self.storage.optuna,
                direction=plan.objective.direction,
                pruner=samplers.pruner(plan.pruner, plan.tried_on.evaluations),
                load_if_exists=True,
            )
            if DEFINITION not in study.user_attrs:
                study.set_user_attr(PLAN, plan.name)
                study.set_user_attr(DEFINITION, plan.common)
            for origin, values in plan.first[: plan.trials]:
                study.enqueue_trial(dict(values), {ORIGIN: origin.value}, skip_if_exists=True)
        return study

    def _warn_of_changes(self, studies: list[optuna.study._frozen.FrozenStudy]) -> None:
        """Warn about trials from before an edit, not counted any more."""
        same = [study for study in studies if study.user_attrs.get(PLAN) == self.plan.name]
        if not same:
            return
        latest = max(same, key=lambda study: study._study_id)
        old, new = latest.user_attrs.get(DEFINITION, {}), self.plan.common
        differ = [key for key in new if old.get(key) != new[key]]
        trials = self.storage.optuna.get_n_trials(latest._study_id)
        warn(
            f"{self.plan.name}: {' and '.join(differ)} changed, so tuning starts anew; "
            f"{many(trials, 'earlier trial')} no longer count"
        )

    def trials(self) -> list[FrozenTrial]:
        """Return all trials in the present state."""
        trials: list[FrozenTrial] = self.study.get_trials(deepcopy=False)
        return trials

    def counted(self) -> list[FrozenTrial]:
        """Return the trials counted towards the planned number: running or ended, not queued."""
        return [trial for trial in self.trials() if trial.state.name != "WAITING"]

    def drawn(self) -> list[FrozenTrial]:
        """Return the trials with all parameters; without trials of a process killed amid drawing."""
        return [trial for trial in self.trials() if WORKER in trial.user_attrs]

    def ended(self) -> list[FrozenTrial]:
        """Return the counted trials: complete, pruned or failed."""
        return [trial for trial in self.counted() if trial.state.is_finished()]

    def importance(self) -> dict[str, float]:
        """Return each parameter's importance (PED-ANOVA); empty if undetermined."""
        from tuning.importance import importance

        sign = 1 if self.plan.objective.direction == "minimize" else -1
        losses = [
            (trial, sign * value)
            for trial in self.trials()
            if trial.state.name == "COMPLETE" and (value := trial.value) is not None and isfinite(value)
        ]
        return importance([trial for trial, _ in losses], [loss for _, loss in losses])

    def take(self, count: int) -> list[Trial]:
        """Return up to `count` trials for this process; empty if all are done or taken by other processes."""
        with self.storage.locks.held(TAKE_LOCK):
            self._recover()
            trials = self.trials()
            waiting = [trial for trial in trials if trial.state.name == "WAITING"]
            room = min(count, self.plan.trials - len(self.counted()))
            if interrupted := [trial for trial in waiting if WORKER in trial.user_attrs]:
                room = min(room, len(interrupted))  # later draws of the sampler depend on their results
            blank = [trial for trial in waiting if not trial.params and QUEUED not in trial.system_attrs]
            # A blank trial was created, but its process died before it drew parameters. Without blank ones,
            # the number, and so the sampler's seed, is the same as for that process.
            drawn = len(trials) - len(blank)
            self.study.sampler = samplers.sampler(self.plan.sampler, self.plan.name, drawn)
            return [self._take_one() for _ in range(room)]

    def _take_one(self) -> Trial:
        trial: Trial = self.study.ask(distributions(self.plan.space))
        trial.set_user_attr(WORKER, self.worker)
        if ORIGIN not in trial.user_attrs:
            trial.set_user_attr(ORIGIN, Origin.SAMPLER.value)
        return trial

    def _recover(self) -> None:
        """Put the trials of dead processes back into the queue; call only with the lock held.

        There is no limit of retries: a trial that kills its worker is given up by the pool, and ends as
        failed.
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

    def tell(self, trial: Trial, state: TrialState, value: float | None) -> None:
        """Report the value of a trial, unless another process has already."""
        from optuna.exceptions import UpdateFinishedTrialError
        from optuna.trial import TrialState as OptunaState

        ended = {TrialState.PRUNED: OptunaState.PRUNED, TrialState.FAILED: OptunaState.FAIL}
        try:
            self.study.tell(trial, value, ended.get(state))
        except (UpdateFinishedTrialError, ValueError):  # told by another process, which computed it too
            return
