"""Runs that nobody computed, as records or as the runner leaves them in MLflow: their truth is known."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.run_result import Files, RunResult
from fl_core.keys import key
from reports.records.records import RecordedSuite, latest
from reports.records.suite_reader import cleaned
from tests.databases import empty_database

START = 1_760_000_000_000  # milliseconds
TWO_CLIENTS: dict[str, Any] = {
    "client": [0, 1],
    "importance": [0.5, 0.5],
    "mean_time": [1.0, 2.0],
    "size": [10, 10],
    "loss": [0.1, 0.2],
    "accuracy": [0.9, 0.7],
}


def curve(accuracy: Sequence[float], updates: Sequence[int], **more: Sequence[float]) -> dict[str, Any]:
    """A curve: a server iteration every second update, an update every 1.5 units of time."""
    clocks = {
        "iteration": [at // 2 for at in updates],
        "updates": list(updates),
        "time": [1.5 * at for at in updates],
        "uploads_bytes": [4 * at for at in updates],
    }
    return {**clocks, "test/accuracy": accuracy, "test/loss": [1 - at for at in accuracy], **more}


@dataclass(frozen=True)
class Fake:
    """One run: its labels, and what its artifacts hold."""

    scenario: str = "digits · i.i.d. · F80"
    strategy: str = "FedBuff"
    seed: int = 0
    status: str = "done"
    problem: str = "digits"
    target: float | None = 0.85
    metric: str = "test/accuracy"
    higher: bool = True
    show: str = ""
    curve: Mapping[str, Any] | None = None  # None: no file was written
    staleness: Sequence[int] = (0, 1, 1, 2)
    client: Sequence[int] = (0, 1, 0, 1)
    clients: Mapping[str, Any] = field(default_factory=lambda: TWO_CLIENTS)
    params: Mapping[str, str] = field(
        default_factory=lambda: {"strategy.name": "fedbuff", "strategy.buffer": "10"}
    )
    totals: Mapping[str, float] = field(default_factory=dict)  # metrics of the whole run
    diagnostics: Mapping[str, Any] | None = None
    partition: str = "i.i.d."
    timing: str = "F80"
    paper: str = "FedBuff, buffered asynchronous aggregation (Nguyen et al., AISTATS 2022, Algorithm 1)."
    started: int = START
    superseded: bool = False
    data: Mapping[str, str] | None = None  # digests; None: those of all strategies
    reason: str = ""  # why it ended

    @property
    def metrics(self) -> dict[str, float]:
        """The latest values in MLflow."""
        last = {name: float(values[-1]) for name, values in (self.curve or {}).items() if name != "iteration"}
        return {**last, "wall_seconds": 1.5, **self.totals}

    def tags(self, suite: str = "suite") -> dict[str, str]:
        """As the runner writes them."""
        own = {
            "kind": "run",
            "key": key([suite, self.scenario, self.strategy, self.seed]),
            "suite": suite,
            "scenario": self.scenario,
            "conditions": json.dumps(self.scenario.split(" · ")),
            "problem": self.problem,
            "partition": self.partition,
            "timing": self.timing,
            "strategy": self.strategy,
            "paper": self.paper,
            "seed": str(self.seed),
            "status": self.status,
            "reason": "the loss of version 3 is not finite" if self.status == "diverged" else self.reason,
            "metric": self.metric,
            "higher_is_better": str(self.higher).lower(),
            "target": "" if self.target is None else repr(self.target),
            "show": self.show,
            "version": "0.1.0",
            "commit": "0123456789abcdef",
            "versions": json.dumps({"python": "3.11.2", "torch": "2.13.0", "numpy": "2.4.6"}),
            "data": json.dumps(self.data or {"digits": "a1b2c3d4", "partition": f"p{self.seed}"}),
            "execution": "one by one",
            "machine": "x86_64, 2 cores",
            **({"superseded": "true"} if self.superseded else {}),
        }
        return {f"asyncfl.{name}": value for name, value in own.items()}

    def files(self) -> Files:
        """Its artifacts, as they are read."""
        if self.curve is None:
            return Files(unread="curve.parquet: no such file")
        curve, clients, diagnostics = map(_columns, (self.curve, self.clients, self.diagnostics or {}))
        return Files(
            curve,
            clients,
            np.stack(np.unique(np.asarray(self.staleness, int), return_counts=True)),
            np.bincount(self.client, minlength=len(clients["client"])),
            diagnostics=diagnostics,
        )


def _columns(table: Mapping[str, Sequence[float]]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in table.items()}


def records(*fakes: Fake, pooled: Sequence[RunResult] = (), name: str = "suite") -> RecordedSuite:
    """The suite as it would be read from MLflow."""
    runs = []
    for at, fake in enumerate(fakes):
        tags, params = fake.tags(name), {**fake.params, "seed": str(fake.seed)}
        times = (fake.started, fake.started + 1500)
        run = RunResult(f"{at:032x}", "1", "FINISHED", *times, "", tags, params, fake.metrics)
        runs.append(cleaned(run).with_files(fake.files()))
    kept, older = latest(runs)
    return RecordedSuite(name, "sqlite:///mlflow.db", "1", "What it asks.", kept, tuple(pooled), older)


def write_store(
    uri: str, artifacts: str | None, suite: str, fakes: Sequence[Fake], pooled: Sequence[RunResult] = ()
) -> None:
    """Write runs to MLflow, artifacts into the given folder or wherever a server keeps them."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    if (path := database.file(uri)) is not None and database.is_new(uri):
        path.write_bytes(empty_database())
    client = MlflowClient(uri)
    note = {"mlflow.note.content": "What it asks."}
    experiment = client.create_experiment(suite, artifact_location=artifacts, tags=note)
    parents: dict[tuple[str, str], str] = {}
    for fake in fakes:
        place = (fake.scenario, fake.strategy)
        if place not in parents:
            group = dict(zip(("asyncfl.scenario", "asyncfl.strategy"), place, strict=True))
            parent = client.create_run(experiment, START, {"asyncfl.kind": "group", **group})
            parents[place] = parent.info.run_id
        run = client.create_run(
            experiment, fake.started, fake.tags(suite) | {"mlflow.parentRunId": parents[place]}
        )
        params = [Param(name, value) for name, value in {**fake.params, "seed": str(fake.seed)}.items()]
        totals = [Metric(name, value, START, 0) for name, value in fake.metrics.items()]
        client.log_batch(run.info.run_id, totals, params)
        _write_files(client, run.info, fake)
        client.set_terminated(run.info.run_id, "FINISHED", fake.started + 1500)
    for one in pooled:
        run = client.create_run(experiment, START, one.tags)
        client.log_batch(
            run.info.run_id, [Metric(name, value, START, 0) for name, value in one.metrics.items()]
        )
        client.set_terminated(run.info.run_id, "FINISHED", START + 900)


