"""No room on a disk, or no right to write there: one clear line, nothing lost, the next command goes on."""

import errno
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from in_process import compute
from patience import PATIENCE
from recorded import computed, keys, runs, tables, trials, write_campaign, write_suite
from sqlalchemy import Pool, event

from benchmarks.commands.group import asyncfl
from benchmarks.errors import users_mistake
from benchmarks.mlflow_store import parquet
from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.mlflow_store.run_result import RunResult
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.session import SyncResult, sync
from benchmarks.suite.suite import load, tasks
from tests.databases import new_store

ROOT = Path(__file__).parents[2]
PROGRAM = "from asyncfl.cli import main; main()"
SIZE = 6_000_000  # bytes; MLflow's empty database has one of them


def test_a_full_disk_is_one_line() -> None:
    (line,) = users_mistake(OSError(errno.ENOSPC, "x", "/results/a")) or ()
    assert line.startswith("/results/a: No space left on device: free disk space and rerun the same command")
    (line,) = users_mistake(OSError(errno.EDQUOT, "x")) or ()
    assert line.startswith("Disk quota exceeded: free disk space")
    assert users_mistake(OSError(errno.EIO, "x")) is None


def test_a_record_without_room_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "x")

    outbox = Outbox(tmp_path)
    result = RunResult("", "", "FINISHED", 1, 2, "", {"asyncfl.suite": "suite", "asyncfl.key": "k"})
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write", full)
        with pytest.raises(OSError, match="x"):
            outbox.put(result, {}, {"curve": {}})
    assert list((tmp_path / "suite").iterdir()) == []
    outbox.put(result, {}, {"curve": {"iteration": [0]}})
    assert [folder.name for folder in outbox.waiting()] == ["k"]


@pytest.fixture
def room(store: Store) -> Iterator[Callable[[int], None]]:
    """Sets how many pages SQLite finds room for beyond those that the database has; first there is plenty."""
    with closing(sqlite3.connect(store.database)) as database:
        (pages,) = database.execute("PRAGMA page_count").fetchone()
    most = [1_000_000]

    def limit(connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {most[0]}")

    def leave(count: int) -> None:
        most[0] = pages + count

    event.listen(Pool, "checkout", limit)
    yield leave
    event.remove(Pool, "checkout", limit)


def waiting(path: Path, store: Store) -> list[str]:
    """The keys of a suite's tasks, computed in this process, whose records wait."""
    for task in tasks(load(str(path)).runs()):
        compute(task, Outbox(store.outbox))
    return sorted(folder.name for folder in Outbox(store.outbox).waiting())


def test_sync_says_that_a_database_has_no_room(
    tmp_path: Path, store: Store, room: Callable[[int], None]
) -> None:
    there = waiting(write_suite(tmp_path, seeds=1), store)
    room(1)
    found = sync(store)
    assert found.pending_records and found.sent + found.pending_records == len(there)
    assert found.pending_reason == f"{store.database}: No space left on device"
    room(10_000)
    assert sync(store) == SyncResult(found.pending_records, 0, "")


@pytest.fixture
def forbidden(store: Store) -> Iterator[Path]:
    """A folder of artifacts into which nobody may write, root neither."""
    store.artifacts.mkdir()
    if os.geteuid():
        store.artifacts.chmod(0o500)
        yield store.artifacts
        store.artifacts.chmod(0o700)
        return
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(store.artifacts)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here, and root may write everywhere")
    yield store.artifacts
    subprocess.run(["umount", "--lazy", store.artifacts], check=True)


def refused(path: Path, store: Store, why: str) -> list[str]:
    """What waits since the artifacts cannot be written, which `asyncfl sync` says in one line."""
    there = waiting(path, store)
    said = CliRunner().invoke(asyncfl, ["sync", "--store", str(store.folder)])
    assert (said.exit_code, said.stdout) == (1, "0 records sent.\n")
    line = f"Error: {len(there)} records still waiting: {store.artifacts}/small"
    assert said.stderr.startswith(line) and said.stderr.endswith(f": {why}\n")
    assert said.stderr.count("\n") == 1
    assert sorted(folder.name for folder in Outbox(store.outbox).waiting()) == there
    return there


def brought(path: Path, store: Store) -> None:
    """All records are sent once the artifacts can be written."""
    assert CliRunner().invoke(asyncfl, ["sync", "--store", str(store.folder)]).exit_code == 0
    wanted = computed(path)
    assert keys(runs(store)) == sorted(wanted) and tables(store) == wanted
    assert not Outbox(store.outbox).waiting()


def test_artifacts_that_may_not_be_written(tmp_path: Path, store: Store, forbidden: Path) -> None:
    path = write_suite(tmp_path, seeds=1)
    refused(path, store, "Permission denied" if os.geteuid() else "Read-only file system")
    if os.geteuid():
        forbidden.chmod(0o700)
    else:
        subprocess.run(["mount", "-o", "remount,rw", forbidden], check=True)
    brought(path, store)


@pytest.mark.parametrize("where", ["artifacts", "artifacts/small"])
def test_a_file_where_artifacts_should_be(tmp_path: Path, store: Store, where: str) -> None:
    path = write_suite(tmp_path, seeds=1)
    (store.folder / where).parent.mkdir(exist_ok=True)
    (store.folder / where).write_text("something else")
    refused(path, store, "Not a directory")
    (store.folder / where).unlink()
    brought(path, store)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of six megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)  # processes may still be ending


