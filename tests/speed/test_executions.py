"""Client updates in every execution, beside the yardstick: 100 clients at work, mini-batches of 64."""

from time import perf_counter, process_time

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from workloads import BATCH, CLIENTS, Noise, endless

from benchmarks import speed as yardstick
from benchmarks.device import chosen, one_thread
from benchmarks.runs.run_jobs import EXECUTIONS, MAX_SIDE_BY_SIDE
from benchmarks.speed import Compute, simulations

DEVICE = chosen()  # as ASYNCFL_DEVICE says
ON_GPU = DEVICE.type == "cuda"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.benchmark(timer=perf_counter if ON_GPU else process_time),
    pytest.mark.parametrize("model", ["logistic", "cnn"]),
]

UPDATES = {"logistic": 2_000, "cnn": 60}
ROUNDS = 5


def test_yardstick(benchmark: BenchmarkFixture, model: str) -> None:
    """The loop that one would write for this one experiment, on images normalised beforehand."""
    problem = images(model)
    data = problem.load()
    inputs = (data.x_train.float() - data.mean[0]) / data.std[0]
    network = problem.model.build(problem.shape, problem.classes).to(DEVICE)
    labels = data.y_train.to(DEVICE)
    measure(
        benchmark, yardstick.loop(network, inputs.to(DEVICE), labels, clients=CLIENTS, batch=BATCH), model
    )


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_one_simulation(benchmark: BenchmarkFixture, model: str, execution: str) -> None:
    """After `auto` has chosen how to compute."""
    measure(benchmark, simulations([endless(images(model))], EXECUTIONS[execution](), DEVICE), model)


def test_simulations_side_by_side(benchmark: BenchmarkFixture, model: str) -> None:
    """As many as a worker computes at once, in all as many updates as one."""
    runs = [endless(images(model), seed=seed) for seed in range(MAX_SIDE_BY_SIDE[DEVICE.type])]
    measure(benchmark, simulations(runs, EXECUTIONS["auto"](), DEVICE), model)


def images(model: str) -> Noise:
    return Noise.model_validate({"clients": CLIENTS, "model": model})


def measure(benchmark: BenchmarkFixture, compute: Compute, model: str) -> None:
    """Updates a second are the updates over the seconds that are shown."""

    def computed() -> None:
        benchmark.extra_info["updates"] = compute(UPDATES[model])
        if ON_GPU:
            torch.cuda.synchronize(DEVICE)

    with one_thread():
        benchmark.pedantic(computed, rounds=ROUNDS, warmup_rounds=1)
