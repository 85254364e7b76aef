"""What MLflow is told of a record: by the contract with the reports, and each exactly once."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import in_process
import pytest
from mlflow import MlflowClient
from mlflow.entities import ViewType
from mlflow.exceptions import MlflowException
from recorded import runs, write_suite
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from benchmarks.errors import UserError
from benchmarks.mlflow_store import database
from benchmarks.mlflow_store import delivery as sending
from benchmarks.mlflow_store.delivery import Delivery, what_happened
from benchmarks.mlflow_store.entities import metrics_of_run
from benchmarks.mlflow_store.outbox import Announcement, Outbox, read
from benchmarks.mlflow_store.provenance import provenance
from benchmarks.mlflow_store.reader import opened
from benchmarks.mlflow_store.run_result import RunResult
from benchmarks.mlflow_store.store import Store
from benchmarks.mlflow_store.writer import Tracking
from benchmarks.suite.suite import PlannedRun, Task, load, tasks
from fl_core.metrics import DISTANCE, EXCESS_LOSS, FEDERATED, as_data
from fl_core.problems.digits import Digits
from fl_core.problems.models.model import Model
from reports.records.suite_reader import load as load_report
from tests import databases


@pytest.fixture
def outbox(store: Store) -> Outbox:
    return Outbox(store.outbox)


def compute(folder: Path, outbox: Outbox, strategies: str = "fedbuff, asgd") -> list[Task]:
    """The records of a small suite, in the outbox."""
    found = tasks(load(str(write_suite(folder, strategies, seeds=1))).runs())
    about = provenance()
    for task in found:
        in_process.compute(task, outbox, about)
    return found


def send(store: Store, outbox: Outbox) -> None:
    """Everything that waits, by a driver of its own."""
    delivery = Delivery(store, outbox)
    delivery.send()
    delivery.close()


def test_the_contract_with_the_reports(tmp_path: Path, store: Store, outbox: Outbox) -> None:
    found = compute(tmp_path, outbox)
    task = next(task for task in found if isinstance(task, PlannedRun))
    curve, result = in_process.curve_of(outbox, task), in_process.result_of(outbox, task)
    send(store, outbox)

    run = next(run for run in runs(store) if run.data.tags["asyncfl.key"] == task.key)
    tags = {
        name.removeprefix("asyncfl."): value for name, value in run.data.tags.items() if "asyncfl" in name
    }
    assert json.loads(tags.pop("versions"))["torch"]
    assert json.loads(tags.pop("data")) == task.problem.world(0).fingerprint
    assert tags.pop("execution") == "one by one" and tags.pop("device") == "cpu"
    assert tags.pop("memory_format") == "contiguous"
    assert float(tags.pop("wall_seconds")) == pytest.approx(result.seconds, abs=0.001)
    assert tags.pop("machine") and tags.pop("processor")
    assert tags.pop("paper").startswith("FedBuff, buffered asynchronous aggregation")
    assert tags.keys() >= {"version", "commit", "repository"}
    known = {name: value for name, value in tags.items() if name not in ("version", "commit", "repository")}
    assert known == {
        "kind": "run",
        "key": task.key,
        "suite": "small",
        "scenario": "quadratic · F80",
        "conditions": '["quadratic", "F80"]',
        "problem": "quadratic",
        "partition": "",
        "timing": "F80",
        "strategy": "FedBuff",
        "seed": "0",
        "status": "done",
        "reason": "budget of client updates",
        "metric": "distance",
        "higher_is_better": "false",
        "metrics": json.dumps(as_data((DISTANCE, EXCESS_LOSS, *FEDERATED)), ensure_ascii=False),
        "target": "0.3",
        "show": "",
        "evaluate": "test",
    }
    assert (run.info.status, run.info.start_time, run.info.end_time) == (
        "FINISHED",
        result.start_time,
        result.end_time,
    )
    assert run.info.run_name == "seed 0 · FedBuff"

    params = run.data.params
    assert params["strategy.name"] == "fedbuff" and params["strategy.buffer"] == "10"
    assert params["timing.durations.name"] == "fx" and params["budget.updates"] == "60"
    assert params["problem.noise"] == "0.1" and params["seed"] == "0"

    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == (
        "quadratic",
        task.problem.world(0).fingerprint["centres"],
    )

    client = MlflowClient(store.tracking_uri)
    history = client.get_metric_history(run.info.run_id, "distance")
    assert [(point.step, point.value, point.timestamp) for point in history] == [
        (row["iteration"], row["distance"], when) for row, when in zip(curve, result.evaluated, strict=True)
    ]
    updates = client.get_metric_history(run.info.run_id, "clock/updates")
    assert [point.value for point in updates] == [row["updates"] for row in curve]
    times = client.get_metric_history(run.info.run_id, "clock/virtual_time")
    assert [point.value for point in times] == [row["time"] for row in curve]
    assert run.data.metrics.keys() >= {"staleness/mean", "staleness/max", "wall_seconds", "fp/loss", "sp/std"}
    names = {item.path for item in client.list_artifacts(run.info.run_id)}
    assert names == {"curve.parquet", "arrivals.parquet", "clients.parquet", "description.json"}
    assert run.info.artifact_uri.startswith(f"file://{store.artifacts}/small/")


def test_mlflow_returns_the_result_that_the_worker_wrote(
    tmp_path: Path, store: Store, outbox: Outbox
) -> None:
    compute(tmp_path, outbox, f"fedbuff, {{name: 'sluggish:Failing', mended: '{tmp_path / 'mended'}'}}")
    written = {result.key: result for result in map(read, outbox.waiting()) if result}
    send(store, outbox)
    with opened(store.tracking_uri) as reader:
        results = reader.results(reader.experiments()["small"].id)
    found = {result.key: result for result in results if result.key}
    assert found.keys() == written.keys() and {run.state for run in found.values()} == {"FINISHED", "FAILED"}
    for key, result in written.items():
        mine = found[key]
        same = mine.tags | {"mlflow.runName": result.tags["mlflow.runName"]}  # names depend on the siblings
        assert same.items() >= result.tags.items() and mine.params == result.params
        assert mine.metrics.items() >= result.metrics.items()
        assert (mine.state, mine.start_time, mine.end_time) == (
            result.state,
            result.start_time,
            result.end_time,
        )
        assert (mine.status, mine.requirements) == (result.status, result.requirements)


def test_one_data_set_is_listed_once_for_each_partition(
    tmp_path: Path, store: Store, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strategies share it; another seed splits the same data otherwise."""
    monkeypatch.setattr(Model, "pooled_steps", 5)  # how good the baselines are matters not
    path = tmp_path / "split.yaml"
    path.write_text(
        "{name: split, seeds: 2, problem: {name: digits, clients: 3}, budget: {updates: 3}, evaluations: 1,"
        " strategies: [asgd, fedbuff]}"
    )
    for task in tasks(load(str(path)).runs()):
        in_process.compute(task, outbox)
    send(store, outbox)
    for kind, name in (("group", "digits · i.i.d."), ("pooled", "digits")):  # which the seeds share
        for run in runs(store, "split", kind):
            (one,) = run.inputs.dataset_inputs
            assert (one.dataset.name, one.dataset.digest) == (name, Digits().load().fingerprint)
    used = {}
    for run in runs(store, "split"):
        (one,) = run.inputs.dataset_inputs
        used.setdefault(run.data.params["seed"], set()).add((one.dataset.name, one.dataset.digest))
    assert [len(found) for found in used.values()] == [1, 1]
    (name, digest), (other, partitioned) = *used["0"], *used["1"]
    assert name == other == "digits · i.i.d."
    data, _, partition = digest.partition("-")
    assert partitioned.startswith(f"{data}-") and partitioned != digest and partition
    assert data == Digits().load().fingerprint


