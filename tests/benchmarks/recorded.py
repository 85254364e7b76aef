"""What MLflow holds after a test, read with MLflow's own client, and suites of quadratics to fill it."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from mlflow import MlflowClient
from mlflow.entities import Run, ViewType

from benchmarks.mlflow_store import tags_and_metrics
from benchmarks.mlflow_store.store import Store
from benchmarks.suite.suite import load
from fl_core.recording import recorder as measure

QUADRATICS = """
name: {name}
description: Three clients that disagree.
seeds: {seeds}
problem: {{name: quadratic, centres: [[-1.0], [1.0], [0.5]], noise: 0.1, target: 0.3}}
timing: {{durations: {{name: fx, spread: 80}}}}
budget: {{updates: {updates}}}
evaluations: 4
strategies: [{strategies}]
"""


def write_suite(
    folder: Path, strategies: str = "fedbuff, asgd", *, name: str = "small", seeds: int = 2, updates: int = 60
) -> Path:
    """A suite file of quadratics."""
    path = folder / f"{name}.yaml"
    path.write_text(QUADRATICS.format(name=name, seeds=seeds, updates=updates, strategies=strategies))
    return path


def held(go: Path, *, at: int = 30, free: int = 0) -> str:
    """A strategy whose runs come to no end before the file `go` is there."""
    return f"{{name: 'sluggish:Held', go: '{go}', at: {at}, free: {free}}}"


def write_campaign(folder: Path, strategies: str, *, updates: int, **changed: Any) -> Path:
    """A suite with six learning rates to try for each strategy, on two seeds."""
    path = write_suite(folder, strategies, updates=updates)
    space = {"local_lr": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]}
    tuning = {"sampler": "grid", "seeds": 2, "batch": 2, "space": space, **changed}
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"tuning": tuning}))
    return path


def runs(
    store: Store, suite: str = "small", kind: str = "run", view: int = ViewType.ACTIVE_ONLY
) -> list[Run]:
    """All runs of a suite in MLflow."""
    client = MlflowClient(store.tracking_uri)
    experiment = client.get_experiment_by_name(suite)
    if experiment is None:
        return []
    where = f"tags.`asyncfl.kind` = '{kind}'"
    return list(client.search_runs([experiment.experiment_id], where, view, max_results=1000))


def keys(found: list[Run]) -> list[str]:
    """The keys of runs, sorted."""
    return sorted(run.data.tags["asyncfl.key"] for run in found)


def tables(store: Store, suite: str = "small") -> dict[str, list[Any]]:
    """All that was computed in each run, by key and ordered by seed; equal if the runs were, bit for bit."""
    found = {}
    client = MlflowClient(store.tracking_uri)
    for run in sorted(runs(store, suite), key=lambda run: run.data.tags["asyncfl.seed"]):
        tags = run.data.tags
        with TemporaryDirectory() as scratch:
            folder = Path(client.download_artifacts(run.info.run_id, "", scratch))
            found[tags["asyncfl.key"]] = [tags["asyncfl.status"]] + [
                pq.read_table(folder / f"{name}.parquet").to_pydict()
                for name in ("curve", "arrivals", "clients")
            ]
    return found


def trials(store: Store, suite: str = "small") -> dict[tuple[str, int, int], dict[str, float]]:
    """The metrics of all trials by study, number and seed; each is complete, and none is there twice."""
    there = runs(store, f"{suite}.tuning", "trial")
    assert {run.info.status for run in there} <= {"FINISHED"}
    tags = [run.data.tags for run in there]
    places = [(t["asyncfl.study"], int(t["asyncfl.trial"]), int(t["asyncfl.seed"])) for t in tags]
    assert len(set(places)) == len(there), "a trial is there twice"
    metrics = [{k: v for k, v in run.data.metrics.items() if k != "wall_seconds"} for run in there]
    return dict(zip(places, metrics, strict=True))


def computed(suite: Path) -> dict[str, list[Any]]:
    """The same for all runs of a suite, each in one go in this process."""
    found = {}
    for run in load(str(suite)).runs():
        record = measure.run(run.experiment)
        parts = tags_and_metrics.tables(record).values()
        found[run.key] = [record.status, *(pa.table(part).to_pydict() for part in parts)]
    return found


def undisturbed(folder: Path, *, seeds: int, updates: int = 60) -> list[list[Any]]:
    """The same for asynchronous SGD in one go in this process. A slow server changes no number."""
    suite = write_suite(folder, "asgd", name="undisturbed", seeds=seeds, updates=updates)
    return list(computed(suite).values())
