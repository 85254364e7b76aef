"""Memory of a large run grows with the jobs in flight, since versions are shared, not with the clients."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from workloads import Noise

from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate

CLIENTS, IN_FLIGHT, UPDATES = 100_000, 1_000, 5_000


class Crowd(Noise):
    """One image a client."""

    samples: ClassVar[int] = CLIENTS


def peak(strategy: str) -> float:
    """MiB that a simulation of logistic regression takes at most beyond world and libraries."""
    torch.set_num_threads(1)
    scenario = {
        "problem": Crowd(clients=CLIENTS),
        "timing": {"durations": "exponential"},
        "budget": {"updates": UPDATES},
    }
    sends = {"name": strategy, "local_lr": 1e-4, "concurrency": IN_FLIGHT}
    experiment = Experiment.model_validate({"scenario": scenario, "strategy": sends})
    world = experiment.scenario.problem.world(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    before = mebibytes("VmRSS")
    for _ in simulate(Simulation(experiment, world), AllInFlight()):
        pass
    return mebibytes("VmHWM") - before


def mebibytes(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from Linux's /proc")
@pytest.mark.parametrize("strategy", ["fedbuff", "afa_cd"])
def test_a_hundred_thousand_clients_fit(strategy: str) -> None:
    """No more than 2 GiB, in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(peak, strategy).result() < 2048
