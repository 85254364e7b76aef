"""Results of a campaign: the best trial of each study, tuned values for suites, and advice for the user.

`asyncfl tune` writes a `TunedFile` (`benchmarks/suite/tuned.py`), and prints `caveats` and `pasteable`.

Fixed: which trial is the best, and the content of the file of tuned values. Free: advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import fmean, stdev
from typing import Any

from benchmarks.mlflow_store.provenance import version, versions
from benchmarks.mlflow_store.run_result import TrialResult
from benchmarks.suite import tuned
from benchmarks.suite.tuned import TunedEntry, TunedFile
from benchmarks.yaml_io import in_a_line
from fl_core.recorded_names import Origin, TrialState
from fl_core.strategies.hyperparameters import FACTOR, fields_of
from fl_core.strategies.strategy import Strategy
from tuning.samplers import ADAPTIVE, STARTUP_TRIALS
from tuning.study import Campaign, Study

GOOD_TOLERANCE = 0.02  # relative distance of a good trial's objective from the best one
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
        """Return whether all trials have ended, and the best also under the additional seeds."""
        repeated = sum(len(trial.runs) > len(self.plan.seeds) for trial in self.best_first)
        count = min(self.plan.repeated, len(self.best_first))
        return len(self.trials) >= self.plan.trials and repeated >= count

    def errors(self) -> list[str]:
        """Return the error of each failed trial."""
        return [trial.error for trial in self.trials if trial.error]


def to_tuned_file(campaign: Campaign, studies: Sequence[StudyResult]) -> TunedFile:
    """Return the tuned values of a campaign: an entry for each study with a usable trial.

    A strategy of `tuning.reuse` gets the entry of the strategy whose parameters it takes.
    """
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
        code={path: text for study in campaign.studies for path, text in study.definition()["code"].items()},
    )


def caveats(studies: Sequence[StudyResult]) -> list[str]:
    """Return warnings on the reliability of the best values, a sentence each."""
    plan = studies[0].plan
    lines = []
    informed = max(0, plan.trials - STARTUP_TRIALS)
    if plan.sampler in ADAPTIVE and informed < plan.trials / 2:
        lines.append(
            f"{plan.trials} trials are few for {plan.sampler}, which draws the first {STARTUP_TRIALS} at "
            f"random. Use {2 * STARTUP_TRIALS} or more"
        )
    at_edge, at_default, single = [], [], []
    for study in studies:
        best, space = study.best, study.plan.space
        if best is None:
            continue
        name = f"{study.plan.strategy} ({study.plan.scenario})"
        ends = {parameter: space.edge(parameter, value) for parameter, value in best.parameters.items()}
        if edges := [f"{parameter} {end}" for parameter, end in ends.items() if end]:
            at_edge.append(f"{name}: {', '.join(edges)}")
        if best.origin == Origin.PAPER:
            at_default.append(name)
        if best.parameters.get("buffer") == 1:
            single.append(name)
    if at_edge:
        lines.append(f"best value at an edge of the space: {'; '.join(at_edge)}. Widen the space")
    if at_default:
        lines.append(
            f"no trial was better than the suite's own values or the defaults: {', '.join(at_default)}. "
            "Use more trials"
        )
    if single:
        lines.append(f"best buffer is 1, which buffers nothing: {', '.join(single)}. Search from 2 on")
    return lines


def pasteable(campaign: Campaign, tuned_file: TunedFile) -> list[str]:
    """Return tuned values as lines of YAML to paste into a suite: `lr` or `strategies`, for each scenario.

    Strategies without tuned values are missing, and scenarios with a factor `c`, which is no key of a suite.
    """
    runs = {(run.scenario, run.strategy): run.experiment.strategy for run in campaign.suite.runs()}
    lines = []
    for scenario in dict.fromkeys(entry.scenario for entry in tuned_file.tuned):
        entries = [entry for entry in tuned_file.tuned if entry.scenario == scenario]
        if any(FACTOR in entry.parameters for entry in entries):
            continue
        names = [runs[scenario, entry.strategy].reference() for entry in entries]
        lines.append(f"# {scenario}")
        if len({*names}) == len(names) and all({*entry.parameters} == {"local_lr"} for entry in entries):
            rates = {name: entry.parameters["local_lr"] for name, entry in zip(names, entries, strict=True)}
            lines.append(f"lr: {in_a_line(rates)}")
            continue
        lines.append("strategies:")
        for entry in entries:
            strategy = runs[scenario, entry.strategy]
            label = {"label": entry.strategy} if entry.strategy in campaign.suite.labels else {}
            fields: dict[str, Any] = {"name": strategy.reference(), **label, **_changed_fields(strategy)}
            for name, value in entry.parameters.items():
                head, dot, inner = name.partition(".")
                target = fields.setdefault(head, {}) if dot else fields
                target[inner or head] = value
            lines.append(f"  - {in_a_line(fields)}")
    return lines


def _changed_fields(strategy: Strategy) -> dict[str, Any]:
    """Return the fields of a strategy with other values than the defaults, for `pasteable`.

    Without the name, and the local rate, which the suite sets by `lr` unless it was tuned.
    """
    fields = strategy.model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in fields.items() if name not in ("name", "local_lr")}


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
        if abs((trial.value or 0.0) - best) <= GOOD_TOLERANCE * abs(best):
            values = {**fields, **trial.parameters}
            rates.append(values.get(FACTOR, values["local_lr"]) * values["server_lr"])
    return float(max(rates) / min(rates))
