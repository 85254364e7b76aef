"""Runs of shipped suites, from the first event to the record: what a version is compared with another by."""

from time import process_time
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.runs.jobs import EXECUTIONS
from benchmarks.suite.suite import load
from fl_core.problems.problem import InvalidProblemError
from fl_core.recording import recorder

pytestmark = [pytest.mark.slow, pytest.mark.benchmark(timer=process_time)]


@pytest.mark.parametrize(
    ("suite", "strategy"),
    [
        ("ace", "ace"),
        ("ace", "fedbuff"),
        ("asyncsgd", "generalized_asyncsgd"),
        ("asyncsgd_energy", "generalized_asyncsgd"),  # with a server that takes time, and power
        ("fraboni", "async_fedavg"),
        ("fraboni_weights_cnn", "async_fedavg"),
    ],
)
def test_first_run(benchmark: BenchmarkFixture, suite: str, strategy: str) -> None:
    """The first run of a strategy; the world is built beforehand."""
    planned = next(run for run in load(suite).runs() if run.experiment.strategy.name == strategy)
    try:
        world = planned.experiment.scenario.problem.world(planned.experiment.seed)
    except InvalidProblemError as error:
        pytest.skip(str(error))

    def new() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (planned.experiment, world, EXECUTIONS[planned.execution]()), {"evaluate": planned.evaluate}

    benchmark.pedantic(recorder.run, setup=new, rounds=3)