def tables(fake: Fake) -> dict[str, Mapping[str, Any]]:
    """The tables of a run with a curve; staleness and clients are repeated, one for each update."""
    assert fake.curve is not None
    n = fake.curve["updates"][-1]
    arrivals = {
        "time": np.arange(n, dtype=float),
        "client": np.resize(fake.client, n),
        "staleness": np.resize(fake.staleness, n),
        "version": max(fake.staleness) + np.arange(n),
    }
    found = {"curve": fake.curve, "arrivals": arrivals, "clients": fake.clients}
    return found if fake.diagnostics is None else {**found, "diagnostics": fake.diagnostics}


def _write_files(client: Any, info: Any, fake: Fake) -> None:
    if fake.curve is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables(fake).items():
            pd.DataFrame(dict(table)).to_parquet(Path(folder) / f"{name}.parquet")
        client.log_artifacts(info.run_id, folder)


@dataclass(frozen=True)
class Character:
    """How a strategy is made to look."""

    level: float  # accuracy that it tends to
    speed: float
    staleness: float  # mean
    per_step: int  # updates a server iteration


CHARACTERS = {
    "ACE": Character(0.955, 5.5, 19, 1),
    "Asynchronous FedAvg": Character(0.945, 5.0, 19, 1),
    "CA²FL": Character(0.95, 4.4, 1.9, 10),
    "FedAvg": Character(0.93, 3.0, 0, 20),
    "FedBuff": Character(0.925, 4.0, 1.9, 10),
    "FedFix": Character(0.94, 4.5, 1.4, 14),
    "Vanilla ASGD": Character(0.90, 6.0, 19, 1),
}
SCENARIOS = {  # accuracy lost
    "digits · i.i.d. · F80": 0.0,
    "digits · i.i.d. · two-speed": 0.005,
    "digits · Dirichlet 0.1 · F80": 0.06,
    "digits · Dirichlet 0.1 · two-speed": 0.09,
}


