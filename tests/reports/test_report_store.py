"""Reading a real MLflow store: what was written comes back, what is not there is said."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE, eventually
from synthetic import POOLED, Fake, curve, records, write_store

from benchmarks.errors import UserError
from benchmarks.mlflow_store.artifact_locations import local_path
from benchmarks.redaction import redacted
from reports.page import write_page
from reports.records.suite_reader import load
from reports.sections.overview import remarks


def test_what_was_written_comes_back(store: str) -> None:
    suite = load(store, "two")
    assert suite.description == "What it asks."
    assert len(suite.runs) == 6 and suite.strategies == ["ACE", "FedBuff"] and suite.seeds == [0, 1, 2]
    (scenario,) = suite.scenarios()
    best, second = scenario.ranked
    assert (best.strategy, second.strategy) == ("FedBuff", "ACE")
    assert best.final["test/accuracy"].mean == pytest.approx(0.85)
    assert best.staleness == (1.0, 2)
    assert sorted(scenario.pooled["test/accuracy"]) == pytest.approx([0.968, 0.969, 0.970])
    run = scenario.cells[1].runs[0]
    assert run.params["strategy.buffer"] == "10" and run.versions["torch"] == "2.13.0" and run.seconds == 1.5
    assert run.files.participation.tolist() == [10, 10] and list(run.files.clients["accuracy"]) == [0.9, 0.7]
    assert run.started is not None and run.started.isoformat().startswith("2025-10-09T08:53:20")


def test_many_runs_come_in_pages(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.mlflow_store.reader.PAGE", 2)
    assert len(load(store, "two").runs) == 6


def test_files_are_read_of_the_wanted_runs(store: str) -> None:
    """How long a run took is known without its files."""
    first, *_ = load(store, "two").runs
    some = load(store, "two", files_of={first.key})
    assert [bool(run.files.curve) for run in some.runs] == [run.key == first.key for run in some.runs]
    none = load(store, "two", files_of=())
    assert not any(run.files.curve for run in none.runs)
    assert {run.seconds for run in none.runs if run.status.finite} == {1.5}


def test_no_runs_and_no_experiment(store: str) -> None:
    assert load(store, "empty").runs == ()
    assert load(store, "never run").runs == ()


def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load(f"sqlite:///{tmp_path}/no.db", "two")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    path.write_text("this is no database at all, but long enough to be looked at " * 20)
    with pytest.raises(UserError, match="cannot be read") as caught:
        load(f"sqlite:///{path}", "two")
    assert len(caught.value.lines) == 1 and "\n" not in caught.value.lines[0]


@pytest.mark.usefixtures("undrawn")
def test_lost_and_damaged_files_are_named(store: str, tmp_path: Path) -> None:
    # A copy of a migrated database is quicker than a new one.
    database = Path(store.removeprefix("sqlite:///"))
    shutil.copy(database, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    made = curve([0.1, 0.9], [0, 10])
    write_store(
        uri, (tmp_path / "files").as_uri(), "broken", [Fake(seed=seed, curve=made) for seed in range(3)]
    )
    first, second, _ = sorted((tmp_path / "files").iterdir())
    (first / "artifacts" / "curve.parquet").unlink()
    (second / "artifacts" / "arrivals.parquet").write_bytes(b"PAR1 no")
    suite = load(uri, "broken")
    unread = {run.run_id: run.files.unread for run in suite.runs}
    assert unread[first.name] == f"curve.parquet: no such file in {first / 'artifacts'}"
    assert unread[second.name].startswith("arrivals.parquet: Arrow")
    (row,) = suite.scenarios()[0].cells
    assert row.final["test/accuracy"].n == 2 and row.seeds == "3 (1 unreadable)"
    page = write_page(uri, "broken", tmp_path / "page.html").read_text()
    assert first.name in page and any("cannot be read: 2;" in remark for remark in remarks(suite))


def test_a_shown_metric_that_no_run_recorded_is_said(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(store.removeprefix("sqlite:///"), tmp_path / "mlflow.db")
    uri, made = f"sqlite:///{tmp_path}/mlflow.db", curve([0.1, 0.9], [0, 10])
    fake = Fake(curve=made, show="test/accuracy, test/acuracy, wall_seconds")
    write_store(uri, (tmp_path / "files").as_uri(), "misspelt", [fake])
    load(uri, "misspelt")
    said = "Warning: show: test/acuracy was recorded in no run. Did you mean 'test/accuracy'?\n"
    assert capsys.readouterr().err == said


def test_strategies_with_different_budgets_are_said() -> None:
    made = curve([0.1, 0.9], [0, 10])
    fakes = [
        Fake(curve=made, strategy=name, params={"budget.updates": updates})
        for name, updates in (("ACE", "60"), ("FedBuff", "200"))
    ]
    (remark, *_) = remarks(records(*fakes))
    assert "ACE: updates 60" in remark and "FedBuff: updates 200" in remark


def test_strategies_that_met_different_data_are_said() -> None:
    """As where own data are drawn anew in each process; data that differ between seeds are right."""
    made = curve([0.1, 0.9], [0, 10])
    for drawn, count in (("{seed}", 0), ("{seed}{name}", 1)):
        fakes = [
            Fake(curve=made, strategy=name, seed=seed, data={"data": drawn.format(seed=seed, name=name)})
            for name in ("ACE", "FedBuff")
            for seed in range(2)
        ]
        said = [remark for remark in remarks(records(*fakes)) if "met different data" in remark]
        assert len(said) == count
    assert said[0].startswith("digits · i.i.d. · F80, seed 0: ")


def test_addresses() -> None:
    assert redacted("postgresql://me:secret@host/db") == "postgresql://host/db"
    assert redacted("cannot reach https://user:pw@host: no") == "cannot reach https://host: no"
    assert redacted("sqlite:////a/b@c.db") == "sqlite:////a/b@c.db"
    assert local_path("file:///a/b%20c") == Path("/a/b c")
    assert local_path("/a/b") == Path("/a/b")
    assert local_path("mlflow-artifacts:/1/2/artifacts") is None
    assert local_path("s3://bucket/1") is None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of an MLflow server that keeps the artifacts itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    places = [
        "--backend-store-uri",
        f"sqlite:///{tmp_path}/server.db",
        "--artifacts-destination",
        f"{tmp_path}/kept",
    ]
    command = [sys.executable, "-m", "mlflow", "server", *places, "--port", str(port), "--workers", "1"]
    started = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert eventually(lambda: _answers(f"{address}/health"))
        yield address
    finally:
        os.killpg(started.pid, signal.SIGTERM)
        started.wait(PATIENCE)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.slow
def test_a_server_that_keeps_the_artifacts(server: str, tmp_path: Path) -> None:
    measured = {
        "diagnostics": {"iteration": [0, 5], "noise_sq": [2.0, 1.0]},
        "totals": {"diagnostics/noise_sq": 1.5},
    }
    fakes = [Fake(seed=seed, curve=curve([0.1, 0.5, 0.9], [0, 10, 20]), **measured) for seed in range(3)]
    write_store(server, None, "remote", fakes, POOLED)
    suite = load(server, "remote")
    assert [run.final("test/accuracy") for run in suite.runs] == [0.9, 0.9, 0.9]
    assert suite.runs[0].files.staleness.tolist() == [[0, 1, 2], [5, 10, 5]]
    assert suite.runs[0].files.diagnostics["noise_sq"].tolist() == [2.0, 1.0] and suite.runs[0].diagnosed
    page = write_page(server, "remote", tmp_path / "page.html").read_text()
    assert f"{server}/#/experiments/{suite.experiment}/runs/{suite.runs[0].run_id}" in page
