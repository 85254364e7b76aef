"""Tuning studies recorded in MLflow: search space, every trial, and the best values.

`suite_reader.load` reads them with a suite; the section on tuning shows them.

Fixed: which trial is the best, as `asyncfl tune` chose it. Only pages show the rest.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, log, nan, sqrt
from typing import Any

import numpy as np

from benchmarks.mlflow_store.run_result import RunResult, TrialResult, clean, number, parsed
from fl_core.metrics import from_text
from fl_core.recorded_names import TO_TARGET, JudgedOn, Kind, MlflowTag, Tag, TrialState, end_near
from reports.numbers import Measure, measure
from reports.records.seed_summaries import Array

Value = float | str | bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """A searched parameter: a range from `low` to `high`, or `choices`, sorted if numbers."""

    name: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    choices: tuple[Value, ...] = ()
    counts: bool = False  # whether values are counts: whole numbers from 1

    @property
    def ordered(self) -> bool:
        """True if the values are numbers, hence the parameter has ends."""
        return all(map(is_number, self.choices))

    def read(self, text: str) -> Value | None:
        """Return the value stored as text in MLflow; None if not a value of the parameter."""
        if self.choices:
            return next((choice for choice in self.choices if str(choice) == text), None)
        value = number(text)
        return None if value is None or (self.log and value <= 0) else value

    def place(self, value: Value) -> float:
        """Return a value's place from 0 to 1: in the range, linear or log, or by rank among choices."""
        if self.choices:
            return self.choices.index(value) / max(1, len(self.choices) - 1)
        at = float(value)
        if self.log:
            return log(at / self.low) / log(self.high / self.low)
        return (at - self.low) / (self.high - self.low)

    def coordinates(self, value: Value) -> list[float]:
        """Return a value in a space with distances: 1 from end to end, and between any two names."""
        if self.ordered:
            return [self.place(value)]
        return [(choice == value) / sqrt(2) for choice in self.choices]

    def at(self, share: float) -> list[float]:
        """Return the coordinates of the quantile `share`, in [0, 1), of the range or choices."""
        if not self.choices:
            return [share]
        return self.coordinates(self.choices[int(share * len(self.choices))])

    def to_edge(self, value: Value) -> float:
        """Return the share of the range between a value and the nearest end; NaN without two ends."""
        if not self.ordered or len(self.choices) == 1:
            return nan
        place = self.place(value)
        return max(0.0, min(place, 1 - place))

    def edge(self, value: Value) -> str:
        """Return the end near a value, `lower` or `upper`; empty if neither is near, or values have no order.

        The 1 of a list is an end here, since a study's record does not say that a list holds counts.
        """
        if not self.ordered:
            return ""
        low, high = (self.choices[0], self.choices[-1]) if self.choices else (self.low, self.high)
        options = {"log": self.log, "listed": bool(self.choices), "counts": self.counts}
        return end_near(float(value), float(low), float(high), **options)


def read_parameter(name: str, spec: Any) -> Parameter | None:
    """Return a parameter from the description of the study; None without a valid description."""
    if not isinstance(spec, dict):
        return None
    if isinstance(choices := spec.get("choices"), list) and choices:
        values = tuple(clean(value) if isinstance(value, str) else value for value in choices)
        ordered = tuple(sorted(values)) if all(map(is_number, values)) else values
        return Parameter(clean(name), choices=ordered)
    low, high, in_log = (spec.get(key, 0) for key in ("low", "high", "log"))
    if not (is_number(low) and is_number(high)) or not low < high or (in_log and low <= 0):
        return None
    counts = isinstance(low, int) and isinstance(high, int) and low >= 1
    return Parameter(clean(name), float(low), float(high), bool(in_log), counts=counts)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


POINTS = 4096  # of a search space; each gets the result of the nearest trial
ROUNDING = 1e-9  # tolerance for a value exactly at the limit
NEAR_FRACTION = 0.05  # of the best value: results that differ by no more are near the best


