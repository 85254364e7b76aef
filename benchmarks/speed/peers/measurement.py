"""Local steps a second, beside other simulators that compute the same: each in turns, on one core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import torch

from benchmarks.pool.fork_server import THREADS
from benchmarks.speed.arms import Counted, going_on
from benchmarks.speed.noise import Noise
from benchmarks.tracking.provenance import version
from fl_core.execution.auto import Auto
from fl_core.execution.execution import Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate

CLIENTS, BATCH, BUFFER = 100, 64, 10
STEPS = (1, 10)  # local steps of an update
UPDATES = 2_000  # of ours, in one measurement
REPEATS = 5

FEDBUFF, FEDAVG = "FedBuff", "FedAvg in rounds"
STRATEGIES: dict[str, dict[str, Any]] = {
    FEDBUFF: {"name": "fedbuff", "concurrency": CLIENTS, "buffer": BUFFER},
    FEDAVG: {"name": "fedavg"},
}
# Of each other simulator: what it is compared with, its script, and the rounds that one measurement takes.
SCRIPTS = {"flgo": (FEDBUFF, "flgo_fedbuff.py", 100), "pfl": (FEDAVG, "pfl_fedavg.py", 20)}

Tell = Callable[[str], None]
Arm = Callable[[], tuple[int, float]]  # updates, and the seconds that they took


def missing() -> list[str]:
    """The other simulators that are not installed."""
    return [package for package in SCRIPTS if find_spec(package) is None]


def measure(tell: Tell, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Rows by number of local steps and algorithm: medians of interleaved repeats in processor time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [row for steps in STEPS for row in _measured(steps, tell, repeats)]
    finally:
        torch.set_num_threads(threads)


def _measured(steps: int, tell: Tell, repeats: int) -> list[dict[str, Any]]:
    arms: dict[tuple[str, str], Arm] = {}
    for what in STRATEGIES:
        arms[what, "one by one"] = _ours(what, steps, OneByOne())
        arms[what, "auto"] = _ours(what, steps, Auto())
    for package, (what, script, rounds) in SCRIPTS.items():
        if package not in missing():
            arms[what, f"{package} {version(package)}"] = _theirs(script, rounds, steps)
    seconds: dict[tuple[str, str], list[float]] = {arm: [] for arm in arms}
    for _ in range(repeats):
        for arm, compute in arms.items():
            tell(f"{steps} local steps, {', '.join(arm)}")
            updates, spent = compute()
            seconds[arm].append(spent / (updates * steps))
    typical = {arm: median(found) for arm, found in seconds.items()}
    return [
        {
            "algorithm": what,
            "steps": steps,
            "by": by,
            "steps_per_second": 1 / typical[what, by],
            "of_auto": typical[what, "auto"] / typical[what, by],
            "seconds": seconds[what, by],
        }
        for what, by in arms
    ]


def _ours(what: str, steps: int, execution: Execution) -> Arm:
    experiment = Experiment.model_validate(
        {
            "scenario": {
                "problem": Noise(clients=CLIENTS, model="logistic"),
                "timing": {"durations": "exponential"},
                "budget": {"updates": 10**9},
            },
            "strategy": {
                **STRATEGIES[what],
                "local_lr": 0.01,
                "local": {"name": "sgd", "steps": steps, "batch": BATCH},
            },
        }
    )
    counted = Counted(execution)
    go_on = going_on(simulate(Simulation(experiment), counted), counted, UPDATES // steps)

    def compute() -> tuple[int, float]:
        began = process_time()
        return go_on(), process_time() - began

    return compute


def _theirs(script: str, rounds: int, steps: int) -> Arm:
    command = [sys.executable, str(Path(__file__).with_name(script)), str(rounds), str(steps)]

    def compute() -> tuple[int, float]:
        environment = os.environ | dict.fromkeys(THREADS, "1")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{script}: exit code {done.returncode}\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        return found["updates"], found["seconds"]

    return compute
