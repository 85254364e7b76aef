"""Four processes share one campaign on a real PostgreSQL; one of them is killed in mid-trial."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient
from postgres import address, cluster
from small import RATE, Write

from benchmarks.errors import UserError
from benchmarks.suite.suite import load
from benchmarks.tracking.store import Store
from tuning.ledger import LOST, ORIGIN, RETRIES, WORKER, Ledger
from tuning.plan import plan
from tuning.storage import open_storage

ROOT = Path(__file__).parents[2]
PROGRAM = "from benchmarks.cli import main; main()"
PATIENCE = 240.0  # seconds, on a machine that does many things
TRIALS, SEEDS = 24, 2


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a database that only this test can reach."""
    with cluster() as folder:
        yield address(folder)


@pytest.fixture
def campaign_file(write: Write) -> Path:
    """A suite whose server takes its time, so that processes are met in mid-trial."""
    tuning = {"trials": TRIALS, "seeds": SEEDS, "batch": 2, "space": RATE}
    return write(strategies=[{"name": "sluggish:Slow", "pause": 0.02}, "fedavg"], tuning=tuning)


def start(suite: Path, url: str, store: Store, out: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "benchmarks")])
    command = ["tune", str(suite), "--storage", url, "--store", str(store.folder), "--workers", "1"]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *command, "--out", str(out)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("sluggish")
def test_four_processes_one_of_them_killed(
    postgres: str, campaign_file: Path, store: Store, tmp_path: Path
) -> None:
    began = [start(campaign_file, postgres, store, tmp_path / f"{at}.yaml") for at in range(4)]
    try:
        ledgers = [
            Ledger(open_storage(postgres), study, "the test")
            for study in plan(load(str(campaign_file), tuned=False)).studies
        ]
        victim = _killed_in_mid_trial(ledgers, began)
        said = [process.communicate(timeout=PATIENCE)[0] for process in began]
    finally:
        for process in began:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    codes = sorted(process.returncode for process in began)
    assert codes == [-signal.SIGKILL, 0, 0, 0], said

    lost = []
    for ledger in ledgers:
        complete = [one for one in ledger.trials() if one.state.name == "COMPLETE"]
        gone = [one for one in ledger.trials() if LOST in one.user_attrs]
        assert len(complete) == TRIALS and len(ledger.trials()) == TRIALS + len(gone)
        assert len({one.params["local_lr"] for one in complete}) == TRIALS  # nothing twice
        again = {one.user_attrs[RETRIES]: one for one in complete if one.user_attrs[ORIGIN] == "retry"}
        # A trial that was being asked for when the process died left what was queued for it, or nothing.
        left = {one.number: {**one.system_attrs.get("fixed_params", {}), **one.params} for one in gone}
        assert {number: one.params for number, one in again.items()} == {
            number: params for number, params in left.items() if params
        }
        lost += gone
    assert {one.user_attrs.get(WORKER, victim) for one in lost} == {victim}
    assert any(WORKER in one.user_attrs for one in lost)
    workers = {one.user_attrs[WORKER] for ledger in ledgers for one in ledger.ended()}
    assert len(workers) >= 3  # they did share it
    _mlflow_has_them_once(store, len(lost))
    written = [path.read_text() for path in tmp_path.glob("?.yaml")]
    assert len(written) == 3 and len(set(written)) == 1


def _killed_in_mid_trial(ledgers: list[Ledger], began: list[subprocess.Popen[str]]) -> str:
    """Kill the first process, workers and all, while it simulates trials; its name in the storage."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        os.killpg(began[0].pid, signal.SIGSTOP)  # so that it does not end what it has while we look
        running = [one for ledger in ledgers for one in ledger.trials() if one.state.name == "RUNNING"]
        names = {str(one.user_attrs.get(WORKER)) for one in running}
        mine = [name for name in names if f"-{began[0].pid}-" in name]
        if mine and len(names) >= 3:
            os.killpg(began[0].pid, signal.SIGKILL)
            return mine[0]
        os.killpg(began[0].pid, signal.SIGCONT)
        time.sleep(0.2)
    raise AssertionError("the processes were never at work together")


def _mlflow_has_them_once(store: Store, lost: int) -> None:
    client = MlflowClient(store.tracking_uri)
    experiment = client.get_experiment_by_name("small.tuning")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    trials = [run for run in runs if run.data.tags["asyncfl.kind"] == "trial"]
    assert Counter(run.data.tags["asyncfl.state"] for run in trials) == {
        "complete": 2 * TRIALS,
        "failed": lost,
    }
    places = Counter((run.data.tags["asyncfl.study"], run.data.tags["asyncfl.trial"]) for run in trials)
    assert max(places.values()) == 1
    assert sum(run.data.tags["asyncfl.kind"] == "study" for run in runs) == 2


@pytest.mark.slow
def test_a_database_of_somebody_else_is_left_alone(postgres: str) -> None:
    from sqlalchemy import create_engine, inspect, text

    admin = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE foreign_one"))
    url = postgres.replace("/postgres?", "/foreign_one?")
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE customers (name text)"))
    with pytest.raises(UserError, match="holds other tables, such as 'customers'; name another database"):
        open_storage(url)
    assert inspect(engine).get_table_names() == ["customers"]
    engine.dispose()
    admin.dispose()


@pytest.mark.slow
def test_a_database_that_does_not_exist(postgres: str) -> None:
    with pytest.raises(UserError) as told:
        open_storage(postgres.replace("/postgres?", "/nowhere?"))
    assert 'database "nowhere" does not exist' in told.value.lines[0]