@dataclass(frozen=True, eq=False)
class RecordedStudy:
    """Search for a strategy's parameters in a scenario, with trials in order of number."""

    id: str
    experiment: str  # MLflow's id of the campaign's experiment
    scenario: str
    strategy: str
    objective: str  # final, auc, updates_to_target, time_to_target
    measure: Measure  # the objective in words, and the data it was evaluated on
    judged_on: str
    planned: int  # trials
    seeds: tuple[int, ...]
    budget: str
    sampler: str
    pruner: str
    space: tuple[Parameter, ...]
    importance: Mapping[str, float]
    trials: tuple[TrialResult, ...]

    @cached_property
    def counted(self) -> tuple[TrialResult, ...]:
        """Ended trials."""
        return tuple(trial for trial in self.trials if trial.state is not TrialState.RUNNING)

    @cached_property
    def judged(self) -> tuple[TrialResult, ...]:
        """Counted trials with a result for every parameter of the space: not failed, not of another space."""
        names = {parameter.name for parameter in self.space}
        learnt = (trial for trial in self.counted if trial.complete or trial.state is TrialState.PRUNED)
        return tuple(trial for trial in learnt if trial.parameters.keys() >= names)

    @cached_property
    def best(self) -> TrialResult | None:
        """Complete trial with the best value among trials with the most seeds; the first of equals."""
        sign = -1 if self.measure.higher else 1
        complete = [trial for trial in self.judged if trial.complete]
        seeds = max((len(trial.by_seed) for trial in complete), default=0)
        repeated = [trial for trial in complete if len(trial.by_seed) == seeds]
        return min(repeated, key=lambda trial: sign * trial.worth, default=None)

    @property
    def by_seed(self) -> tuple[float, ...]:
        """The objective of each seed of the best trial."""
        return tuple(self.best.by_seed.values()) if self.best else ()

    def edge(self, parameter: Parameter) -> str:
        """Return `lower` or `upper` if the best lies at an edge of a parameter; otherwise empty."""
        return parameter.edge(self.best.parameters[parameter.name]) if self.best else ""

    @property
    def diverged(self) -> tuple[TrialResult, ...]:
        """Counted trials with any diverged seed."""
        return tuple(trial for trial in self.counted if trial.diverged)


def read_studies(runs: Iterable[RunResult]) -> tuple[RecordedStudy, ...]:
    """Return the studies among MLflow's runs, each with trials; replaced runs are left out."""
    everything = [run for run in runs if Tag.SUPERSEDED not in run.tags]
    trials: dict[str, list[RunResult]] = {}
    for run in everything:
        if run.tags.get(Tag.KIND) == Kind.TRIAL:
            trials.setdefault(run.tags.get(MlflowTag.PARENT, ""), []).append(run)
    newest: dict[tuple[str, str], RecordedStudy] = {}
    for run in sorted(everything, key=lambda run: (run.start_time or 0, run.run_id)):
        if run.tags.get(Tag.KIND) == Kind.STUDY:
            study = _study(run, trials.get(run.run_id, ()))
            newest[study.scenario, study.strategy] = study
    return tuple(newest.values())


def _study(run: RunResult, trials: Iterable[RunResult]) -> RecordedStudy:
    """Return a study from the tags of its MLflow run and the runs of its trials."""

    def read(tag: Tag, otherwise: str = "") -> str:
        return clean(run.tags.get(tag, "")) or otherwise

    space = tuple(
        parameter
        for name, spec in parsed(read(Tag.SPACE), {}).items()
        if (parameter := read_parameter(name, spec))
    )
    importance = parsed(read(Tag.IMPORTANCE), {}).items()
    seeds = tuple(int(seed) for seed in parsed(read(Tag.SEEDS), []) if is_number(seed))
    judged_on, objective = read(Tag.JUDGED_ON, "unnamed data"), read(Tag.OBJECTIVE, "final")
    higher = read(Tag.DIRECTION) != "minimize"
    return RecordedStudy(
        id=run.run_id,
        experiment=run.experiment_id,
        scenario=read(Tag.SCENARIO, "(unnamed scenario)"),
        strategy=read(Tag.STRATEGY, "(unnamed strategy)"),
        objective=objective,
        measure=_worth(
            objective, measure(read(Tag.METRIC, "objective"), from_text(read(Tag.METRICS)), higher), judged_on
        ),
        judged_on=judged_on,
        planned=int(number(read(Tag.TRIALS)) or 0),
        seeds=seeds,
        budget=read(Tag.BUDGET, "no budget recorded"),
        sampler=read(Tag.SAMPLER, "unknown"),
        pruner=read(Tag.PRUNER, "none"),
        space=space,
        importance={clean(name): float(share) for name, share in importance if is_number(share)},
        trials=_trials(trials, space, seeds, {*filter(is_number, parsed(read(Tag.PRUNED), []))}),
    )


