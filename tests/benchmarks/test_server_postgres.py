"""Runs and trials in PostgreSQL, directly and through an MLflow server that is killed while both are sent."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from driver import finished
from mlflow import MlflowClient
from mlflow_server import MlflowServer
from patience import PATIENCE, eventually
from postgres import address, cluster, kept_from_adding, make_database
from recorded import computed, held, keys, runs, tables, trials, write_campaign, write_suite

from benchmarks.mlflow_store.entities import METRICS, NO_METRICS
from benchmarks.mlflow_store.store import Store

PASSWORD = "nobody-may-read-this"
AWAY = "the server does not answer"

pytestmark = pytest.mark.slow

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Path]:
    """PostgreSQL with databases for MLflow and for campaigns."""
    with cluster() as folder:
        for name in ("mlflow", "tuning", "direct", "studies"):
            make_database(folder, name)
        yield folder


@pytest.fixture(scope="module")
def server(postgres: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """An MLflow server on it."""
    found = MlflowServer(address(postgres, "mlflow", PASSWORD), tmp_path_factory.mktemp("files"))
    found.start()
    yield found
    found.kill()


def ended(process: subprocess.Popen[str], code: int) -> str:
    """What it said until its end."""
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, said
    assert "Traceback" not in said and PASSWORD not in said and "View run" not in said
    return said


def waiting(store: Store) -> int:
    return len(list(store.outbox.glob("*/*/result.json")))


def test_run(tmp_path: Path, postgres: Path, server: MlflowServer, start: Start) -> None:
    """Killed while records come in, and again while the rest is sent: in the end each is there once."""
    go = tmp_path / "go"
    suite = write_suite(tmp_path, f"asgd, {held(go, free=2)}", name="shared", seeds=6)
    store = Store(tmp_path / "results", server.uri)
    where = ("--store", str(store.folder), "--tracking-uri", server.uri)
    words = ("run", suite.name, "--workers", "2", "--no-report", *where)

    process = start(*words)
    said = finished(process, 6)
    server.kill()
    go.touch()
    said += ended(process, 0)
    left = waiting(store)
    assert 15 - 6 <= left <= 15 and f"not in MLflow: {left} records ({AWAY})" in said

    server.start()
    with kept_from_adding(postgres, "mlflow", "runs", more=4) as waits:
        process = start("sync", *where)
        assert eventually(waits)
        server.kill()
    assert f"{left} records still waiting: {AWAY}" in ended(process, 1)

    server.start()
    assert "12 runs and 3 centralised baselines, all finished already" in ended(start(*words), 0)
    assert not waiting(store)
    wanted = computed(suite)
    found = runs(store, "shared")
    assert keys(found) == sorted(wanted) and tables(store, "shared") == wanted
    assert {run.info.status for run in found} == {"FINISHED"}
    assert len(runs(store, "shared", kind="pooled")) == 3
    assert len(runs(store, "shared", kind="group")) == 2
    client = MlflowClient(store.tracking_uri)
    for run in found:
        _, curve, *_ = wanted[run.data.tags["asyncfl.key"]]
        for column in curve.keys() - NO_METRICS:
            points = client.get_metric_history(run.info.run_id, METRICS.get(column, column))
            values = zip(curve["iteration"], curve[column], strict=True)
            assert [(one.step, one.value) for one in points] == [one for one in values if one[1] is not None]


def test_tune(tmp_path: Path, postgres: Path, server: MlflowServer, start: Start) -> None:
    """Studies in the same PostgreSQL: they do without MLflow's server, which gets every trial once."""
    go = tmp_path / "go"
    suite = write_campaign(tmp_path, held(go, at=5, free=8), updates=60)
    words = ("tune", suite.name, "--workers", "2")
    here = Store(tmp_path / "here")
    go.touch()
    ended(start(*words, "--store", str(here.folder)), 0)
    for path in tmp_path.glob("go*"):
        path.unlink()

    store = Store(tmp_path / "results", server.uri)
    storage = address(postgres, "tuning", PASSWORD)
    there = (*words, "--store", str(store.folder), "--tracking-uri", server.uri, "--storage", storage)
    process = start(*there)
    said = finished(process, 2)
    server.kill()
    go.touch()
    said += ended(process, 0)
    assert f"some trials are not in MLflow ({AWAY}). Rerun the same command to send them" in said

    server.start()
    assert "all finished already" in ended(start(*there), 0)
    assert trials(store) == trials(here) and len(trials(here)) == 12
    assert len(runs(store, "small.tuning", "trial")) == 12
    (study,) = runs(store, "small.tuning", "study")
    (same,) = runs(here, "small.tuning", "study")
    for tag in ("status", "best", "best_value", "space"):
        assert study.data.tags[f"asyncfl.{tag}"] == same.data.tags[f"asyncfl.{tag}"]
    assert study.data.tags["asyncfl.status"] == "finished"
    for file in filter(Path.is_file, store.folder.rglob("*")):
        assert PASSWORD.encode() not in file.read_bytes(), file


def test_run_directly(tmp_path: Path, postgres: Path, start: Start) -> None:
    """Runs reach an empty database, and more seeds of the suite one that has some."""
    uri = address(postgres, "direct", PASSWORD)
    store = Store(tmp_path / "results", uri)
    where = ("--workers", "2", "--store", str(store.folder), "--tracking-uri", uri)
    for seeds in (1, 2):
        suite = write_suite(tmp_path, name="direct", seeds=seeds)
        ended(start("run", suite.name, *where), 0)
        wanted = computed(suite)
        found = runs(store, "direct")
        assert keys(found) == sorted(wanted) and tables(store, "direct") == wanted
        assert {run.info.status for run in found} == {"FINISHED"} and not waiting(store)
        assert len(runs(store, "direct", kind="pooled")) == seeds
        groups = runs(store, "direct", kind="group")
        assert [group.data.metrics["seeds/done"] for group in groups] == [seeds, seeds]
    assert "all finished already" in ended(start("run", suite.name, *where), 0)


@pytest.mark.parametrize("tracking", ["a new local file", "the database itself"])
def test_tune_with_studies_in_postgresql(tmp_path: Path, postgres: Path, start: Start, tracking: str) -> None:
    """A campaign with a new store, and again with the store that has all of it."""
    storage = address(postgres, "studies", PASSWORD)
    uri = address(postgres, "direct", PASSWORD) if tracking == "the database itself" else None
    suite = write_campaign(tmp_path, "asgd", updates=60)
    renamed = suite.with_name(f"{'direct' if uri else 'local'}ly.yaml")
    renamed.write_text(suite.read_text().replace("name: small", f"name: {renamed.stem}"))
    store = Store(tmp_path / "results", uri)
    words = ("tune", renamed.name, "--workers", "2", "--store", str(store.folder), "--storage", storage)
    words += ("--tracking-uri", uri) if uri else ()
    ended(start(*words), 0)
    there = trials(store, renamed.stem)
    assert len(there) == 12
    assert "all finished already" in ended(start(*words), 0)
    assert trials(store, renamed.stem) == there
