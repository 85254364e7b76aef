"""What it costs to record a run: its files, and MLflow."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from benchmarks.runs.recording import Recording
from benchmarks.runs.tasks import RunTask
from benchmarks.suite.suite import PlannedRun
from benchmarks.tracking.delivery import Delivery
from benchmarks.tracking.outbox import Outbox
from benchmarks.tracking.store import Store
from fl_core.experiment import Experiment
from fl_core.recording.recorder import Record

EVALUATIONS, METRICS, ARRIVALS, CLIENTS = 100, 12, 20_000, 100


def seconds(runs: int = 5) -> float:
    """Processor time per run, after the first, which has to create the database."""
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        outbox = Outbox(store.outbox)
        spent = []
        for seed in range(runs + 1):
            delivery = Delivery(store, outbox)
            began = process_time()
            _record(outbox, seed)
            delivery.announce("speed", "", {})
            delivery.close()
            spent.append(process_time() - began)
            if delivery.away or delivery.refused:
                raise RuntimeError(f"not recorded: {delivery.away or delivery.refused}")
    return sum(spent[1:]) / runs


def _record(outbox: Outbox, seed: int) -> None:
    """Leave a finished run in the outbox."""
    experiment = Experiment.model_validate(
        {
            "scenario": {"problem": "quadratic", "budget": {"updates": ARRIVALS}},
            "strategy": "fedbuff",
            "seed": seed,
        }
    )
    run = PlannedRun(
        "speed", experiment, "quadratic · 1", "quadratic", "", "1", "FedBuff", "FedBuff (AISTATS 2022)"
    )
    random = np.random.default_rng(seed)
    record = Record(status="done", reason="budget of client updates")
    names = ["iteration", "updates", "time", "uploads_bytes"]
    names += [f"metric/{number}" for number in range(METRICS)]
    rows = random.random((EVALUATIONS, len(names)))
    rows[:, :2] = np.arange(EVALUATIONS)[:, None]
    record.curve = [dict(zip(names, row, strict=True)) for row in rows.tolist()]
    for column in record.arrivals.values():
        column.extend(range(ARRIVALS))
    record.clients = {name: random.random(CLIENTS).tolist() for name in ("client", "loss", "importance")}
    recording = Recording(outbox, RunTask(run), {})
    for rows_so_far in range(EVALUATIONS):
        recording.watch.stamp(rows_so_far + 1)
    recording.simulated(record, {"execution": "one by one", "data": {"data": "f97f724458bd5ace"}})
