"""Milliseconds of a call of a Flower app beyond the app's own code: an app that answers what it is sent.

    python tests/speed/flower_calls.py      # in the environment of docs/how-to/flower.md

The call is all of a job: arrays from the model, seeds, message, answer, update; in time of the process.
Memory is that of a run in which ten clients of many work at a time, each on its own version of the model.
"""

import json
import resource
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

import torch

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.flower import Flower
from fl_core.scenario import Budget, Scenario

CALLS = 200
MODELS = {
    "10 kB, 1 array": (2_500, 1),
    "10 kB, 6": (2_500, 6),
    "5 MB, 10": (1_250_000, 10),
    "5 MB, 60": (1_250_000, 60),
}
CLIENTS = (20, 200)  # of the measurement of memory
PROJECT = '[tool.flwr.app.components]\nclientapp = "echo.client_app:app"\n'
CLIENT = """
from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
app = ClientApp()
@app.train()
def train(msg, context):
    metrics = MetricRecord({"num-examples": 1})
    return Message(content=RecordDict({"arrays": msg.content["arrays"], "metrics": metrics}), reply_to=msg)
"""
TASK = """
import numpy as np
def evaluate(server_round, arrays):
    return {"loss": 0.0}
"""


def problem(folder: Path, numbers: int, arrays: int, clients: int = 2) -> Flower:
    package = folder / "echo"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (package / "client_app.py").write_text(CLIENT)
    first = (
        f"def initial():\n    return [np.ones({numbers // arrays}, np.float32) for _ in range({arrays})]\n"
    )
    (package / "task.py").write_text(TASK + first)
    given = {"initial": "echo.task:initial", "evaluate": "echo.task:evaluate", "metric": "test/loss"}
    return Flower(app=folder, clients=clients, **given)


def experiment(learnt: Flower, updates: int) -> Experiment:
    strategy = {"name": "fedasync", "local": "client_app", "concurrency": 10}
    return Experiment(scenario=Scenario(problem=learnt, budget=Budget(updates=updates)), strategy=strategy)


def milliseconds(learnt: Flower) -> float:
    """Return the median time of a job."""
    simulation, times = Simulation(experiment(learnt, CALLS)), []
    for request in simulation.events():
        if hasattr(request, "job"):
            began = process_time()
            request.local.compute(request.job, request.world)
            times.append(process_time() - began)
    return 1000 * median(times)


def megabytes(clients: int, folder: Path) -> float:
    """Return by how much the process grows in a run of so many clients, four jobs each."""
    simulation = Simulation(experiment(problem(folder, 1_250_000, 10, clients), 4 * clients))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in simulate(simulation):
        pass
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        times = {
            name: round(milliseconds(problem(Path(folder) / name, *size)), 2) for name, size in MODELS.items()
        }
        memory = {str(n): round(megabytes(n, Path(folder) / str(n)), 1) for n in CLIENTS}
    sys.stdout.write(json.dumps({"milliseconds a call": times, "MB by clients": memory}, indent=1) + "\n")


if __name__ == "__main__":
    main()
