"""Several commands that begin on one new store lose nothing: one of them makes its database."""

import multiprocessing
import os
import random
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from delivering import deliver
from in_process import compute
from patience import PATIENCE
from recorded import computed, keys, runs, tables, trials, write_campaign, write_suite
from toy_paper import write_claims

from benchmarks.mlflow_store.outbox import Outbox
from benchmarks.mlflow_store.store import Store
from benchmarks.suite.suite import PlannedRun, load, tasks

DATABASES = 1
ROUNDS = int(os.environ.get("ASYNCFL_ROUNDS", "20"))
SPREAD = 10.0  # seconds within which readers begin: the drivers make the database meanwhile


def test_drivers_that_make_one_database_at_once_lose_no_record(tmp_path: Path, empty_database: Path) -> None:
    """The last one's had replaced those of the others: their records were gone, or refused as read-only."""
    wanted = {name: record_runs(tmp_path, name) for name in "abc"}
    databases = [tmp_path / f"{number}.db" for number in range(DATABASES)]
    context = multiprocessing.get_context("fork")  # it has imported MLflow
    together = context.Barrier(len(wanted), timeout=PATIENCE)
    drivers = [
        context.Process(target=deliver, args=(tmp_path / name, databases, empty_database, together))
        for name in wanted
    ]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert [driver.exitcode for driver in drivers] == [0] * len(drivers)
    for path in databases:
        store = Store(tmp_path, f"sqlite:///{path}")
        assert {name: keys(runs(store, name)) for name in wanted} == wanted
        with closing(sqlite3.connect(path)) as opened:
            assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def record_runs(folder: Path, name: str) -> list[str]:
    """Compute the runs of a suite into an outbox of that name; their keys."""
    found = tasks(load(str(write_suite(folder, "asgd", name=name, seeds=3))).runs())
    for task in found:
        if isinstance(task, PlannedRun):
            compute(task, Outbox(folder / name))
    return sorted(task.key for task in found if isinstance(task, PlannedRun))


@pytest.mark.slow
@pytest.mark.timeout(60 + ROUNDS * PATIENCE)
def test_commands_that_begin_together_on_a_new_store_lose_nothing(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    """`run`, `claims run` and `sync` exclude each other: what is refused then is done afterwards."""
    suite, claims = write_campaign(tmp_path, "asgd, fedbuff", updates=60), write_claims(tmp_path)
    drivers = {
        "run": ("run", suite.name, "--workers", "1"),
        "tune": ("tune", suite.name, "--workers", "1"),
        "claims": ("claims", "run", "--claims", str(claims), "--allow-code", "--workers", "1"),
    }
    wanted, wanted_trials, draw = computed(suite), None, random.Random(0)
    for number in range(ROUNDS):
        store = Store(tmp_path / f"store{number}")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        readers = [("report", "small"), ("sync",), ("ui", "--port", port)]
        at = ("--store", str(store.folder))
        begun = {name: start(*words, *at) for name, words in drivers.items()}
        for words in draw.sample(readers, len(readers)):
            time.sleep(draw.uniform(0, SPREAD / len(readers)))
            begun[words[0]] = start(*words, *at)
        ui, said = begun.pop("ui"), {}
        for name, process in begun.items():
            said[name], _ = process.communicate(timeout=PATIENCE)
        if ui.poll() is None:
            ui.send_signal(signal.SIGTERM)
        said["ui"], _ = ui.communicate(timeout=PATIENCE)
        assert not [text for text in said.values() if "Traceback" in text], said
        assert {process.returncode for process in (*begun.values(), ui)} <= {0, 1, 2}, said
        assert begun["tune"].returncode == 0, said
        for name in ("run", "claims"):
            if begun[name].returncode:
                assert "another asyncfl run is using" in said[name]
                assert start(*drivers[name], *at).wait(PATIENCE) == 0
        assert tables(store) == wanted
        wanted_trials = wanted_trials or trials(store)
        assert len(trials(store)) == 24 and trials(store) == wanted_trials
        assert len(runs(store, "claims-toy-small")) == len(tables(store, "claims-toy-small")) == 6