def plausible(strategy: str, scenario: str, seed: int, evaluations: int = 20, **more: Any) -> Fake:
    """A run that looks like a real one."""
    made, n, total = CHARACTERS[strategy], 20, 2000
    rng = np.random.default_rng(zlib.crc32(f"{strategy}{scenario}{seed}".encode()))
    updates = np.linspace(0, total, evaluations + 1).astype(int)
    progress = 1 - np.exp(-made.speed * updates / total)
    level = made.level - SCENARIOS[scenario] + rng.normal(0, 0.012)
    noise = rng.normal(0, 0.02, evaluations + 1) * (1 - 0.7 * progress) * (updates > 0)
    accuracy = np.clip(0.1 + (level - 0.1) * progress + noise, 0, 1)
    slow = "two-speed" in scenario
    mean_time = np.where(rng.permutation(n) < n // 5, 10.0, 1.0) if slow else np.linspace(4, 0.8, n)
    rate = np.ones(n) if strategy == "FedAvg" else 1 / mean_time
    client = rng.choice(n, total, p=rate / rate.sum())
    spread = 0.05 if "i.i.d." in scenario else 0.12
    return Fake(
        scenario,
        strategy,
        seed,
        curve={
            **curve(
                accuracy, updates.tolist(), **{"worst_client/accuracy": accuracy * (0.5 + 0.35 * progress)}
            ),
            "iteration": updates // made.per_step,
            "time": updates / total * (900 if strategy == "FedAvg" else 160) * rng.uniform(0.97, 1.03),
        },
        staleness=rng.poisson(made.staleness * mean_time[client] / mean_time.mean()),
        client=client,
        clients={
            "client": np.arange(n),
            "importance": np.full(n, 1 / n),
            "mean_time": mean_time,
            "size": rng.integers(20, 120, n),
            "loss": rng.gamma(2, 0.2, n),
            "accuracy": np.clip(accuracy[-1] + rng.normal(0, spread, n), 0.05, 1),
        },
        **dict(zip(("problem", "partition", "timing"), scenario.split(" · "), strict=True)),
        paper=f"{strategy}, what it is in a line (Somebody et al., JMLR 2023, Algorithm 1).",
        params={"strategy.name": strategy.lower(), "strategy.local_lr": "0.1", "strategy.server_lr": "1.0"},
        **more,
    )


def diverged(fake: Fake, after: int = 8) -> Fake:
    """The same run, but its loss ceased to be finite after so many evaluations."""
    assert fake.curve is not None
    cut = {name: list(values)[:after] for name, values in fake.curve.items()}
    cut["test/loss"][-1], cut["test/accuracy"][-1] = float("nan"), 0.1
    return replace(fake, curve=cut, status="diverged")


def quickstart(seeds: int = 3) -> list[Fake]:
    """A whole suite like the main job's: 7 strategies × 4 scenarios × seeds; one run diverged."""
    fakes = [
        plausible(strategy, scenario, seed, show="test/accuracy,worst_client/accuracy")
        for scenario in SCENARIOS
        for strategy in CHARACTERS
        for seed in range(seeds)
    ]
    lost = next(
        at for at, fake in enumerate(fakes) if fake.strategy == "Vanilla ASGD" and "0.1" in fake.scenario
    )
    return [*fakes[:lost], diverged(fakes[lost]), *fakes[lost + 1 :]]


def baseline(problem: str, seed: int, metrics: dict[str, float]) -> RunResult:
    """A centralised baseline as it would be read from MLflow."""
    tags = {"asyncfl.kind": "pooled", "asyncfl.problem": problem, "asyncfl.seed": str(seed)}
    return RunResult("", "1", "FINISHED", START, START + 900, "", tags, {}, metrics)


POOLED = [
    baseline("digits", seed, {"test/accuracy": 0.968 + 0.001 * seed, "test/loss": 0.1}) for seed in range(3)
]
