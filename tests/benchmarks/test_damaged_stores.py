"""Of a damaged store every command says what is damaged, in a line: no traceback, and nothing in silence."""

import os
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from damages import damages, fill, sql

from benchmarks.commands import ui
from benchmarks.commands.compare import choose, load, with_metric
from benchmarks.errors import UserError
from benchmarks.mlflow_store.store import Store
from reports.records import suite_reader as records
from tests.databases import new_store

Typed = Callable[..., subprocess.CompletedProcess[str]]

COMMANDS = {
    "report": ("report", "small"),
    "compare": ("compare", "asgd", "fedbuff", "--suite", "small"),
    "check": ("check", "small.yaml", "--no-speed", "--baseline", "baseline.json"),
    "sync": ("sync",),
    "ui": ("ui", "small", "--port"),
    "run": ("run", "small.yaml", "--workers", "1"),
}
WRITERS = {"run", "sync", "ui"}  # of the database; `ui` for the addresses of a store that was moved
CODES = {"check": (0, 1, 2, 3)}  # worse, or other numbers; of all others a problem is 1
SLOW = {"report": 3, "check": 2, "run": 12}  # of so many damages one is tried

# What the line says, whatever the command.
SAID = {
    "table metrics dropped": "is damaged: MLflow's table 'metrics' is missing",
    "column runs.status renamed": "no such column: runs.status",
    "database of 0 bytes": "has no tables",
    "database of 4096 bytes": "database disk image is malformed",
    "database is a broken link": "unable to open database file",
    "runs.start_time = X'ff00'": "start_time: must be milliseconds since 1970",
    "experiments.name = X'ff00'": "experiments.name: must be a text",
    "latest_metrics.key = X'ff00'": "must be a text",
    "tag seed deleted": "tag asyncfl.seed: is ''",
    "tag status = 'x'": "tag asyncfl.status: is 'x'",
    "curve.parquet: iteration null": "curve.parquet: column iteration: double, must be whole numbers",
    "curve.parquet: test/accuracy text": "curve.parquet: column test/accuracy: string, must be numbers",
    "curve.parquet has one other bit": "curve.parquet: OSError",
    "arrivals.parquet: staleness negative": "arrivals.parquet: column staleness: must be whole numbers, 0 or",
    "arrivals.parquet: staleness 10¹²": "arrivals.parquet: column staleness: must not exceed version",
    "arrivals.parquet: client 10¹²": "arrivals.parquet: column client: must be one in clients.parquet",
    "arrivals.parquet has no rows": "arrivals.parquet: 0 rows of 12",
    "arrivals.parquet has 100,000,000 rows": "arrivals.parquet: 100,000,000 rows, too many to read",
    "clients.parquet has no rows": "clients.parquet: no rows",
    "diagnostics.parquet is gone": "diagnostics.parquet: no such file",
    "artifacts are gone": "curve.parquet: no such file",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store that is not where it was made: files are looked up beside the database alone."""
    folder = tmp_path_factory.mktemp("stores")
    store = new_store(folder / "store")
    fill(store)
    store.folder.rename(folder / "whole")
    return Store(folder / "whole")


@pytest.fixture
def told(
    whole: Store, tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, Path], subprocess.CompletedProcess[str]]:
    """What a command says of a store; MLflow's server does not start."""
    ended = Mock(**{"poll.return_value": 0, "wait.return_value": 0})
    monkeypatch.setattr(ui, "_server", lambda *_: nullcontext(ended))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shutil.copy(whole.folder.with_name("small.yaml"), tmp_path)
    baseline = whole.folder.with_name("baseline.json")
    if not baseline.exists():
        words = ("--no-speed", "--write", "--baseline", str(baseline), "--store", str(whole.folder))
        made = typed("check", "small.yaml", *words)
        assert made.returncode == 0, made.stderr
    shutil.copy(baseline, tmp_path)

    def _told(command: str, store: Path) -> subprocess.CompletedProcess[str]:
        words = (*COMMANDS[command], *([port] if command == "ui" else []))
        return typed(*words, "--store", str(store))

    return _told


@pytest.mark.usefixtures("undrawn")
def test_a_whole_store_is_read_without_a_word(whole: Store, tmp_path: Path, told: Callable[..., Any]) -> None:
    for command in COMMANDS.keys() - WRITERS:
        done = told(command, whole.folder)
        assert (done.returncode, done.stderr) == (0, ""), command


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", SAID)
def test_what_is_damaged_is_named(name: str, whole: Store, tmp_path: Path, told: Callable[..., Any]) -> None:
    store = Store(Path(shutil.copytree(whole.folder, tmp_path / "damaged")))
    shutil.rmtree(store.reports, ignore_errors=True)  # of a test before; a page with more runs is kept
    damages(whole)[name](store)
    before = content(store)
    table = name.partition(".")[0]
    # Of tables, compare reads the curves alone, check all but the diagnostics.
    command = (
        "report" if table == "diagnostics" else "check" if table in {"arrivals", "clients"} else "compare"
    )
    done = told(command, store.folder)
    assert SAID[name] in done.stderr and "Traceback" not in done.stderr
    one_run = ".parquet" in name and command != "check"  # the others are reported
    assert done.returncode == (0 if one_run else 2), done.stderr
    assert done.stderr.splitlines()[-1].startswith("Warning: " if one_run else "Error: ")
    assert content(store) == before, "a reader changed the database"


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_damage_ends_in_a_traceback(
    command: str,
    whole: Store,
    tmp_path: Path,
    told: Callable[..., Any],
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    every = SLOW.get(command, 1)
    tried, faults, at = 0, [], int(os.environ.get("ASYNCFL_SEED", "0")) % every
    for name, damage in list(damages(whole).items())[at::every]:
        store = Store(Path(shutil.copytree(whole.folder, tmp_path / str(tried))))
        damage(store)
        before, tried = content(store), tried + 1
        try:
            done = told(command, store.folder)
        except Exception as error:  # noqa: BLE001 - any
            faults.append((name, repr(error)))
            continue
        lines = done.stderr.splitlines()
        if done.returncode not in CODES.get(command, (0, 1, 2)) or "Traceback" in done.stderr:
            faults.append((name, f"exit code {done.returncode}: {done.stderr}"))
        elif done.returncode == 2 and not lines[-1].startswith("Error: "):
            faults.append((name, f"exit code 2 without a reason: {done.stderr}"))
        elif done.returncode == 0 and not done.stdout.strip():
            faults.append((name, "exit code 0 on nothing"))
        elif command not in WRITERS and content(store) != before:
            faults.append((name, "a reader changed the database"))
        shutil.rmtree(store.folder)
    record_testsuite_property(f"damaged stores, {command}", f"{tried} tried, {len(faults)} faults")
    assert not faults


@pytest.fixture
def copy(whole: Store, tmp_path: Path) -> Store:
    """A copy, for a test to damage."""
    return Store(Path(shutil.copytree(whole.folder, tmp_path / "copy")))


def test_a_time_to_target_without_a_target_is_refused(whole: Store, copy: Store) -> None:
    damages(whole)["tag target deleted"](copy)
    _, scenarios = choose(load(copy, "small", ("asgd", "fedbuff")), "asgd", "fedbuff", None)
    with pytest.raises(UserError, match="no target"):
        with_metric(scenarios, "time_to_target")


def test_a_strategy_whose_records_are_damaged_is_told_as_damaged(
    copy: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    asgd = "SELECT run_uuid FROM tags WHERE key = 'asyncfl.strategy' AND value LIKE 'ASGD%'"
    sql(f"UPDATE tags SET value = 'x' WHERE key = 'asyncfl.seed' AND run_uuid IN ({asgd})")(copy)
    with pytest.raises(UserError):
        choose(load(copy, "small", ("asgd", "fedbuff")), "asgd", "fedbuff", None)
    assert "damaged" in capsys.readouterr().err


def test_a_copy_of_the_database_before_its_artifacts_is_whole(copy: Store, tmp_path: Path) -> None:
    later = Store(tmp_path / "later")
    later.folder.mkdir()
    with (
        closing(sqlite3.connect(copy.database)) as source,
        closing(sqlite3.connect(later.database)) as target,
    ):
        source.backup(target)
    shutil.copytree(copy.artifacts, later.artifacts)
    shutil.rmtree(copy.artifacts)
    suite = records.load(later.tracking_uri, "small")
    assert len(suite.runs) == suite.shown == 4


def content(store: Store) -> bytes:
    """The database as it lies there; nothing if it is no file."""
    return store.database.read_bytes() if store.database.is_file() else b""