def _worth(objective: str, measure: Measure, judged_on: str) -> Measure:
    """Return the measure of an objective, titled after the validation split if judged on validation data."""
    if objective in TO_TARGET:
        return Measure(objective, f"{TO_TARGET[objective].heading} to target", higher=False)
    if judged_on == JudgedOn.VALIDATION:
        measure = measure.judged_on("Validation")
    return (
        replace(measure, title=f"Mean {measure.in_text} over the budget") if objective == "auc" else measure
    )


def _trials(
    runs: Iterable[RunResult], space: Iterable[Parameter], seeds: Collection[int], pruned: Collection[float]
) -> tuple[TrialResult, ...]:
    """Return the trials of a study, each from a run per seed."""
    by_number: dict[int, list[RunResult]] = {}
    for run in runs:
        by_number.setdefault(int(number(run.tags.get(Tag.TRIAL, "")) or 0), []).append(run)
    return tuple(_trial(at, by_number[at], space, seeds, at in pruned) for at in sorted(by_number))


def _trial(
    number_: int, runs: Sequence[RunResult], space: Iterable[Parameter], seeds: Collection[int], pruned: bool
) -> TrialResult:
    """Return a trial from its runs; parameters are read from the first run's."""
    first = runs[0]
    texts = {clean(name): clean(text) for name, text in first.params.items()}
    values = {
        parameter.name: parameter.read(texts[parameter.name])
        for parameter in space
        if parameter.name in texts
    }
    by_seed = {int(number(run.tags.get(Tag.SEED, "")) or 0): run for run in runs}
    return TrialResult(
        number_,
        clean(first.tags.get(Tag.ORIGIN, "")),
        {name: value for name, value in values.items() if value is not None},
        {seed: by_seed[seed] for seed in sorted(by_seed)},
        pruned,
        seeds,
    )


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Shares of a search space near the best, and of divergence: wide basins need little tuning.

    Shares from 0 to 1; NaN if unknown. Grids and random trials are spread evenly, so shares of trials are
    taken. Other samplers concentrate on good regions; for these, shares of the space are estimated: POINTS
    points, spread evenly over the space (logarithms of rates) by a Halton sequence, get the result of the
    nearest trial.
    """

    near: float  # share within 5 % of the best
    diverges: float  # share with a diverged seed
    of_space: bool  # whether these are shares of the space, not of the trials


def sensitivity(study: RecordedStudy) -> Sensitivity:
    """Return the sensitivity of a study."""
    judged, best = study.judged, study.best
    if study.sampler in {"grid", "random"}:
        drawn = [trial for trial in judged if study.sampler == "grid" or trial.origin != "paper"]
        weight = np.full(len(drawn), 1 / max(1, len(drawn)))
    else:
        drawn, weight = list(judged), shares(study.space, judged)
    near = [best is not None and is_near(trial, best) for trial in drawn]
    diverged = [trial.diverged > 0 for trial in drawn]
    usable = bool(drawn) and bool(study.space)
    return Sensitivity(
        near=float(weight @ near) if usable and best else float("nan"),
        diverges=float(weight @ diverged) if usable else float("nan"),
        of_space=study.sampler not in {"grid", "random"},
    )


def is_near(trial: TrialResult, best: TrialResult) -> bool:
    """Return whether a trial is complete and within 5 % of the best."""
    room = NEAR_FRACTION * abs(best.worth) * (1 + ROUNDING)
    return trial.complete and abs(trial.worth - best.worth) <= room


def shares(space: Sequence[Parameter], trials: Sequence[TrialResult]) -> Array:
    """Return the share of the space nearest to each trial [trial]: Euclidean, ranges of length 1."""
    from scipy.spatial import KDTree
    from scipy.stats.qmc import Halton

    if not space or not trials:
        return np.zeros(len(trials))
    places = np.array(
        [[c for p in space for c in p.coordinates(trial.parameters[p.name])] for trial in trials]
    )
    drawn = Halton(len(space), scramble=False).random(POINTS)
    points = np.array([[c for p, u in zip(space, point, strict=True) for c in p.at(u)] for point in drawn])
    distinct, twin = np.unique(places, axis=0, return_index=True)  # the first of equal trials represents all
    nearest = twin[KDTree(distinct).query(points)[1]]
    return np.bincount(nearest, minlength=len(trials)) / POINTS
