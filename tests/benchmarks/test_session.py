"""A suite with real worker processes and a real MLflow database: exactly once, whatever dies."""

import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest
from filelock import FileLock
from mlflow import MlflowClient
from patience import PATIENCE
from recorded import held, keys, runs, tables, undisturbed, write_suite

from benchmarks.engine import Local
from benchmarks.errors import UserError
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.messages import Advanced
from benchmarks.runs.progress import Progress, TaskMessage
from benchmarks.runs.session import Session
from benchmarks.suite.suite import PlannedRun, load
from fl_core.problems.data.data import Data
from fl_core.problems.data.files import DataMissingError
from fl_core.problems.digits import Digits
from fl_core.recorded_names import UNTUNED, Tag
from reports.records.suite_reader import load as report

pytestmark = pytest.mark.usefixtures("fork_server")


class Listener(Progress):
    """Does something with what is heard."""

    def __init__(self, hear: Callable[[TaskMessage], None]) -> None:
        self.see = hear  # type: ignore[method-assign]

    def __enter__(self) -> Self:
        return self


def silent(_: TaskMessage) -> None:
    """Hears nothing."""


def session(
    path: Path, store: Store, *, workers: int = 2, hear: Callable[[TaskMessage], None] = silent
) -> Session:
    """One session of a suite."""
    found = Session(load(str(path)), store)
    found.run(Local(workers), lambda _: Listener(hear))
    return found


def test_exactly_once(tmp_path: Path, store: Store) -> None:
    path = write_suite(tmp_path, seeds=1)
    first = session(path, store)
    assert (first.finished_earlier, first.statuses, first.pending_records) == (0, {"done": 3}, 0)
    assert keys(runs(store)) == sorted(task.key for task in first.tasks if isinstance(task, PlannedRun))
    recorded = [run.to_dictionary() for run in runs(store)]

    heard: list[TaskMessage] = []
    second = session(path, store, hear=heard.append)
    assert (second.finished_earlier, second.statuses.total()) == (3, 0)
    assert heard == []
    assert [run.to_dictionary() for run in runs(store)] == recorded

    more = write_suite(tmp_path, "fedbuff, asgd, fedavg", seeds=1)
    third = session(more, store)  # what was added alone is computed
    assert (third.finished_earlier, third.statuses) == (3, {"done": 1})
    assert len(runs(store)) == 3


def test_a_stalled_run_is_finished_and_seen_as_such(tmp_path: Path, store: Store) -> None:
    path = write_suite(tmp_path, "malenia, asgd")
    away = "{name: dropouts, share: 0.3, at: 0}"
    path.write_text(path.read_text().replace("spread: 80}}", f"spread: 80}}, availability: {away}}}"))
    first = session(path, store)
    assert first.statuses == {"done": 4, "stalled": 2}  # the other four are ASGD's and the baselines
    assert (first.finished, first.pending_records) == (6, 0)
    assert session(path, store).statuses.total() == 0
    stalled = [run.data.tags for run in runs(store) if run.data.tags["asyncfl.status"] == "stalled"]
    assert {tags["asyncfl.strategy"] for tags in stalled} == {"Malenia SGD"}
    assert all("waiting for clients that left permanently: " in tags["asyncfl.reason"] for tags in stalled)
    (group,) = [run for run in runs(store, kind="group") if "Malenia" in run.data.tags["asyncfl.strategy"]]
    assert (group.data.metrics["seeds/stalled"], group.data.metrics["seeds/done"]) == (2, 0)
    (row,) = [
        row
        for scenario in report(store.tracking_uri, "small").scenarios()
        for row in scenario.cells
        if row.stalled
    ]
    assert (row.strategy, row.stalled, row.final["distance"].n) == ("Malenia SGD", 2, 2)


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path, store: Store) -> None:
    other = Store(tmp_path / "other")  # it makes its own database, beside the workers
    path = write_suite(tmp_path, "fedbuff, fedavg")
    session(path, store, workers=1)
    session(path, other, workers=3)
    assert len(tables(store)) == 4
    assert tables(store) == tables(other)


def test_a_killed_workers_run_is_taken_up_again(tmp_path: Path, store: Store) -> None:
    go = tmp_path / "go"
    path = write_suite(tmp_path, held(go), seeds=1)
    begun: list[bool] = []  # whether anything was done already

    def kill_once(heard: TaskMessage) -> None:
        if heard is not None and isinstance(heard[1], Advanced) and isinstance(heard[0], PlannedRun):
            begun.append(heard[1].share == 0)
        if begun and not go.exists() and any(store.outbox.glob("small/*.checkpoint")):
            for worker in multiprocessing.active_children():
                worker.kill()
                worker.join()
            go.touch()

    found = session(path, store, hear=kill_once)
    assert begun[0] and not any(begun[1:]), "the run began again, although there was a checkpoint"
    assert found.statuses == {"done": 2} and go.exists()
    assert list(tables(store).values()) == undisturbed(tmp_path, seeds=1)


