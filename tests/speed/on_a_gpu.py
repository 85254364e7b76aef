"""Measure the suite on a GPU in about six minutes: `python tests/speed/on_a_gpu.py --out FOLDER`.

Tables are printed, and all numbers are written to `gpu.json` in the folder:

- updates a second of every execution, for each kind of network, in float32 and with TF32;
- waits for the GPU an update, and the lines of code that wait;
- updates a second of several processes on one GPU;
- minutes of a cell of Tables 2 and 3 of Anarchic FL (Yang et al., ICML 2022).

Inputs are random in the shapes of the data sets, so no data are needed. `--device cpu --quick` tries the
script without a GPU.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import multiprocessing
from workloads import endless

from benchmarks import speed as yardstick
from benchmarks.speed import simulations
from fl_core.execution.auto import Auto
from fl_core.execution.cuda_graphs import Graphed
from fl_core.execution.execution import Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.problems.data.data import Data
from fl_core.problems.supervised import Classification

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--quick", action="store_true", help="the first network only, for a tenth of a second")
parser.add_argument("--seconds", type=float, default=360)
parser.add_argument("--out", default=".")

TABLE_STEPS = 250_000  # local steps of a cell of Tables 2 and 3
PROCESSES = (1, 2, 4, 8)


class Random(Classification):
    """Random inputs in the shape of a data set."""

    samples: ClassVar[int] = 8_000
    symbols: ClassVar[int] = 0

    def load(self) -> Data:
        return _drawn(self.shape, self.classes, self.samples, self.symbols)


@functools.cache
def _drawn(shape: tuple[int, ...], classes: int, samples: int, symbols: int) -> Data:
    random = torch.Generator().manual_seed(0)
    dtype = torch.int32 if symbols > 255 else torch.uint8
    tests = samples // 5
    size = (tests + samples, *shape)
    x = torch.randint(2 if symbols else 0, symbols or 256, size, dtype=dtype, generator=random)
    y = torch.randint(0, classes, (len(x),), generator=random)
    scaled = {} if symbols else {"mean": (127.5,) * shape[0], "std": (73.9,) * shape[0]}
    return Data(x[tests:], y[tests:], x[:tests], y[:tests], classes=classes, **scaled)


class Grey(Random):
    """28 × 28 pixels, as MNIST."""

    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)


class Colour(Random):
    """32 × 32 pixels in three colours, as CIFAR-10."""

    shape: ClassVar[tuple[int, ...]] = (3, 32, 32)


class Letters(Random):
    """80 letters, as Shakespeare."""

    shape: ClassVar[tuple[int, ...]] = (80,)
    classes: ClassVar[int] = 80
    symbols: ClassVar[int] = 80


class Posts(Random):
    """128 tokens, as 20 Newsgroups."""

    shape: ClassVar[tuple[int, ...]] = (128,)
    classes: ClassVar[int] = 20
    symbols: ClassVar[int] = 8192


DISTILBERT = {
    "name": "distilbert",
    "weights": "random",
    "layers": 6,
    "width": 768,
    "heads": 12,
    "vocabulary": 8192,
    "length": 128,
}
WORKLOADS: list[tuple[str, type[Random], Any, int]] = [  # name, inputs, network, mini-batch
    ("logistic", Grey, "logistic", 64),
    ("McMahan's CNN", Grey, "cnn", 64),
    ("AFL's CNN", Colour, "afl_cnn", 500),
    ("Alahyane's CNN", Colour, "alahyane_cnn", 32),
    ("ResNet-8", Colour, "resnet8", 50),
    ("LSTM", Letters, "lstm", 10),
    ("ResNet-18", Colour, "resnet18", 50),
    ("DistilBERT", Posts, DISTILBERT, 16),
]
WAYS: dict[str, Callable[[], Execution]] = {
    "one by one": OneByOne,
    "graphed": Graphed,
    "stacked": AllInFlight,
    "auto": Auto,
}
LARGE = ("ResNet-18", "DistilBERT")  # not stacked: too slow to measure in this time
IN_PROCESSES = ("logistic", "AFL's CNN", "ResNet-8")


def experiment(kind: type[Random], model: Any, batch: int, seed: int = 0) -> Experiment:
    """Return asynchronous SGD of 100 clients that never ends, one local step a job."""
    strategy = {"name": "asgd", "local_lr": 1e-4, "local": {"name": "sgd", "batch": batch}}
    return endless(kind.model_validate({"clients": 100, "model": model}), strategy, seed)


def cell() -> Experiment:
    """Return the workload of a cell of Tables 2 and 3: ten workers, five steps of 500."""
    problem = Colour.model_validate({"clients": 10, "model": "afl_cnn"})
    local = {"name": "sgd", "steps": 5, "batch": 500}
    strategy = {"name": "afa_cd", "buffer": 5, "local_lr": 0.01, "local": local}
    return endless(problem, strategy)


def updates_a_second(compute: Callable[[int], int], device: torch.device, seconds: float) -> float:
    """Return the rate of a run that goes on for some seconds, after a first call."""
    compute(3)
    _synchronise(device)
    began, done = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        done += compute(max(1, done // 4))
        _synchronise(device)
        passed = time.perf_counter() - began
    return done / passed


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def set_precision(tf32: bool) -> None:
    """Let the GPU compute as `precision: tf32` does, or as `float32`."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.deterministic = True


