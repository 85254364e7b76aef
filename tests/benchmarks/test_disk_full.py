"""A disk that fills up in mid-suite: one clear line, nothing lost, and the next session goes on."""

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded import computed, keys, runs, tables, write_suite

from benchmarks.errors import users_mistake
from benchmarks.tracking import outbox as module
from benchmarks.tracking.outbox import Outbox, Result
from benchmarks.tracking.store import Store

ROOT = Path(__file__).parents[2]
PROGRAM = "from benchmarks.cli import main; main()"
PATIENCE = 240.0  # seconds, on a machine that does many things
SIZE = 6_000_000  # bytes; MLflow's empty database has one of them


def test_a_full_disk_is_one_line() -> None:
    (line,) = users_mistake(OSError(errno.ENOSPC, "x", "/results/a")) or ()
    assert line.startswith("/results/a: No space left on device: make room, and go on with the same command")
    (line,) = users_mistake(OSError(errno.EDQUOT, "x")) or ()
    assert line.startswith("Disk quota exceeded: make room")
    assert users_mistake(OSError(errno.EIO, "x")) is None


def test_a_record_without_room_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "x")

    outbox = Outbox(tmp_path)
    result = Result("run", "suite", "k", "a name", "done", "", 1, 2, 0.5, {})
    with monkeypatch.context() as patch:
        patch.setattr(module, "_write_table", full)
        with pytest.raises(OSError, match="x"):
            outbox.put(result, {}, {"curve": {}})
    assert list((tmp_path / "suite").iterdir()) == []
    outbox.put(result, {}, {"curve": {"iteration": [0]}})
    assert [record.key for record in outbox.waiting()] == ["k"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of six megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)  # processes may still be ending


def asyncfl(folder: Path, *arguments: str) -> tuple[int, str]:
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
def test_a_disk_that_fills_up(tmp_path: Path, small_disk: Path, empty_database: Path) -> None:
    """Room for some of the runs: the others are computed when there is more."""
    path = write_suite(tmp_path, seeds=4, updates=15_000)
    store = Store(small_disk / "results")
    store.folder.mkdir()
    shutil.copy(empty_database, store.database)
    command = ("run", path.name, "--store", str(store.folder), "--workers", "2", "--no-report")
    filler = small_disk / "filler"
    filler.write_bytes(bytes(SIZE - 2_500_000))

    code, said = asyncfl(tmp_path, *command)
    if code == 2:
        line = r"^Error: .*No space left on device: \d+ of 12 runs finished and kept; make room"
        assert re.search(line, said, re.MULTILINE) and "Traceback" not in said, said
    else:  # MLflow's database was the first to find no room: its records wait on the disk
        assert code == 0 and re.search(r"not in MLflow: \d+ records? ", said), said
    assert not list(store.outbox.glob("*/*.partial"))

    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=100m", small_disk], check=True)
    code, said = asyncfl(tmp_path, *command)
    assert code == 0, said
    wanted = computed(path)
    assert keys(runs(store)) == sorted(wanted) and tables(store) == wanted
    assert {run.info.status for run in runs(store)} == {"FINISHED"}
