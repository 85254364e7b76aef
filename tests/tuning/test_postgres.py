"""Four processes share one campaign on a real PostgreSQL; one of them is killed in mid-trial."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from patience import PATIENCE
from postgres import address, cluster
from small import RATE, Write

from benchmarks.errors import UserError
from benchmarks.mlflow_store.store import Store
from benchmarks.suite.suite import load
from tuning.plan import plan
from tuning.storage import open_storage
from tuning.trial_queue import ORIGIN, WORKER, Search

ROOT = Path(__file__).parents[2]
PROGRAM = "from asyncfl.cli import main; main()"
TRIALS, SEEDS = 24, 2

Left = dict[tuple[str, int], tuple[dict[str, Any], str]]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a database that only this test can reach."""
    with cluster() as folder:
        yield address(folder)


@pytest.fixture
def campaign_file(write: Write, tmp_path: Path) -> Path:
    """A suite whose trials come to no end before a file `go` is there, so that processes are met in them."""
    tuning = {"trials": TRIALS, "seeds": SEEDS, "batch": 2, "space": RATE}
    slow = {"name": "sluggish:Held", "go": str(tmp_path / "go"), "at": 5}
    return write(strategies=[slow, "fedavg"], tuning=tuning)


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
        searches = [
            Search(open_storage(postgres), study, "the test")
            for study in plan(load(str(campaign_file), tuned=False)).studies
        ]
        victim, left = _killed_in_mid_trial(searches, began)
        (tmp_path / "go").touch()
        said = [process.communicate(timeout=PATIENCE)[0] for process in began]
    finally:
        for process in began:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    codes = sorted(process.returncode for process in began)
    assert codes == [-signal.SIGKILL, 0, 0, 0], said

    for search in searches:
        assert {one.state.name for one in search.trials()} == {"COMPLETE"} and len(search.trials()) == TRIALS
        assert len({one.params["local_lr"] for one in search.trials()}) == TRIALS  # nothing twice
    ended = {(search.plan.name, one.number): one for search in searches for one in search.ended()}
    for place, (params, origin) in left.items():  # as the killed process left them
        assert (ended[place].params, ended[place].user_attrs[ORIGIN]) == (params, origin)
        assert ended[place].user_attrs[WORKER] != victim
    assert len({one.user_attrs[WORKER] for one in ended.values()}) >= 3  # they did share it
    _mlflow_has_them_once(store)
    written = [path.read_text() for path in tmp_path.glob("?.yaml")]
    assert len(written) == 3 and len(set(written)) == 1


def _killed_in_mid_trial(searches: list[Search], began: list[subprocess.Popen[str]]) -> tuple[str, Left]:
    """Kill the first process, workers and all, while it simulates trials.

    Returns its name in the storage, and parameters and origin of each trial that it had.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        os.killpg(began[0].pid, signal.SIGSTOP)  # so that it does not end what it has while we look
        running = {
            (search.plan.name, one.number): one
            for search in searches
            for one in search.trials()
            if one.state.name == "RUNNING"
        }
        names = {str(one.user_attrs.get(WORKER)) for one in running.values()}
        mine = [name for name in names if f"-{began[0].pid}-" in name]
        if mine and len(names) == len(began):
            os.killpg(began[0].pid, signal.SIGKILL)
            return mine[0], {
                place: (one.params, one.user_attrs[ORIGIN])
                for place, one in running.items()
                if one.user_attrs.get(WORKER) == mine[0] and ORIGIN in one.user_attrs
            }
        os.killpg(began[0].pid, signal.SIGCONT)
        time.sleep(0.2)
    raise AssertionError("the processes were never at work together")


def _mlflow_has_them_once(store: Store) -> None:
    client = MlflowClient(store.tracking_uri)
    experiment = client.get_experiment_by_name("small.tuning")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    trials = [run for run in runs if run.data.tags["asyncfl.kind"] == "trial"]
    assert Counter(run.data.tags["asyncfl.status"] for run in trials) == {"done": 2 * TRIALS * SEEDS}
    tags = ("asyncfl.study", "asyncfl.trial", "asyncfl.seed")
    places = Counter(tuple(run.data.tags[tag] for tag in tags) for run in trials)
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
    with pytest.raises(UserError, match=r"holds other tables, such as 'customers'\. Name another database"):
        open_storage(url)
    assert inspect(engine).get_table_names() == ["customers"]
    engine.dispose()
    admin.dispose()


@pytest.mark.slow
def test_a_database_that_does_not_exist(postgres: str) -> None:
    with pytest.raises(UserError) as told:
        open_storage(postgres.replace("/postgres?", "/nowhere?"))
    assert 'database "nowhere" does not exist' in told.value.lines[0]
