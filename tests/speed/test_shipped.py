"""Runs of shipped suites, from the first event to the record: what a version is compared with another by."""

from time import process_time
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.runs.run_jobs import EXECUTIONS
from benchmarks.suite.suite import load
from fl_core.recording import recorder

pytestmark = [pytest.mark.slow, pytest.mark.benchmark(timer=process_time)]
FASHION, KMNIST, MNIST = (pytest.mark.data(f"{name}/raw") for name in ("FashionMNIST", "KMNIST", "MNIST"))


@pytest.mark.parametrize(
    ("suite", "strategy"),
    [
        pytest.param("ace", "ace", marks=FASHION),
        pytest.param("ace", "fedbuff", marks=FASHION),
        pytest.param("asyncsgd", "generalized_asyncsgd", marks=FASHION),
        # With a server that takes time, and power.
        pytest.param("asyncsgd_energy", "generalized_asyncsgd", marks=KMNIST),
        pytest.param("fraboni", "async_fedavg", marks=MNIST),
        pytest.param("fraboni_weights_cnn", "async_fedavg", marks=KMNIST),
    ],
)
def test_first_run(benchmark: BenchmarkFixture, suite: str, strategy: str) -> None:
    """The first run of a strategy; the world is built beforehand."""
    planned = next(run for run in load(suite).runs() if run.experiment.strategy.name == strategy)
    world = planned.experiment.scenario.problem.world(planned.experiment.seed)

    def new() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (planned.experiment, world, EXECUTIONS[planned.execution]()), {"evaluate": planned.evaluate}

    benchmark.pedantic(recorder.run, setup=new, rounds=3)
