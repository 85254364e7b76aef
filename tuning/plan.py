"""The campaign of a suite: a study for each strategy in each scenario, with equal trials, seeds and budget.

`plan` turns a loaded suite and its `tuning` section into studies; `asyncfl tune` and the leaderboard call it.

Fixed: seeds, first points and all else in `Study.common`, which identifies stored studies. Free: checks.
"""

from collections.abc import Mapping, Sequence
from math import ceil

from benchmarks.errors import UserError
from benchmarks.suite import tuned
from benchmarks.suite.fields import SuiteSpec, Tuning
from benchmarks.suite.suite import PlannedRun, Suite
from fl_core.experiment import Experiment
from fl_core.metrics import named
from fl_core.recorded_names import PILOT, TO_TARGET
from fl_core.scenario import Scenario
from fl_core.text import nearest, unknown
from tuning import samplers
from tuning.objective import Objective
from tuning.optuna_space import first_points, must_fit, space_of
from tuning.study import Campaign, Study

SEED_GAP = 1000  # from the largest seed of the suite to the first seed of tuning
QUEUED_SAMPLERS = ("grid", "sobol")  # whose points do not depend on results: all are queued at the start
MIN_SEEDS_FOR_WILCOXON = 5  # with fewer, no outcome is significant enough to stop a trial


def plan(suite: Suite, *, pilot: bool = False) -> Campaign:
    """Return the campaign of a suite; UserError if impossible.

    A pilot, on a suite changed by `--set`, is recorded under a separate name.
    """
    samplers.must_be_there(suite.spec.tuning.sampler)
    try:
        return _campaign(suite, pilot)
    except UserError as error:
        raise UserError(*(f"{suite.source}: {line}" for line in error.lines)) from None


def _campaign(suite: Suite, pilot: bool) -> Campaign:
    spec = suite.spec
    name = f"{suite.name}{PILOT}" if pilot else suite.name
    seeds, more = tuning_seeds(spec), seeds_again(spec)
    one_each = {(run.scenario, run.strategy): run for run in suite.runs()}
    _check_reuse(spec.tuning.reuse, list(dict.fromkeys(label for _, label in one_each)))
    _check_pruner(spec.tuning, len(seeds))
    searched, reused = [], []
    for run in one_each.values():
        source = spec.tuning.reuse.get(run.strategy)
        if source is None:
            searched.append(_study(name, suite, run, seeds, more))
        else:
            reused.append((run, source))
    return Campaign(suite, tuple(searched), tuple(reused))


def tuning_seeds(spec: SuiteSpec) -> tuple[int, ...]:
    """Return the seeds of the trials, distinct from the suite's seeds."""
    asked = spec.tuning.seeds
    if isinstance(asked, int):
        first = max(spec.seeds) + SEED_GAP
        return tuple(range(first, first + asked))
    if shared := sorted(set(asked) & set(spec.seeds)):
        raise UserError(
            f"tuning.seeds: {shared[0]} is also a seed of the suite. Tune on other seeds: results "
            "must not be reported on seeds of tuning"
        )
    if len(set(asked)) < len(asked):
        twice = next(seed for seed in asked if asked.count(seed) > 1)
        raise UserError(f"tuning.seeds: duplicate seed {twice}")
    return asked


def seeds_again(spec: SuiteSpec) -> tuple[int, ...]:
    """Return the additional seeds of the best trials; none unless the suite has `tuning.again`."""
    if spec.tuning.again is None:
        return ()
    first = max(max(spec.seeds) + SEED_GAP - 1, *tuning_seeds(spec)) + 1
    return tuple(range(first, first + spec.tuning.again.seeds))


