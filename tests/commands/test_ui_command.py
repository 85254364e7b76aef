"""`asyncfl ui` serves this machine alone unless told otherwise, and shows no password to its other users."""

import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from optuna import create_study

from benchmarks.commands import ui
from benchmarks.commands.group import asyncfl
from benchmarks.mlflow_store.store import Store
from tuning.storage import open_storage

URI = "postgresql://me:secret@127.0.0.1:9/db"


class Server:
    """In the place of MLflow's process, which ends at once."""

    started: list[tuple[list[str], dict[str, str]]]
    stdout = ("[MLflow] Security middleware enabled with default settings.\n", f"Cannot reach {URI}\n")

    def __init__(self, arguments: list[str], env: dict[str, str], **_: Any) -> None:
        self.started.append((arguments, env))

    def poll(self) -> int:
        return 0

    def wait(self) -> int:
        return 0


@pytest.mark.parametrize(("words", "host"), [([], "127.0.0.1"), (["--host", "0.0.0.0"], "0.0.0.0")])
def test_where_it_listens(words: list[str], host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    Server.started = []
    monkeypatch.setattr(ui.subprocess, "Popen", Server)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    said = CliRunner().invoke(asyncfl, ["ui", "--tracking-uri", URI, "--port", port, *words])
    assert said.exit_code == 0, said.output
    ((arguments, environment),) = Server.started
    assert arguments[arguments.index("--host") + 1] == host
    assert environment["MLFLOW_BACKEND_STORE_URI"] == URI
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"  # of the server, and of its pages
    assert "secret" not in " ".join(arguments) + said.output
    assert "Cannot reach postgresql://127.0.0.1:9/db\n" in said.output
    assert "middleware" not in said.output


def test_links_into_a_server_are_printed_without_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "pages", lambda uri, suite: [(f"All of {suite}", "#/experiments/3/runs")])
    words = ["ui", "small", "--tracking-uri", "https://me:secret@host/"]
    said = CliRunner().invoke(asyncfl, words)
    assert said.exit_code == 0 and said.output == "All of small\n  https://host/#/experiments/3/runs\n"
    store = Store(tracking="https://me:secret@host/")
    assert ui.opening("small", store) == "https://host/#/experiments/3/runs"


def test_tuning_opens_the_dashboard_on_the_campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[Any, ...]] = []
    module = SimpleNamespace(run_server=lambda *given: served.append(given))
    words = ["ui", "--tuning", "--store", str(tmp_path), "--port", "5999"]
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    assert "pip install" in str(CliRunner().invoke(asyncfl, words).exception)
    monkeypatch.setitem(sys.modules, "optuna_dashboard", module)
    assert "does not exist" in str(CliRunner().invoke(asyncfl, words).exception)
    create_study(storage=open_storage(str(tmp_path / "tuning.journal")).optuna, study_name="mine")
    said = CliRunner().invoke(asyncfl, words)
    assert said.exit_code == 0 and "http://127.0.0.1:5999" in said.output
    ((storage, host, port),) = served
    assert [study.study_name for study in storage.get_all_studies()] == ["mine"]
    assert (host, port) == ("127.0.0.1", 5999)