def test_an_error_stops_no_other_run_and_is_tried_again(tmp_path: Path, store: Store) -> None:
    mended = tmp_path / "mended"
    path = write_suite(tmp_path, f"asgd, {{name: 'sluggish:Failing', mended: '{mended}'}}", seeds=1)
    assert session(path, store).statuses == {"done": 2, "error": 1}
    assert session(path, store).statuses == {"error": 1}
    mended.touch()
    last = session(path, store)
    assert (last.finished_earlier, last.statuses) == (2, {"done": 1})
    assert len(runs(store)) == 2 and {run.info.status for run in runs(store)} == {"FINISHED"}


def test_a_stopped_session_is_continued(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.pool.local.STOP_SECONDS", PATIENCE)
    path = write_suite(tmp_path, f"fedbuff, {held(tmp_path / 'go')}", seeds=1)

    def stop(heard: TaskMessage) -> None:
        if heard is None or not isinstance(heard[1], Advanced) or "FedBuff" in heard[0].name:
            return
        if heard[1].share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session(path, store, workers=1, hear=stop)
    assert not multiprocessing.active_children()
    assert any(store.outbox.glob("small/*.checkpoint"))
    assert [run.data.tags["asyncfl.strategy"] for run in runs(store)] == ["FedBuff"]
    assert not runs(store, kind="pooled")  # baselines come last

    shares: list[float] = []

    def listen(heard: TaskMessage) -> None:
        if heard is not None and isinstance(heard[1], Advanced) and isinstance(heard[0], PlannedRun):
            shares.append(heard[1].share)

    (tmp_path / "go").touch()
    found = session(path, store, hear=listen)
    assert (found.finished_earlier, found.statuses) == (1, {"done": 2})
    assert shares[0] > 0
    (expected,) = undisturbed(tmp_path, seeds=1)
    assert expected in tables(store).values()


def test_two_drivers_do_not_share_a_store(tmp_path: Path, store: Store) -> None:
    path = write_suite(tmp_path)
    with (
        FileLock(store.folder / ".lock"),
        pytest.raises(UserError, match="another asyncfl run is using"),
    ):
        session(path, store)


def test_records_of_another_suite_are_sent_too(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    away = Store(store.folder, "http://127.0.0.1:9")
    suite = write_suite(tmp_path, seeds=1)
    found = session(suite, away)
    assert (found.statuses, found.pending_records, found.pending_reason) == (
        {"done": 3},
        3,
        "the server does not answer",
    )
    assert session(suite, away).statuses.total() == 0  # what waits is not computed again

    session(write_suite(tmp_path, name="other", seeds=1), store)
    for name in ("small", "other"):
        groups = runs(store, name, kind="group")
        assert len(runs(store, name)) == len(groups) == 2
        assert {group.info.status for group in groups} == {"FINISHED"}
        assert all(group.data.metrics["seeds/done"] == 1 for group in groups)
    tags = MlflowClient(store.tracking_uri).get_experiment_by_name("small").tags
    assert tags[Tag.DESCRIPTION] == load(str(write_suite(tmp_path, seeds=1))).description
    assert UNTUNED in tags["mlflow.note.content"]  # two strategies with the default rate
    assert report(store.tracking_uri, "small").description == "Three clients that disagree."
    assert not list(store.outbox.glob("*/suite.json"))


def test_missing_data_are_said_before_anything_is_computed(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: Digits) -> Data:
        raise DataMissingError("digits: not here")

    monkeypatch.setattr(Digits, "load", missing)
    path = write_suite(tmp_path)
    path.write_text(re.sub("problem: .*", "problem: digits", path.read_text()))
    heard: list[TaskMessage] = []
    with pytest.raises(DataMissingError):
        session(path, store, hear=heard.append)
    assert not heard and not runs(store)


def test_a_store_of_an_earlier_version_is_refused_before_anything_is_computed(
    tmp_path: Path, store: Store
) -> None:
    path = write_suite(tmp_path, "asgd", seeds=2)
    session(path, store)
    client = MlflowClient(store.tracking_uri)
    for run in runs(store):
        client.set_tag(run.info.run_id, "asyncfl.key", run.data.tags["asyncfl.key"].partition("-")[2])
    before = [run.data.tags for run in runs(store)]
    with pytest.raises(UserError, match="made by an earlier version"):
        session(path, store)
    assert [run.data.tags for run in runs(store)] == before