def command(folder: Path, *arguments: str) -> tuple[int, str]:
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_disk_that_fills_up(tmp_path: Path, small_disk: Path) -> None:
    """Room for some of the runs: the others are computed when there is more."""
    path = write_suite(tmp_path, seeds=4, updates=15_000)
    store = new_store(small_disk / "results")
    words = ("run", path.name, "--store", str(store.folder), "--workers", "2", "--no-report")
    filler = small_disk / "filler"
    filler.write_bytes(bytes(SIZE - 2_500_000))

    code, said = command(tmp_path, *words)
    line = r"^Error: .*No space left on device: \d+ of 11 finished \(.*\); free disk space"
    assert code == 2 and re.search(line, said, re.MULTILINE) and "Traceback" not in said, said
    assert not list(store.outbox.glob("*/*.partial"))

    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=100m", small_disk], check=True)
    code, said = command(tmp_path, *words)
    assert code == 0, said
    wanted = computed(path)
    assert keys(runs(store)) == sorted(wanted) and tables(store) == wanted
    assert {run.info.status for run in runs(store)} == {"FINISHED"}


@pytest.mark.slow
@pytest.mark.parametrize(("what", "left"), [("mlflow", 60_000), ("tuning.journal", 12_000)])
def test_a_campaign_whose_disk_fills_up(
    tmp_path: Path, small_disk: Path, empty_database: Path, what: str, left: int
) -> None:
    """On a disk with room for some trials: MLflow's database, or the journal."""
    path = write_campaign(tmp_path, "asgd, fedavg", updates=100)
    full, roomy = Store(small_disk / "results"), Store(tmp_path / "results")
    store = full if what == "mlflow" else roomy
    storage = str(tmp_path / "journal" if what == "mlflow" else small_disk / what)
    store.folder.mkdir()
    shutil.copy(empty_database, store.database)
    words = ("tune", path.name, "--workers", "2", "--store", str(store.folder), "--storage")
    used = sum(file.stat().st_size for file in small_disk.rglob("*") if file.is_file())
    filler = small_disk / "filler"
    filler.write_bytes(bytes(SIZE - used - left))

    code, said = command(tmp_path, *words, storage)
    line = r"^Error: .*No space left on device: .*free disk space and rerun the same"
    assert code == 2 and re.search(line, said, re.MULTILINE) and "Traceback" not in said, said

    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=100m", small_disk], check=True)
    code, said = command(tmp_path, *words, storage)
    assert code == 0 and re.search(r", [1-9]\d* trials? finished before", said), said
    other = Store(tmp_path / "other")
    code, said = command(tmp_path, "tune", path.name, "--store", str(other.folder), "--workers", "2")
    assert code == 0, said
    found, wanted = (
        {place: metrics["objective"] for place, metrics in trials(one).items()} for one in (store, other)
    )
    assert found == wanted and len(found) == 24
