"""How long a suite will take: a little of it is run on this machine, and the rest extrapolated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import torch

from benchmarks import device
from benchmarks.suite.suite import PlannedRun
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.problem import Problem, World
from fl_core.recording.recorder import Sample

MOST = 32  # so many kinds of run are looked at, evenly spaced


def core_seconds(runs: Sequence[PlannedRun], patience: float = 1.0) -> float:
    """Seconds that all runs take on one core, tracking left out; measured for about `patience` seconds.

    Raises what building a problem raises: data may be missing.
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


def _simulating(run: PlannedRun, world: World, patience: float) -> float:
    simulation = Simulation(run.experiment, world)
    return extrapolated(simulate(simulation), lambda: simulation.share, patience)


def extrapolated(events: Iterator[object], share: Callable[[], float], patience: float) -> float:
    """Seconds until events end, from the share of the budget that is used after `patience` seconds.

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
