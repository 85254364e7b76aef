"""How cost grows with clients, jobs in flight, evaluations and parameters."""

import functools
from math import isqrt
from time import process_time
from typing import ClassVar

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from workloads import ASGD, Noise, endless

from benchmarks.speed import simulations
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.parts import Count
from fl_core.problems.data.data import Data
from fl_core.problems.quadratic import Quadratic
from fl_core.problems.supervised import Classification
from fl_core.recording import recorder

pytestmark = [pytest.mark.slow, pytest.mark.benchmark(timer=process_time, min_time=0.005)]

CLIENTS = (100, 1_000, 10_000, 100_000, 1_000_000)
IN_FLIGHT = (10, 100, 1_000, 10_000)


def scheduled(clients: int, in_flight: int) -> Experiment:
    """FedBuff on one-dimensional models."""
    problem = Quadratic(centres=((0.0,),) * clients)
    return endless(problem, {"name": "fedbuff", "concurrency": in_flight})


@pytest.mark.parametrize("clients", CLIENTS)
def test_set_up(benchmark: BenchmarkFixture, clients: int) -> None:
    """From the description to the first event, 100 clients at work."""
    experiment = scheduled(clients, 100)
    benchmark(lambda: next(simulate(Simulation(experiment), ScheduleOnly())))


@pytest.mark.parametrize(
    ("clients", "in_flight"),
    sorted({(clients, 100) for clients in CLIENTS} | {(10_000, in_flight) for in_flight in IN_FLIGHT}),
)
def test_event(benchmark: BenchmarkFixture, clients: int, in_flight: int) -> None:
    """An event of the schedule, without gradients."""
    events = simulate(Simulation(scheduled(clients, in_flight)), ScheduleOnly())
    next(events)  # the first jobs are sent
    benchmark(next, events)


@pytest.mark.parametrize("in_flight", IN_FLIGHT)
def test_update(benchmark: BenchmarkFixture, in_flight: int) -> None:
    """An update of logistic regression, 7,850 parameters, one by one."""
    benchmark(simulations([endless(Noise(clients=in_flight))], OneByOne()), 1)


@pytest.mark.parametrize("evaluations", [1, 10, 100, 1_000])
def test_run(benchmark: BenchmarkFixture, evaluations: int) -> None:
    """A run of 1,000 updates of logistic regression with so many evaluations on 10,000 images."""
    scenario = {
        "problem": Judged(clients=100),
        "timing": {"durations": "exponential"},
        "budget": {"updates": 1_000},
        "evaluations": evaluations,
    }
    experiment = Experiment.model_validate({"scenario": scenario, "strategy": ASGD})
    world = experiment.scenario.problem.world(0)
    benchmark(lambda: recorder.run(experiment, world, OneByOne(), evaluate="test"))


@pytest.mark.parametrize("parameters", [10 * (side**2 + 1) for side in (8, 28, 90, 256)])
def test_update_of_parameters(benchmark: BenchmarkFixture, parameters: int) -> None:
    """An update of logistic regression with so many parameters, 10 clients, one by one."""
    problem = Wide(clients=10, side=isqrt(parameters // 10))
    benchmark(simulations([endless(problem)], OneByOne()), 1)


class Judged(Noise):
    """Noise with as many test images as Fashion-MNIST has."""

    def load(self) -> Data:
        whole = super().load()
        x, y = whole.x_train, whole.y_train
        halves = x[10_000:], y[10_000:], x[:10_000], y[:10_000]
        return Data(*halves, classes=10, mean=whole.mean, std=whole.std)


class Wide(Classification):
    """Few random images of any side, so that models can be large."""

    samples: ClassVar[int] = 1_000

    side: Count = 28

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.side, self.side)

    def load(self) -> Data:
        return wide(self.samples, self.side)


@functools.cache
def wide(samples: int, side: int) -> Data:
    random = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (samples, 1, side, side), dtype=torch.uint8, generator=random)
    y = torch.randint(0, 10, (samples,), generator=random)
    return Data(x, y, x[:10], y[:10], classes=10, mean=(127.5,), std=(73.9,))
