"""Ends of a command: no process outlives its driver, and two interrupts end it as one does."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from patience import PATIENCE, eventually
from recorded import computed, held, keys, runs, tables, write_suite

from benchmarks.mlflow_store.store import Store

pytestmark = pytest.mark.slow

Start = Callable[..., subprocess.Popen[str]]

DELAYS = (0.6, 2.0, None)  # seconds until a driver is killed; None: once its workers are at work


def processes_of(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, number = stat.read_text().rpartition(")")[2].split()[:4]
            if int(number) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


def test_no_process_outlives_a_killed_driver(tmp_path: Path, start: Start) -> None:
    """Workers and fork server end with the driver, and another driver goes on."""
    go, waits = tmp_path / "go", tmp_path / "go.waits"
    suite = write_suite(tmp_path, f"asgd, {held(go)}")
    store = Store(tmp_path / "results")
    words = ("run", suite.name, "--workers", "2", "--no-report", "--store", str(store.folder))
    for delay in DELAYS:
        driver = start(*words)
        if delay is None:
            assert eventually(waits.exists)
        else:
            time.sleep(delay)
        driver.kill()
        driver.wait(PATIENCE)
        assert eventually(lambda session=driver.pid: not processes_of(session)), delay
    go.touch()
    last = start(*words)
    said, _ = last.communicate(timeout=PATIENCE)
    assert last.returncode == 0, said
    wanted = computed(suite)
    assert keys(runs(store)) == sorted(wanted) and tables(store) == wanted


def test_two_interrupts_end_as_one_does(tmp_path: Path, start: Start) -> None:
    """Ctrl-C twice reaches all processes of a terminal twice; the exit code is that of an interrupt."""
    go, waits = tmp_path / "go", tmp_path / "go.waits"
    suite = write_suite(tmp_path, held(go))
    for pause in (0.0, 0.3):
        waits.unlink(missing_ok=True)
        driver = start("run", suite.name, "--workers", "2", "--store", "results")
        assert eventually(waits.exists)
        for _ in range(2):
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGINT)
            time.sleep(pause)
        said, _ = driver.communicate(timeout=PATIENCE)
        assert driver.returncode == 130 and "Traceback" not in said, said
        assert eventually(lambda session=driver.pid: not processes_of(session))
