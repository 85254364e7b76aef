"""Estimate of the computing time of a suite, from the first seconds of each kind of run.

Shown by `asyncfl show` and `asyncfl leaderboard`; nothing is recorded. Runs of one scenario and strategy are
of one kind: all seeds take equally long. The start of workers, MLflow and the page are not estimated.

Free: a better estimate.
"""

from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

import torch

from benchmarks import device
from benchmarks.errors import UserError, summarised
from benchmarks.runs.run_jobs import EXECUTIONS
from benchmarks.suite.suite import PlannedRun, PooledTask, tasks
from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.problem import InvalidProblemError, Problem, World
from fl_core.problems.quadratic import Quadratic
from fl_core.recording.evaluation import EvaluationSample

MIN_ARRIVALS, MIN_STEPS = 400, 10  # simulated beyond the server's first step, to extrapolate a schedule
MAX_TIMED_KINDS = 32  # evenly spaced among all kinds
TIMED_SECONDS = 1.0  # for all kinds together
TIMED_STEPS = 20  # of a baseline's training


def seconds(runs: Sequence[PlannedRun], processes: int, timed: float = TIMED_SECONDS) -> float:
    """Return the estimated seconds to compute the runs of a suite and the baselines on the local machine.

    Args:
        runs: Runs of a suite.
        processes: Worker processes, which share the work evenly.
        timed: Seconds of computation that are timed.

    Raises:
        UserError: A run ends in an error. What building a problem raises, passes: data may be missing.
    """
    torch.set_num_threads(1)  # as in the workers
    kinds = list({(run.experiment.scenario, run.experiment.strategy): run for run in runs}.values())
    chosen = kinds[:: -(-len(kinds) // MAX_TIMED_KINDS)]
    worlds: dict[tuple[Problem, int], tuple[World, float, float, float]] = {}
    loaded: set[type[Problem]] = set()
    total = 0.0
    for run in chosen:
        problem, seed = run.experiment.scenario.problem, run.experiment.seed
        if type(problem) not in loaded:  # a first run loads and compiles code, which must not be timed
            loaded.add(type(problem))
            _update_seconds(run, device.place(problem.world(seed)), timed=0.0)
        if (problem, seed) not in worlds:
            worlds.clear()  # one world at a time is held
            worlds[problem, seed] = _time_world(problem, seed)
        world, building, testing, training = worlds[problem, seed]
        marks = run.experiment.scenario.evaluations
        evaluating = marks * testing + (1 + marks * _evaluated_fraction(run)) * training
        total += building + evaluating + _update_seconds(run, world, timed / len(chosen))
    baselines = [task for task in tasks(runs) if isinstance(task, PooledTask)]
    total *= len(runs) / len(chosen)
    total += len(baselines) * _baseline_seconds(baselines[0]) if baselines else 0.0
    return total / min(processes, len(runs))


def _update_seconds(run: PlannedRun, world: World, timed: float) -> float:
    """Return the seconds of a run's updates, extrapolated from the used share of the budget."""
    try:
        planned = updates(run.experiment) if run.experiment.scenario.budget.iterations else None
        simulation = Simulation(run.experiment, world)
        events = simulate(simulation, EXECUTIONS[run.execution]())
        began = perf_counter()
        next(events, None)
        starting, first = perf_counter() - began, _used_share(simulation, planned)  # not repeated
        began = perf_counter()
        for _ in events:
            spent = perf_counter() - began
            if spent > timed and (used := _used_share(simulation, planned) - first) > 0:
                return starting + spent * (1 - first) / used
        return starting + perf_counter() - began
    except Exception as error:
        raise UserError(f"{run.name}: error: {summarised(error)}") from error


def _used_share(simulation: Simulation, planned: float | None) -> float:
    """Return the used share of the budget.

    Args:
        simulation: A run.
        planned: Client updates of a whole run, if its budget is in server iterations: thousands of updates
            may come before the first iteration, while the simulation's own share is 0. None for other
            budgets.
    """
    return simulation.state.updates / planned if planned else simulation.share


def _evaluated_fraction(run: PlannedRun) -> float:
    """Return the fraction of the training data evaluated at every mark."""
    if isinstance(run.evaluate, EvaluationSample):
        problem = run.experiment.scenario.problem
        return min(1.0, run.evaluate.sample / getattr(problem, "samples", run.evaluate.sample))
    return float(run.evaluate == "clients")


def _time_world(problem: Problem, seed: int) -> tuple[World, float, float, float]:
    """Return a world, and the seconds to build the world, to test a model, and for all training losses."""
    began = perf_counter()
    world = device.place(problem.world(seed))
    building = perf_counter() - began
    world.test(world.initial())  # the first time is slower
    model = world.initial() + 1e-3  # results of the first model itself are cached
    began = perf_counter()
    world.test(model)
    tested = perf_counter()
    with suppress(InvalidProblemError):  # a Flower app reports no training losses
        world.losses(model)
    return world, building, tested - began, perf_counter() - tested


def _baseline_seconds(baseline: PooledTask) -> float:
    """Return the seconds of a centralised baseline; 0 for a problem solved in closed form."""
    steps = getattr(baseline.problem, "pooled_steps", 0)
    if not steps:
        return 0.0
    from fl_core.problems.training.centralised_baseline import train

    world: Any = device.place(baseline.problem.world(baseline.seed))
    train(world, baseline.seed, 1)  # the first time is slower
    began = perf_counter()
    train(world, baseline.seed, TIMED_STEPS)
    return (perf_counter() - began) / TIMED_STEPS * steps


def updates(experiment: Experiment) -> float:
    """Return a run's client updates, extrapolated from the beginning of the schedule.

    The schedule is simulated with a problem of one number for each client, and seed 0.
    """
    problem = Quadratic(centres=((0.0,),) * experiment.scenario.problem.clients)
    scenario = experiment.scenario.model_copy(update={"problem": problem})
    simulation = Simulation(experiment.model_copy(update={"scenario": scenario, "seed": 0}))
    arrivals = steps = 0
    # Arrivals and share of the budget at the first server step: ACE waits for all clients before it.
    until_first = 0, 0.0
    for event in simulate(simulation, ScheduleOnly()):
        arrivals += event.kind is EventKind.ARRIVAL
        steps += event.stepped
        if steps == 1 and event.stepped:
            until_first = arrivals, simulation.share
        first, used = until_first
        if steps > MIN_STEPS and arrivals > first + MIN_ARRIVALS:
            return first + (arrivals - first) * (1 - used) / (simulation.share - used)
    return arrivals
