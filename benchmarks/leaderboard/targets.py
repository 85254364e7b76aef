"""Targets and budgets of the leaderboard, from a pilot of tuned FedAvg in each scenario.

`asyncfl leaderboard pilot` prints them, as keys for the suite; nothing is recorded.

Fixed: the constants, which are published. Targets and budgets of the suite `populations` come from them.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from statistics import fmean, median

import numpy as np

from benchmarks.suite.suite import Suite, load
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.parts import Count
from fl_core.recorded_names import Clock
from fl_core.recording.recorder import run
from fl_core.scenario import Budget, Scenario
from fl_core.strategies.hyperparameters import Values
from fl_core.strategies.strategy import Strategy
from fl_core.time_to_target import time_to_target
from tuning.plan import plan

ROUNDS = 60  # with one local step: length of the pilot's runs
POINTS = 64  # settings of FedAvg that are tried
SEEDS = (2000, 2001)  # of each setting
FINAL_SEEDS = tuple(range(2010, 2018))  # of the best setting, and of the fastest
ALLOWANCE = 0.03  # from the final metric of tuned FedAvg down to the target
BUDGET_TIMES = 3  # budget over the time of the fastest FedAvg, which few trials would not find
BUDGET_DIGITS = 2  # significant digits of a budget

Curve = tuple[np.ndarray, np.ndarray]  # times and values of the metric, at successive evaluations


@dataclass(frozen=True)
class PilotResult:
    """Target and budget of a scenario, and the underlying settings of FedAvg.

    The constants above are rules of the board that are published: docs/how-to/leaderboard.md.
    """

    # Metric of the setting `best` after ROUNDS rounds, on the half of the test data for tuning, less
    # ALLOWANCE
    tuning_target: float
    target: float  # as `tuning_target`, on the half for final runs: one half is harder than the other
    time: float  # median time in which the setting `fastest` meets `target`
    share: float  # of the runs of `fastest` that meet `target`
    budget: float  # BUDGET_TIMES `time`
    best: Values  # the setting with the highest metric
    fastest: Values  # the setting that meets the target first
    # Texts "name value: end" for parameters of `best` and `fastest` at an edge of their range
    at_edge: tuple[str, ...]


def run_pilot(suite: str, scale: str, processes: Count) -> PilotResult:
    """Run the pilot of a scenario.

    Args:
        suite: The suite by name or file; its first strategy is tuned.
        scale: The scenario.
        processes: Number of worker processes.
    """
    without_target = ("tuning.objective=final", "problem.target=0", "tuning.budget=null")
    loaded = load(suite, [f"tuning.trials={POINTS}", *without_target], scale or None)
    study = plan(loaded).studies[0]
    budget = {"budget": length(loaded)}
    long_enough = study.tried_on.model_copy(update=budget)
    final = loaded.runs()[0].experiment.scenario.model_copy(update=budget)
    points = [values for _, values in study.first]
    with ProcessPoolExecutor(processes, get_context("forkserver")) as pool:
        curves = partial(_curves, pool.map)
        strategies = [study.space.apply(values, long_enough) for values in points]
        tried = curves(long_enough, strategies, SEEDS)
        best = int(np.argmax([fmean(map(final_value, seeds)) for seeds in tried]))
        tuning_target, target = (
            round(
                median(map(final_value, curves(scenario, [strategies[best]], FINAL_SEEDS)[0])) - ALLOWANCE, 3
            )
            for scenario in (long_enough, final)
        )
        met = partial(_met, marks=final.problem.target_marks)
        means = [fmean(met(curve, target=tuning_target) for curve in seeds) for seeds in tried]
        fastest = int(np.argmin(means))
        finals = curves(final, [strategies[fastest]], FINAL_SEEDS)[0]
    times = [met(curve, target=target) for curve in finals]
    time = median(times)
    edges = (
        f"{name} {value}: {end}"
        for at in (best, fastest)
        for name, value in points[at].items()
        if (end := study.space.edge(name, value))
    )
    return PilotResult(
        tuning_target,
        target,
        time,
        share=fmean(time < np.inf for time in times),
        budget=float(f"{BUDGET_TIMES * time:.{BUDGET_DIGITS}g}"),
        best=points[best],
        fastest=points[fastest],
        at_edge=tuple(dict.fromkeys(edges)),
    )


def length(suite: Suite) -> Budget:
    """Return the duration of ROUNDS rounds of FedAvg with a single local step: median over FINAL_SEEDS."""
    first = suite.runs()[0].experiment
    local = first.strategy.local.model_copy(update={"steps": 1})
    strategy = first.strategy.model_copy(update={"local": local})
    rounds = Budget(iterations=ROUNDS, updates=ROUNDS * first.scenario.problem.clients)
    scenario = first.scenario.model_copy(update={"budget": rounds, "evaluations": 1})
    ends = [
        simulated_curve(Experiment(scenario=scenario, strategy=strategy, seed=seed)) for seed in FINAL_SEEDS
    ]
    return Budget(time=float(f"{median(float(times[-1]) for times, _ in ends):.{BUDGET_DIGITS}g}"))


def final_value(curve: Curve) -> float:
    """Return the metric at the end of a run: the mean of the last three evaluations."""
    return float(np.mean(curve[1][-3:]))


def _met(curve: Curve, target: float, marks: int) -> float:
    return time_to_target(*curve, target, True, marks)


def _curves(
    run_all: Callable[..., Iterable[Curve]],
    scenario: Scenario,
    strategies: Sequence[Strategy],
    seeds: Sequence[int],
) -> list[list[Curve]]:
    """Return the curve of each seed of each strategy."""
    experiments = [
        Experiment(scenario=scenario, strategy=strategy, seed=seed)
        for strategy in strategies
        for seed in seeds
    ]
    curves = iter(run_all(simulated_curve, experiments))
    return [[next(curves) for _ in seeds] for _ in strategies]


def simulated_curve(experiment: Experiment) -> Curve:
    """Run an experiment; return times and values of all evaluations, NaN for a missing metric."""
    record = run(experiment, execution=AllInFlight(), evaluate="test")
    metric = experiment.scenario.problem.metric
    rows = record.curve
    return np.array([row[Clock.TIME] for row in rows]), np.array([row.get(metric, np.nan) for row in rows])
