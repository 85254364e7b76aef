"""Shared by all tests: one thread each, no telemetry, no window, and the same examples on every run of CI.

And a real MLflow database, made once; the fork server and the browser, started once.
"""

import functools
import gc
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from markupsafe import Markup

from benchmarks.mlflow_store.store import Store

ROOT = Path(__file__).parents[1]
CHROMIUM = Path("/usr/bin/chromium")
NOTHING_EXTRA = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported; subprocesses inherit all three
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MPLBACKEND", "Agg")

gc.set_threshold(50_000, 20, 20)  # as commands do: torch and MLflow's objects are not searched all the time
gc.disable()  # until all is imported

settings.register_profile("default", deadline=None, max_examples=40)  # a loaded machine is slow, not wrong
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile("ci" if "CI" in os.environ else "default")
os.environ.pop("CI", None)  # in a job of CI the files of anyone are trusted: tests of that set it


def pytest_collection_finish() -> None:
    """Search for garbage from here on, but not among what was imported: it stays."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a real data set that is not there."""
    folder = os.environ.get("ASYNCFL_DATA")
    for name in (name for mark in item.iter_markers("data") for name in mark.args):
        if not folder or not (Path(folder).expanduser() / name).exists():
            pytest.skip(f"{name} is not in ASYNCFL_DATA")


@pytest.fixture(scope="session", autouse=True)
def _migrations_read_once() -> Iterator[None]:
    """MLflow reads all of its migrations for each database."""
    from mlflow.store.db import utils

    with pytest.MonkeyPatch.context() as patch:
        latest = functools.cache(utils._get_latest_schema_revision)
        patch.setattr(utils, "_get_latest_schema_revision", latest)
        yield


@pytest.fixture(scope="session", autouse=True)
def _disk_not_awaited() -> Iterator[None]:
    """No file of a test needs to survive a loss of power, so no commit waits for the disk."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def _relax(connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", _relax)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield
    event.remove(Engine, "connect", _relax)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database without anything in it."""
    from tests import databases

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    path.write_bytes(databases.empty_database())
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store of the test's own, with a database in it."""
    from tests import databases

    return databases.new_store(tmp_path / "results")


@pytest.fixture(scope="session")
def fork_server() -> None:
    """Workers are forked from a process that has imported all but Lightning, which few suites need."""
    from benchmarks.pool.fork_server import warm_up

    warm_up("benchmarks.runs.run_jobs", "tuning.trial")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; a process can hold one only."""
    if not CHROMIUM.is_file():
        pytest.skip(f"no browser: {CHROMIUM} is not there")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=str(CHROMIUM), args=NOTHING_EXTRA)
        yield opened
        opened.close()


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves figures empty, on pages and in files: drawing them takes most of the time of a page."""
    from reports.figures.svg import Drawing

    monkeypatch.setattr(Drawing, "__html__", lambda drawing: Markup("<svg></svg>"))
    monkeypatch.setattr(Drawing, "save", lambda drawing, path: path.touch(exist_ok=False))


Done = subprocess.CompletedProcess[str]


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Done]]:
    """Types `asyncfl` with some arguments in this process: one of its own takes seconds to import all.

    As there, it begins in a folder of its own, with the user's settings away.
    """
    from asyncfl.cli import main

    for name in ("ASYNCFL_DATA", "ASYNCFL_DEVICE", "ASYNCFL_STORE"):
        monkeypatch.setenv(name, "")  # so that afterwards it is as before, whatever a command does
        monkeypatch.delenv(name)
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def _typed(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["asyncfl", *arguments])
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
        capsys.readouterr()
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(str(code or 0)), said.out, said.err)

    yield _typed
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `asyncfl` with some arguments, as the leader of a process group of its own."""
    begun: list[subprocess.Popen[str]] = []
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "benchmarks")])

    def _start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", "from asyncfl.cli import main; main()", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield _start
    for process in begun:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