STOPS = {"log_batch": MlflowClient, "_store_files": Tracking, "set_terminated": MlflowClient}


@pytest.mark.parametrize("stop", STOPS)
def test_a_run_that_was_half_written_is_completed(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    outbox = Outbox(store.outbox)
    compute(tmp_path, outbox)

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for folder in outbox.waiting()[-2:]:  # two runs are cut short
        with monkeypatch.context() as patch:
            patch.setattr(STOPS[stop], stop, killed)
            with pytest.raises(KeyboardInterrupt):
                Tracking(store).write(read(folder))
    assert [run.info.status for run in runs(store)] == ["RUNNING", "RUNNING"]

    send(store, outbox)
    found = runs(store, view=ViewType.ALL)
    assert len(found) == 2 and {run.info.status for run in found} == {"FINISHED"}
    client = MlflowClient(store.tracking_uri)
    assert all(len(client.get_metric_history(run.info.run_id, "distance")) == 5 for run in found)
    assert all(len(client.list_artifacts(run.info.run_id)) == 4 for run in found)
    assert len(runs(store, kind="group", view=ViewType.ALL)) == 2
    assert not outbox.waiting()


def test_a_driver_killed_before_it_could_forget_a_record_sends_it_no_second_time(
    tmp_path: Path, store: Store, outbox: Outbox
) -> None:
    failing = f"asgd, {{name: 'sluggish:Failing', mended: '{tmp_path / 'mended'}'}}"
    found = compute(tmp_path, outbox, failing)
    tracking = Tracking(store)
    for folder in outbox.waiting():
        tracking.write(read(folder))
    assert len(outbox.waiting()) == len(found)  # none was dropped
    before = runs(store, view=ViewType.ALL)

    send(store, outbox)
    after = runs(store, view=ViewType.ALL)
    assert [run.to_dictionary() for run in after] == [run.to_dictionary() for run in before]
    assert not outbox.waiting()


def test_of_a_run_that_was_created_twice_one_is_deleted(
    tmp_path: Path, store: Store, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server carries out a request whose answer is lost, and MLflow's client repeats it."""
    found = compute(tmp_path, outbox)
    real = MlflowClient.create_run

    def repeated(self: MlflowClient, *rest: Any, **more: Any) -> Any:
        real(self, *rest, **more)
        return real(self, *rest, **more)

    monkeypatch.setattr(MlflowClient, "create_run", repeated)
    send(store, outbox)
    assert len(runs(store)) == 4
    monkeypatch.undo()
    assert Tracking(store).finished("small") == {task.key for task in found}
    assert len(runs(store)) == 2 and {run.info.status for run in runs(store)} == {"FINISHED"}
    assert len(runs(store, kind="pooled")) == 1


def refusable(outbox: Outbox, folder: Path) -> None:
    result = read(folder)
    assert result is not None
    outbox.put(replace(result, metrics={"no % such = name": 1.0}, evaluated=[]), {})


def damaged(_: Outbox, folder: Path) -> None:
    """After the session has looked at what was there at its start."""
    path = folder / "result.json"
    path.write_text(path.read_text().replace('"wall_seconds": 0', '"wall_seconds": 8'))


@pytest.mark.parametrize(("spoil", "why"), [(refusable, "Invalid"), (damaged, " is damaged")])
def test_one_bad_record_holds_up_no_other(
    tmp_path: Path, store: Store, outbox: Outbox, spoil: Callable[[Outbox, Path], None], why: str
) -> None:
    found = compute(tmp_path, outbox)
    folder = outbox.folder / "small" / found[-1].key
    spoil(outbox, folder)
    delivery = Delivery(store, outbox)
    delivery.send()
    delivery.close()
    assert list(delivery.refused) == [found[-1].key] and not delivery.outage
    assert why in delivery.pending_reason
    assert outbox.waiting() == [folder]
    assert sum(run.info.status == "FINISHED" for run in runs(store)) == 1


@pytest.fixture
def two_marks_in_a_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last row of each curve a second time, as where no step was made between two marks."""
    curve = Outbox.curve

    def evaluated(folder: Path) -> Any:
        once = read(folder)
        return replace(once, evaluated=once.evaluated + once.evaluated[-1:]) if once else None

    def columns(outbox: Outbox, result: RunResult) -> Any:
        return {name: values + values[-1:] for name, values in curve(outbox, result).items()}

    monkeypatch.setattr(Outbox, "curve", columns)
    monkeypatch.setattr(sending, "read", evaluated)


@pytest.mark.usefixtures("two_marks_in_a_millisecond")
def test_one_point_that_was_judged_twice_is_sent_once(tmp_path: Path, store: Store, outbox: Outbox) -> None:
    """MLflow drops its double within a thousand metrics, and stumbles over it beyond."""
    compute(tmp_path, outbox)
    for folder in outbox.waiting():
        result = sending.read(folder)
        assert result is not None
        sent = metrics_of_run(result, outbox.curve(result))
        points = [(one.key, one.value, one.timestamp, one.step) for one in sent]
        assert len(set(points)) == len(points)
    send(store, outbox)
    assert not outbox.waiting()
    assert [run.info.status for run in runs(store)] == ["FINISHED"] * 2


def test_a_record_that_a_database_refuses_holds_up_no_other(
    tmp_path: Path, store: Store, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, write = compute(tmp_path, outbox)[0], Tracking.write

    def refusing(tracking: Tracking, *results: RunResult) -> None:
        if first.key in {result.key for result in results}:
            raise IntegrityError("INSERT", None, sqlite3.IntegrityError("FOREIGN KEY constraint failed"))
        write(tracking, *results)

    monkeypatch.setattr(Tracking, "write", refusing)
    delivery = Delivery(store, outbox)
    delivery.send()
    delivery.close()
    assert list(delivery.refused) == [first.key] and not delivery.outage
    assert [folder.name for folder in outbox.waiting()] == [first.key]


def test_runs_that_look_alike_are_told_apart(tmp_path: Path, store: Store, outbox: Outbox) -> None:
    def session(updates: int) -> set[str]:
        found = tasks(load(str(write_suite(tmp_path, "asgd", updates=updates, seeds=1))).runs())
        for task in found:
            in_process.compute(task, outbox)
        delivery = Delivery(store, outbox)
        simulated = [task for task in found if isinstance(task, PlannedRun)]
        places = {task.key: task.place for task in simulated}
        delivery.announce(Announcement("small", "Three clients.", places, ["ASGD"]))
        delivery.close()
        return set(places)

    def meant() -> set[str]:
        return {
            run.data.tags["asyncfl.key"] for run in runs(store) if "asyncfl.superseded" not in run.data.tags
        }

    first = session(updates=60)
    second = session(updates=30)
    assert first.isdisjoint(second)
    session(updates=30)
    assert meant() == second
    session(updates=60)
    assert meant() == first
    experiment = MlflowClient(store.tracking_uri).get_experiment_by_name("small")
    assert experiment is not None and experiment.tags["asyncfl.description"] == "Three clients."
    assert experiment.tags["mlflow.note.content"].startswith("Three clients.\n\n")
    assert load_report(store.tracking_uri, "small").highlight == ("ASGD",)


def test_the_runs_of_a_deleted_experiment_do_not_come_back(
    tmp_path: Path, store: Store, outbox: Outbox
) -> None:
    client = MlflowClient(store.tracking_uri)
    deleted: set[str] = set()
    for _ in range(2):
        compute(tmp_path, outbox, "asgd")
        send(store, outbox)
        there = {run.info.run_id for run in runs(store)}
        assert len(there) == 1 and not there & deleted
        deleted |= there
        experiment = client.get_experiment_by_name("small")
        assert experiment is not None
        client.delete_experiment(experiment.experiment_id)
    compute(tmp_path, outbox, "asgd")
    send(store, outbox)
    in_the_bin = client.search_experiments(ViewType.DELETED_ONLY, order_by=["name"])
    assert [experiment.name for experiment in in_the_bin] == ["small (deleted, 1)", "small (deleted, 2)"]


def test_a_locked_database_is_named() -> None:
    """SQLAlchemy's error begins with a remark on how it was used."""
    locked = sqlite3.OperationalError("database is locked")
    error = OperationalError("INSERT", {}, locked, connection_invalidated=False)
    error.add_detail("(raised as a result of Query-invoked autoflush; consider …)")
    wrapped = MlflowException(str(error))
    wrapped.__cause__ = error
    assert what_happened(error) == what_happened(wrapped) == "database is locked"


def rubbish(path: Path) -> None:
    path.write_text("this is a shopping list, and a long one")


def other_tables(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")


def newer_schema(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def announced(store: Store) -> None:
    delivery = Delivery(store, Outbox(store.outbox))
    delivery.announce(Announcement("small", "", {}))
    delivery.close()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (rubbish, "cannot be read as an SQLite database"),
        (other_tables, "it has other tables, such as 'customers'"),
        (newer_schema, "install that one, or keep a copy and run mlflow db upgrade"),
        (folder, "cannot be read as an SQLite database"),
    ],
)
def test_a_database_that_is_not_ours_is_left_alone(
    tmp_path: Path, empty_database: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    path = tmp_path / "mlflow.db"
    if spoil is not other_tables:
        shutil.copy(empty_database, path)
    spoil(path)
    before = None if path.is_dir() else path.read_bytes()
    store = Store(tmp_path / "results", f"sqlite:///{path}")
    with pytest.raises(UserError) as caught:
        announced(store)
    (line,) = caught.value.lines
    assert sentence in line and str(path) in line and "\n" not in line
    assert before is None or path.read_bytes() == before


@pytest.mark.parametrize("uri", ["mlruns", "file:///tmp/mlruns", "ftp://example.org/x", "databricks"])
def test_other_kinds_of_stores_are_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(UserError, match=r"--tracking-uri "):
        Delivery(Store(tmp_path, uri), Outbox(tmp_path))


@pytest.mark.parametrize("name", ["runs?lr=1", "runs#1", "runs%20a"])
def test_a_folder_whose_name_ends_an_address_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError):
        Store(tmp_path / name)


def test_other_folders_hold_their_own_database(tmp_path: Path) -> None:
    store = Store(tmp_path / "100% läufe lr=1 a&b+c;d")
    store.make()
    database.create(store.tracking_uri)
    assert [*tmp_path.iterdir()] == [store.folder] and store.database.is_file()


@pytest.mark.parametrize("driver", ["mssql+pymssql", "mysql+nosuch"])
def test_a_database_without_its_driver_is_refused_before_anything_is_computed(driver: str) -> None:
    with pytest.raises(
        UserError, match=r"--tracking-uri .*: the Python driver of this database is not installed: "
    ) as caught:
        database.check(f"{driver}://me:secret@host/x")
    assert "secret" not in str(caught.value)


def test_a_database_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    def killed(uri: str) -> None:
        with sqlite3.connect(uri.removeprefix("sqlite:///")) as connection:
            connection.execute("CREATE TABLE experiments (half TEXT)")
        raise KeyboardInterrupt

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(mlflow, "MlflowClient", killed)
    with pytest.raises(KeyboardInterrupt):
        database.create(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert [path.name for path in tmp_path.iterdir()] == [".mlflow.db.lock"]


def test_mlflow_makes_its_tables_once_for_all_new_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []

    def make_tables(path: Path) -> None:
        calls.append(path)
        path.write_bytes(databases.empty_database())

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(database, "make_tables", make_tables)
    for name in ("first", "second"):
        database.create(f"sqlite:///{tmp_path / name}.db")
        assert (tmp_path / f"{name}.db").read_bytes() == databases.empty_database()
    assert len(calls) == 1
    (cached,) = (tmp_path / "cache").rglob("*.db")
    for damaged in (b"", b"no database", databases.empty_database()[:500_000]):
        cached.write_bytes(damaged)
        (tmp_path / "second.db").unlink()
        database.create(f"sqlite:///{tmp_path / 'second.db'}")
        assert (tmp_path / "second.db").read_bytes() == cached.read_bytes() == databases.empty_database()
    assert len(calls) == 4


def test_without_a_cache_folder_a_store_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "make_tables", lambda path: path.write_bytes(databases.empty_database()))
    (tmp_path / "cache").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    database.create(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert (tmp_path / "mlflow.db").read_bytes() == databases.empty_database()


KILLED_WHILE_WRITING = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA cache_size = 1")  # so that the file is written to before the end
database.execute("BEGIN")
database.executemany("INSERT INTO alembic_version VALUES (?)", ((f"{i:1000}",) for i in range(1000)))
os._exit(9)
"""


def test_what_a_killed_process_was_writing_is_rolled_back(tmp_path: Path, empty_database: Path) -> None:
    path = Path(shutil.copy(empty_database, tmp_path))
    subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(path)], check=False)
    assert (tmp_path / "mlflow.db-journal").stat().st_size
    database.check(f"sqlite:///{path}")
    with sqlite3.connect(path) as left:
        assert left.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)


def test_an_error_that_is_no_absence_counts_as_a_failure(
    tmp_path: Path, store: Store, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that refuses everything loses nothing, and is told from one that does not answer."""
    compute(tmp_path, outbox)
    waiting = [folder.name for folder in outbox.waiting()]

    def failing(error: Exception) -> Callable[..., None]:
        def fail(*_: Any, **__: Any) -> None:
            raise error

        return fail

    absent = OperationalError("INSERT", {}, sqlite3.OperationalError("database is locked"))
    wrong = ProgrammingError("SELECT", {}, sqlite3.ProgrammingError("operator does not exist"))
    for error, failure in ((absent, False), (wrong, True), (PermissionError(13, "denied", "a"), True)):
        with monkeypatch.context() as patch:
            patch.setattr(MlflowClient, "log_batch", failing(error))
            delivery = Delivery(store, outbox)
            delivery.send()
            delivery.close()
        assert delivery.outage and delivery.failing is failure, error
        assert [folder.name for folder in outbox.waiting()] == waiting
    send(store, outbox)
    assert not outbox.waiting() and len(runs(store)) == 2
