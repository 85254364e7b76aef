"""Peak memory of a large run beyond its data, in a process of its own. Linux only."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

UPDATES = 5_000


def peak(strategy: str, clients: int, in_flight: int) -> float:
    """MiB that a simulation of logistic regression takes beyond world and libraries."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, strategy, clients, in_flight).result()


def _measured(strategy: str, clients: int, in_flight: int) -> float:
    import torch

    from benchmarks.speed.noise import Crowd
    from fl_core.execution.stacked import AllInFlight
    from fl_core.experiment import Experiment
    from fl_core.loop.simulation import Simulation, simulate

    torch.set_num_threads(1)
    experiment = Experiment.model_validate(
        {
            "scenario": {
                "problem": Crowd(clients=clients),
                "timing": {"durations": "exponential"},
                "budget": {"updates": UPDATES},
            },
            "strategy": {"name": strategy, "local_lr": 1e-4, "concurrency": in_flight},
        }
    )
    world = experiment.scenario.problem.world(0)
    before = _forget_peak()
    for _ in simulate(Simulation(experiment, world), AllInFlight()):
        pass
    return _status("VmHWM") - before


def _forget_peak() -> float:
    """Begin a new count of the peak; returns what is resident now, MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(field: str) -> float:
    """A line of /proc/self/status, MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))
