"""What grows, and what it costs: each arm measures the seconds of one unit, again at every call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from math import isqrt
from time import process_time
from typing import ClassVar

import torch

from benchmarks.speed.arms import Case, alone
from benchmarks.speed.noise import Noise
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.parts import Count
from fl_core.problems.classification import Classification
from fl_core.problems.data.data import Data
from fl_core.problems.problem import Problem
from fl_core.problems.quadratic import Quadratic
from fl_core.recording import recorder

EVENTS = 5_000  # of the schedule, in one measurement
LOCAL = 300  # updates of logistic regression, in one measurement
AT_WORK = 100  # clients, where something else grows
RUN = 1_000  # updates of a run whose evaluations grow in number
TEST = 10_000  # data points of an evaluation

Arm = Callable[[], float]


@dataclass(frozen=True)
class Axis:
    """A number that grows, the sizes that are tried, and the cost that is measured."""

    grows: str
    cost: str
    sizes: tuple[int, ...]
    arm: Callable[[int], Arm]


def set_up(clients: int) -> Arm:
    """A simulation of so many clients from its description to the first event, 100 at work."""
    experiment = _scheduled(clients, AT_WORK)

    def measure() -> float:
        began = process_time()
        next(simulate(Simulation(experiment), ScheduleOnly()))
        return process_time() - began

    return measure


def event(clients: int, in_flight: int) -> Arm:
    """An event of the schedule, without gradients."""
    going = simulate(Simulation(_scheduled(clients, in_flight)), ScheduleOnly())
    next(going)  # the first jobs are sent

    def measure() -> float:
        began = process_time()
        for _ in islice(going, EVENTS):
            pass
        return (process_time() - began) / EVENTS

    return measure


def update(in_flight: int) -> Arm:
    """An update of logistic regression, 7,850 parameters, one by one."""
    return _each(alone(Case("logistic", in_flight, updates=LOCAL), OneByOne()))


def run(marks: int) -> Arm:
    """A run of 1,000 updates of logistic regression with so many evaluations on 10,000 images."""
    experiment = _trained(Tested(clients=AT_WORK), RUN, evaluations=marks)
    world = experiment.scenario.problem.world(0)

    def measure() -> float:
        began = process_time()
        # From the loop to the record, without the clients' training losses along the way.
        recorder.run(experiment, world, OneByOne(), evaluate="test")
        return process_time() - began

    return measure


def wide_update(parameters: int) -> Arm:
    """An update of logistic regression with so many parameters, 10 clients, one by one."""
    side = isqrt(parameters // 10)
    experiment = _trained(Wide(clients=10, side=side), 10**9)
    going = simulate(Simulation(experiment, experiment.scenario.problem.world(0)), OneByOne())

    def compute() -> int:
        return sum(1 for _ in islice(going, LOCAL))

    compute()
    return _each(compute)


class Tested(Noise):
    """Noise with as many test images as Fashion-MNIST has."""

    samples: ClassVar[int] = 50_000

    def load(self) -> Data:
        whole = super().load()
        x, y = whole.x_train, whole.y_train
        halves = x[TEST:], y[TEST:], x[:TEST], y[:TEST]
        return Data(*halves, classes=10, mean=whole.mean, std=whole.std)


class Wide(Classification):
    """Few random images of any side, so that models can be large."""

    samples: ClassVar[int] = 1_000

    side: Count = 28

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.side, self.side)

    def load(self) -> Data:
        return _wide(self.samples, self.side)


@functools.cache
def _wide(samples: int, side: int) -> Data:
    random = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (samples, 1, side, side), dtype=torch.uint8, generator=random)
    y = torch.randint(0, 10, (samples,), generator=random)
    return Data(x, y, x[:10], y[:10], classes=10, mean=(127.5,), std=(73.9,))


def _scheduled(clients: int, in_flight: int) -> Experiment:
    """FedBuff on one-dimensional models."""
    return Experiment.model_validate(
        {
            "scenario": {
                "problem": Quadratic(centres=((0.0,),) * clients),
                "timing": {"durations": "exponential"},
                "budget": {"updates": 10**9},
            },
            "strategy": {"name": "fedbuff", "concurrency": in_flight},
        }
    )


def _trained(problem: Problem, updates: int, evaluations: int = 1) -> Experiment:
    """Asynchronous SGD with mini-batches of 64."""
    return Experiment.model_validate(
        {
            "scenario": {
                "problem": problem,
                "timing": {"durations": "exponential"},
                "budget": {"updates": updates},
                "evaluations": evaluations,
            },
            "strategy": {"name": "asgd", "local_lr": 1e-4, "local": {"name": "sgd", "batch": 64}},
        }
    )


def _each(compute: Callable[[], int]) -> Arm:
    """Seconds of one of the updates that `compute` makes."""

    def measure() -> float:
        began = process_time()
        computed = compute()
        return (process_time() - began) / computed

    return measure


MANY = (100, 1_000, 10_000, 100_000, 1_000_000)
PARAMETERS = tuple(10 * (side**2 + 1) for side in (8, 28, 90, 256))

AXES = (
    Axis("clients", "set-up", MANY, set_up),
    Axis("clients", "an event", MANY, functools.partial(event, in_flight=AT_WORK)),
    Axis("in flight", "an event", (10, 100, 1_000, 10_000), functools.partial(event, 10_000)),
    Axis("in flight", "an update", (10, 100, 1_000, 10_000), update),
    Axis("marks", "a run", (1, 10, 100, 1_000), run),
    Axis("parameters", "an update", PARAMETERS, wide_update),
)