def waits(compute: Callable[[int], int], updates: int) -> tuple[float, Counter[str]]:
    """Return the waits for the GPU an update, and the lines of this project that wait, with their counts."""
    lines: Counter[str] = Counter()

    def note(message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:
        if "synchroniz" in str(message):
            frames = [frame for frame in traceback.extract_stack() if "fl_core" in frame.filename]
            where = frames[-1] if frames else traceback.FrameSummary(filename, lineno, "")
            lines[f"{Path(where.filename).name}:{where.lineno}"] += 1

    shown, warnings.showwarning = warnings.showwarning, note
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = note
            done = compute(updates)
    finally:
        torch.cuda.set_sync_debug_mode("default")
        warnings.showwarning = shown
    return sum(lines.values()) / done, lines


class Report:
    """What was measured, printed and written as it comes."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "gpu.json"
        self.numbers: dict[str, list[Any]] = {}

    def add(self, section: str, row: dict[str, Any]) -> None:
        """Print a row, and write all rows."""
        self.numbers.setdefault(section, []).append(row)
        self.file.write_text(json.dumps(self.numbers, indent=1))
        shown = (
            f"{name} {value:,.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in row.items()
        )
        print(f"{section}: " + " | ".join(shown), flush=True)  # noqa: T201


def executions(report: Report, device: torch.device, seconds: float, ends: float) -> None:
    """Measure every execution for each network, as far as the time goes."""
    for number, (name, kind, model, batch) in enumerate(WORKLOADS):
        if number and time.perf_counter() > ends:
            report.add("left out", {"network": name})
            continue
        row: dict[str, Any] = {"network": name, "batch": batch}
        where = [experiment(kind, model, batch)]
        for way in ("one by one", "graphed") if name in LARGE else WAYS:
            row |= measured(way, where, device, seconds)
        if device.type == "cuda":
            set_precision(tf32=True)
            row["graphed, tf32"] = updates_a_second(simulations(where, Graphed(), device), device, seconds)
            set_precision(tf32=False)
            torch.cuda.empty_cache()
        if kind in {Grey, Colour} and name not in LARGE:
            row["plain loop"] = updates_a_second(plain_loop(kind, model, batch, device), device, seconds)
        report.add("updates a second", row)


def measured(way: str, where: list[Experiment], device: torch.device, seconds: float) -> dict[str, Any]:
    """Return the rate of an execution, what it says of itself, and how often it waits for the GPU."""
    execution = WAYS[way]()
    row: dict[str, Any] = {}
    try:
        compute = simulations(where, execution, device)
        row[way] = updates_a_second(compute, device, seconds)
        if way in {"graphed", "auto"}:
            row[f"{way}, label"] = execution.label
        if device.type == "cuda" and way in {"one by one", "graphed"}:
            row[f"{way}, waits"], lines = waits(compute, 64)
            row[f"{way}, lines"] = dict(lines.most_common(6))
    except Exception as error:  # noqa: BLE001 - the others go on
        row[way] = f"{type(error).__name__}: {error}"[:200]
    return row


def plain_loop(kind: type[Random], model: Any, batch: int, device: torch.device) -> Callable[[int], int]:
    """Return a hand-written loop on normalised inputs."""
    problem = kind.model_validate({"clients": 100, "model": model})
    data = problem.load()
    inputs = ((data.x_train.float() - 127.5) / 73.9).to(device)
    network = problem.model.build(problem.shape, problem.classes).to(device)
    return yardstick.loop(network, inputs, data.y_train.to(device), clients=100, batch=batch)


def measured_in_process(rank: int, device: str, seconds: float, barrier: Any, rates: Any) -> None:
    """Take part in the measurements of as many processes as the rank says or more."""
    torch.set_num_threads(1)
    set_precision(tf32=False)
    place = torch.device(device)
    arms = [
        simulations([experiment(kind, model, batch, rank)], Graphed(), place)
        for name, kind, model, batch in WORKLOADS
        if name in IN_PROCESSES
    ]
    arms.append(simulations([cell()], Graphed(), place))
    for compute in arms:
        compute(3)
    for number, count in enumerate(PROCESSES):
        for arm, compute in enumerate(arms):
            barrier.wait()
            if rank < count:
                rates[(number * len(arms) + arm) * max(PROCESSES) + rank] = updates_a_second(
                    compute, place, seconds
                )


def processes(report: Report, device: str, seconds: float) -> None:
    """Measure several processes on one GPU, each with a simulation of its own."""
    context = multiprocessing.get_context("spawn")
    arms = [*IN_PROCESSES, "a cell of Table 3"]
    most = max(PROCESSES)
    barrier, rates = context.Barrier(most), context.Array("d", len(PROCESSES) * len(arms) * most)
    given = (device, seconds, barrier, rates)
    workers = [context.Process(target=measured_in_process, args=(rank, *given)) for rank in range(most)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(150)
        if worker.is_alive():
            worker.kill()
    for arm, name in enumerate(arms):
        row: dict[str, Any] = {"workload": name}
        for number, count in enumerate(PROCESSES):
            first = (number * len(arms) + arm) * most
            row[f"{count} processes"] = sum(rates[first : first + count])
        report.add("processes", row)


def cells(report: Report, device: torch.device, seconds: float) -> None:
    """Measure how long a cell of the tables takes, without its evaluations."""
    for way, tf32 in (("one by one", False), ("graphed", False), ("graphed", True)):
        set_precision(tf32)
        compute = simulations([cell()], WAYS[way](), device)
        rate = updates_a_second(compute, device, seconds)
        minutes = TABLE_STEPS / (5 * rate) / 60
        report.add("cell", {"execution": way, "tf32": tf32, "steps a second": 5 * rate, "minutes": minutes})
    set_precision(tf32=False)


def main() -> None:
    """Measure all that fits into the time."""
    asked = parser.parse_args()
    began = time.perf_counter()
    device = torch.device(asked.device)
    report = Report(Path(asked.out))
    torch.set_num_threads(1)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    report.add("machine", {"name": name, "torch": torch.__version__, "cores": os.cpu_count()})
    seconds = 0.1 if asked.quick else 1.0
    executions(report, device, seconds, began + (0 if asked.quick else 0.6 * asked.seconds))
    if device.type == "cuda":
        cells(report, device, seconds)
        processes(report, asked.device, 1.5)
    report.add("took", {"seconds": time.perf_counter() - began})


if __name__ == "__main__":
    main()
