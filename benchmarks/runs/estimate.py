"""How long a command will take: a little of its runs is computed on this machine, and the rest extrapolated.

What every command does beside them, its start, MLflow and the page, took known times once; they are scaled
to this machine by a small computation that was measured beside them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from time import perf_counter, process_time
from typing import Any

import torch

from benchmarks import device
from benchmarks.errors import UserError, summarised
from benchmarks.pool.fork_server import cores
from benchmarks.runs.jobs import EXECUTIONS
from benchmarks.runs.schedule import updates
from benchmarks.suite.suite import PlannedRun, PooledTask, tasks
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.problem import Problem, World
from fl_core.recording.evaluation import Sample
from fl_core.text import duration

MOST = 32  # so many kinds of run are looked at, evenly spaced
STEPS = 20  # of a baseline's training that are measured
CALIBRATED = 0.3  # seconds of the computation that compares machines

# Processor seconds of an AMD EPYC's core, and of `unit` beside them
UNIT = 2.3e-4
START = 4.3  # until workers compute
RECORD = 0.04  # of a run into MLflow
PAGE, CELL = 0.4, 0.17  # of a page, and of each strategy in each scenario on it


def seconds(runs: Sequence[PlannedRun], processes: int) -> float:
    """Seconds until the runs of a suite are computed, recorded and shown, and their baselines.

    Raises UserError if one ends in an error, and what building a problem raises: data may be missing.
    """
    every = tasks(runs)
    baselines = [task for task in every if isinstance(task, PooledTask)]
    core = core_seconds(runs) + (len(baselines) * _training(baselines[0]) if baselines else 0.0)
    cells = len({(run.scenario, run.strategy) for run in runs})
    return elapsed(core, min(processes, len(every)), len(every), cells)


def elapsed(core: float, processes: int, records: int, cells: int) -> float:
    """Return the seconds of a command from start to end.

    Args:
        core: Seconds of its computation on one core, divided among the processes.
        processes: Worker processes.
        records: Runs that are written to MLflow, while workers compute.
        cells: Strategies of all scenarios on the page, which is drawn at the end.
    """
    pace = unit() / UNIT
    writing = pace * RECORD * records
    computing = max(core / processes, (core + writing) / cores(), writing)
    return pace * (START + PAGE + CELL * cells) + computing


def words(seconds: float, processes: int) -> str:
    """Return an estimate as people say it."""
    where = "1 process" if processes == 1 else f"{processes} processes"
    return f"about {duration(seconds)} with {where} here, from start to page"


@cache
def unit() -> float:
    """Return the seconds of a small fixed computation here and now, to compare machines and their load."""
    torch.set_num_threads(1)  # as in the workers
    x, layer = torch.ones(64, 784), torch.nn.Linear(784, 10)
    rounds = 0
    layer(x).square().mean().backward()
    began = process_time()
    while rounds < 100 or process_time() - began < CALIBRATED:
        layer(x).square().mean().backward()
        rounds += 1
    return (process_time() - began) / rounds


def core_seconds(runs: Sequence[PlannedRun], patience: float = 1.0) -> float:
    """Seconds of all runs on one core, tracking left out; measured for about `patience` seconds.

    Raises UserError if one ends in an error, and what building a problem raises: data may be missing.
    """
    torch.set_num_threads(1)  # as in the workers
    kinds = list({(run.experiment.scenario, run.experiment.strategy): run for run in runs}.values())
    tried = kinds[:: -(-len(kinds) // MOST)]  # seeds of a kind take as long as each other
    worlds: dict[tuple[Problem, int], tuple[World, float, float, float]] = {}
    warm: set[type[Problem]] = set()
    total = 0.0
    for run in tried:
        problem, seed = run.experiment.scenario.problem, run.experiment.seed
        if type(problem) not in warm:  # what is loaded and compiled once a process does not count
            warm.add(type(problem))
            _simulating(run, device.place(problem.world(seed)), patience=0.0)
        if (problem, seed) not in worlds:
            worlds.clear()  # one world at a time is held
            worlds[problem, seed] = _built(problem, seed)
        world, building, testing, training = worlds[problem, seed]
        marks = run.experiment.scenario.evaluations
        evaluating = marks * testing + (1 + marks * judged(run)) * training
        total += building + evaluating + _simulating(run, world, patience / len(tried))
    return total / len(tried) * len(runs)


def judged(run: PlannedRun) -> float:
    """The share of the training data that is judged at every mark."""
    if isinstance(run.evaluate, Sample):
        problem = run.experiment.scenario.problem
        return min(1.0, run.evaluate.sample / getattr(problem, "samples", run.evaluate.sample))
    return float(run.evaluate == "clients")


def _built(problem: Problem, seed: int) -> tuple[World, float, float, float]:
    """A world; the seconds that it takes to build it, and to judge a model on test and on training data."""
    began = perf_counter()
    world = device.place(problem.world(seed))
    building = perf_counter() - began
    world.test(world.initial())  # the first time is slower
    other = world.initial() + 1e-3  # what is known of the first model is not computed again
    began = perf_counter()
    world.test(other)
    tested = perf_counter()
    world.losses(other)
    return world, building, tested - began, perf_counter() - tested


def _training(baseline: PooledTask) -> float:
    """Seconds of a baseline; those of problems that are solved in closed form do not count."""
    steps = getattr(baseline.problem, "pooled_steps", 0)
    if not steps:
        return 0.0
    from fl_core.problems.training.pooled import train

    world: Any = device.place(baseline.problem.world(baseline.seed))
    train(world, baseline.seed, 1)  # the first time is slower
    began = perf_counter()
    train(world, baseline.seed, STEPS)
    return (perf_counter() - began) / STEPS * steps


def _simulating(run: PlannedRun, world: World, patience: float) -> float:
    """Seconds of a run's own; UserError if it ends in an error, as when it is run."""
    try:
        simulation, whole = Simulation(run.experiment, world), length(run.experiment)
        events = simulate(simulation, EXECUTIONS[run.execution]())
        return extrapolated(events, lambda: done(simulation, whole), patience)
    except Exception as error:
        raise UserError(f"{run.name}: error: {summarised(error)}") from error


def length(experiment: Experiment) -> float | None:
    """Return the client updates of a run that server iterations end; None if its budget tells how far it is.

    Thousands of updates may come before the first iteration, and more of them later in each.
    """
    return updates(experiment) if experiment.scenario.budget.iterations else None


def done(simulation: Simulation, whole: float | None) -> float:
    """Return the share of a run that is done; `whole` is its `length`."""
    return simulation.state.updates / whole if whole else simulation.share


def extrapolated(events: Iterator[object], share: Callable[[], float], patience: float) -> float:
    """Seconds until events end, from the share of all that is done after `patience` seconds.

    What is done once, at the start, is not multiplied.
    """
    began = perf_counter()
    next(events, None)
    starting, first = perf_counter() - began, share()
    began = perf_counter()
    for _ in events:
        spent = perf_counter() - began
        if spent > patience and (used := share() - first) > 0:
            return starting + spent * (1 - first) / used
    return starting + perf_counter() - began
