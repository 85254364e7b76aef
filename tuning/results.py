"""Results of a campaign: trials from runs, the best of each study, and tuned values for suites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import fmean, stdev

from benchmarks.suite import tuned
from benchmarks.suite.tuned import TunedEntry, TunedFile
from benchmarks.tracking.provenance import version, versions
from benchmarks.tracking.run_result import TrialResult
from fl_core.schema import Origin, TrialState
from fl_core.strategies.hyperparameters import FACTOR, fields_of
from tuning.study import Campaign, Study

GOOD = 0.02  # a trial is good if its objective differs by so little from the best one, relative to it
LIBRARIES = ("asyncfl-bench", "optuna", "torch", "numpy")


@dataclass(frozen=True, eq=False)
class StudyResult:
    """The ended trials of a study."""

    plan: Study
    trials: Sequence[TrialResult]

    @cached_property
    def best_first(self) -> list[TrialResult]:
        """Return the complete trials, the best first; ties without the target by the final metric."""
        objective = self.plan.objective
        sign = -1 if objective.maximise else 1

        def end(trial: TrialResult) -> float:
            value = trial.end()
            return -inf if value is None else objective.metric.sign * value

        complete = [trial for trial in self.trials if trial.state is TrialState.COMPLETE]
        return sorted(complete, key=lambda trial: (sign * (trial.value or 0.0), -end(trial)))

    @property
    def best(self) -> TrialResult | None:
        """Return the best of the complete trials with the most seeds; None without a complete trial."""
        max_runs = max((len(trial.runs) for trial in self.best_first), default=0)
        return next((trial for trial in self.best_first if len(trial.runs) == max_runs), None)

    @property
    def whole(self) -> bool:
        """Return whether all trials have ended, the best under all seeds."""
        repeated = sum(len(trial.runs) > len(self.plan.seeds) for trial in self.best_first)
        count = min(self.plan.repeated, len(self.best_first))
        return len(self.trials) >= self.plan.trials and repeated >= count

    def errors(self) -> list[str]:
        """Return the error of each failed trial."""
        return [trial.error for trial in self.trials if trial.error]


def found(campaign: Campaign, studies: Sequence[StudyResult]) -> TunedFile:
    """Return the best parameters of every study with a usable trial, also for strategies reusing them."""
    entries = {(study.plan.scenario, study.plan.strategy): _entry(study) for study in studies}
    usable = {place: entry for place, entry in entries.items() if entry is not None}
    for run, source in campaign.reused:
        if (source_entry := usable.get((run.scenario, source))) is not None:
            digest = tuned.digest(run.experiment.scenario, run.experiment.strategy, source_entry.parameters)
            # The same parameters; their value for this strategy was not measured.
            update = {"strategy": run.strategy, "digest": digest, "reused_from": source_entry.strategy}
            usable[run.scenario, run.strategy] = source_entry.model_copy(update=update)
    order = list(dict.fromkeys((run.scenario, run.strategy) for run in campaign.suite.runs()))
    study = campaign.studies[0]
    versions_used = {"asyncfl-bench": version("asyncfl-bench"), "optuna": version("optuna"), **versions()}
    return TunedFile(
        suite=campaign.suite.name,
        objective=study.objective.kind,
        metric=study.objective.metric.name,
        direction=study.objective.direction,
        judged_on=study.judged_on,
        trials=study.trials,
        seeds=study.seeds + study.seeds_again,
        budget=study.budget,
        sampler=study.sampler,
        versions={name: versions_used[name] for name in LIBRARIES if versions_used.get(name)},
        tuned=tuple(usable[place] for place in order if place in usable),
    )


def _entry(study: StudyResult) -> TunedEntry | None:
    """Return the result of a study; None if every seed of every trial diverged."""
    plan, best = study.plan, study.best
    if best is None or best.value is None or best.diverged == len(best.runs):
        return None
    by_seed = tuple(best.by_seed.values())
    paper_trials = (trial for trial in study.trials if trial.origin is Origin.PAPER)
    return TunedEntry(
        scenario=plan.scenario,
        strategy=plan.strategy,
        digest=plan.digest,
        parameters=dict(best.parameters),
        value=fmean(by_seed),
        spread=stdev(by_seed) if len(by_seed) > 1 else None,
        by_seed=by_seed,
        diverged=best.diverged,
        unreached=best.unreached,
        before=next((trial.value for trial in paper_trials if trial.value is not None), None),
        width=_width(study, best.value),
        study=plan.name,
    )


def _width(study: StudyResult, best: float) -> float:
    """Return the ratio of the largest to the smallest rate, local × server, of the good trials."""
    fields = fields_of(study.plan.space.strategy)
    rates = []
    for trial in study.best_first:
        if abs((trial.value or 0.0) - best) <= GOOD * abs(best):
            values = {**fields, **trial.parameters}
            rates.append(values.get(FACTOR, values["local_lr"]) * values["server_lr"])
    return float(max(rates) / min(rates))