def _study(name: str, suite: Suite, run: PlannedRun, seeds: tuple[int, ...], more: tuple[int, ...]) -> Study:
    """Return the study of a run's strategy and scenario; UserError for an impossible search space."""
    spec = suite.spec.tuning
    scenario = tried_on(run.experiment.scenario, spec)
    strategy = run.experiment.strategy
    names = [strategy.reference() for strategy in suite.spec.strategies]
    try:
        space = space_of(strategy, names, spec.space, declared_too=spec.declared)
        first = tuple(first_points(space, spec))
        for values in (*space.ends(), *(values for _, values in first)):
            must_fit(space, values, scenario, seeds[0])
    except ValueError as error:
        raise UserError(f"tuning.space: {error}") from None
    trials = len(first) if spec.sampler in QUEUED_SAMPLERS else spec.trials
    return Study(
        suite=name,
        scenario=run.scenario,
        strategy=run.strategy,
        tried_on=scenario,
        space=space,
        objective=_objective(spec, run.experiment, scenario, len(seeds) + len(more)),
        seeds=seeds,
        trials=trials,
        seeds_again=more,
        repeated=ceil(spec.again.share * trials) if spec.again else 0,
        sampler=f"sobol {spec.scramble}" if spec.sampler == "sobol" else spec.sampler,
        pruner=spec.pruner,
        first=first,
        conditions=run.conditions,
        digest=tuned.digest(run.experiment.scenario, strategy, space.candidates),
    )


def tried_on(scenario: Scenario, spec: Tuning) -> Scenario:
    """Return the scenario of the trials: with tuning's budget, evaluated on other data than the suite's."""
    problem = scenario.problem
    if "evaluate_on" in type(problem).model_fields:
        problem = problem.model_copy(update={"evaluate_on": spec.evaluate_on})
    return scenario.model_copy(update={"problem": problem, "budget": spec.budget or scenario.budget})


def _objective(spec: Tuning, experiment: Experiment, scenario: Scenario, seeds: int) -> Objective:
    """Return the objective of a study; UserError if the metric or the budget rules the objective out."""
    problem = scenario.problem
    metric = named(spec.metric or problem.metric, problem.recorded())
    names = [metric.name for metric in problem.recorded() if metric.higher is not None]
    if metric.name not in names:
        raise UserError(
            f"tuning.metric: {problem.reference()} has no metric '{metric.name}'"
            f"{nearest(metric.name, names)} It has: {', '.join(names)}"
        )
    if lacking := experiment.lacks(metric.name):
        raise UserError(f"tuning.metric: {experiment.strategy.label()}: {lacking}")
    target = scenario.target
    if spec.objective in TO_TARGET:
        clock = TO_TARGET[spec.objective]
        if target is None or metric.name != problem.metric:
            raise UserError(
                f"tuning.objective: {spec.objective} needs budget.target or problem.target, "
                f"a value of {problem.metric}"
            )
        if getattr(scenario.budget, clock.budget) is None:
            raise UserError(f"tuning.objective: {spec.objective} needs budget.{clock.budget}")
    elif scenario.budget.target is not None:
        raise UserError(
            f"tuning.objective: {spec.objective} cannot compare runs that end once budget.target is met; "
            "choose time_to_target, or give tuning.budget, without a target"
        )
    last = spec.last or max(1, scenario.evaluations // 5)
    return Objective(
        spec.objective, metric, last, target, scenario.budget, seeds, problem.target, problem.target_marks
    )


def _check_reuse(reuse: Mapping[str, str], labels: Sequence[str]) -> None:
    """Raise UserError for unknown or chained strategies in `tuning.reuse`."""
    for taker, giver in reuse.items():
        for label in (taker, giver):
            if label not in labels:
                raise UserError(f"tuning.reuse: {unknown('strategy', label, labels)}")
        if giver in reuse:
            raise UserError(
                f"tuning.reuse: {giver} is not tuned, since it reuses the values of {reuse[giver]}. "
                f"Name {reuse[giver]} in its place"
            )


def _check_pruner(spec: Tuning, seeds: int) -> None:
    """Raise UserError for too few seeds for the pruner."""
    if spec.pruner == "wilcoxon" and seeds < MIN_SEEDS_FOR_WILCOXON:
        raise UserError(
            f"tuning.pruner: wilcoxon needs at least {MIN_SEEDS_FOR_WILCOXON} seeds, not {seeds}. "
            "Raise tuning.seeds, or choose another pruner"
        )
