"""`asyncfl live` and `asyncfl replay`: recorded apart from virtual time, and replayed from the store."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from patience import PATIENCE, eventually
from processes import workers

from benchmarks.commands.group import asyncfl
from benchmarks.mlflow_store import parquet
from benchmarks.mlflow_store.reader import reading
from benchmarks.mlflow_store.store import Store
from fl_core.loop.events import EventKind
from fl_core.recorded_names import EVENTS, JOBS, UPDATES, WALL, Kind, Name, Tag, Total

SUITE = """
name: small
problem: {name: quadratic, centres: [[1, 0], [-2, 1], [3, 3], [0, 2]], noise: 0.3}
timing: {durations: {name: fx, spread: 80}}
budget: {updates: 40}
strategies: [fedbuff, ringmaster]
seeds: 1
"""


Typed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.usefixtures("fork_server", "undrawn")
def test_a_suite_runs_in_real_time_and_is_replayed(tmp_path: Path, typed: Typed) -> None:
    (suite := tmp_path / "small.yaml").write_text(SUITE)
    where = "--store", str(tmp_path / "store")
    virtual = typed("run", str(suite), "--no-report", *where)
    live = typed("live", str(suite), "--unit", "10ms", "--processes", "2", *where)
    assert (virtual.returncode, live.returncode) == (0, 0), live.stdout + live.stderr
    assert (tmp_path / "store" / "reports" / "small-live-10ms.html").is_file()
    again = typed("live", str(suite), "--unit", "0.01s", *where)
    assert "all finished already" in again.stdout

    store = Store(tmp_path / "store")
    with reading(store.tracking_uri) as reader:
        suites = reader.experiments()
        assert {"small", "small-live-10ms"} <= suites.keys()
        ran, lived = (
            [entry for entry in reader.results(suites[name].id) if entry.tags[Tag.KIND] == Kind.RUN]
            for name in ("small", "small-live-10ms")
        )
    assert {entry.tags[Tag.KEY] for entry in ran}.isdisjoint(entry.tags[Tag.KEY] for entry in lived)
    assert all(Tag.CLOCK not in entry.tags for entry in ran)
    for entry in lived:
        assert (entry.tags[Tag.CLOCK], entry.tags[Tag.UNIT]) == (WALL, "0.01")
        assert 0 < entry.metrics[Total.SERVER_BUSY] <= 1
        assert entry.metrics[f"clock/{UPDATES}"] == 40
        folder = store.artifacts.joinpath("small-live-10ms", entry.run_id, "artifacts")
        jobs, events = parquet.read(folder, JOBS), parquet.read(folder, EVENTS)
        came = jobs[jobs[Name.ARRIVED].notna()]
        assert len(events) == len(came) == 40
        assert (came[Name.SENT] <= came[Name.BEGAN]).all() and (came[Name.BEGAN] <= came[Name.ARRIVED]).all()

    replayed = typed("replay", "small-live-10ms", *where)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert replayed.stdout.count("40 events and all models equal, bit for bit") == 2
    events[Name.STALENESS] += 1
    parquet.write(folder / EVENTS.file, events)
    differs = typed("replay", entry.run_id, *where)
    assert differs.returncode == 1 and "event 1: staleness 1" in differs.stdout
    assert "ran in virtual time" in typed("replay", "small", *where).stderr


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
def test_a_server_slower_than_its_timer_is_named_once(tmp_path: Path, typed: Typed) -> None:
    """The run ends nevertheless, and is replayed exactly."""
    (suite := tmp_path / "small.yaml").write_text(
        SUITE.replace("fedbuff, ringmaster", '{name: fedfix, period: "1/100000"}')
    )
    where = "--store", str(tmp_path / "store")
    done = typed("live", str(suite), "--unit", "100ms", "--processes", "1", *where)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and said.count("slower than the strategy's timer") == 1, said
    assert "all models equal, bit for bit" in typed("replay", "small-live-100ms", *where).stdout


BROKEN = """
import os
import sys

from asyncfl import Strategy
from fl_core.local_work import SGD

class Ends(Strategy):
    \"\"\"Ends Python at the server.\"\"\"

    def receive(self, server, update):
        sys.exit(3)

class Raises(SGD):
    \"\"\"Raises at the clients.\"\"\"

    def correct(self, *_):
        raise ValueError("no step")

class Truncated(SGD):
    \"\"\"Raises at the clients what the end of a pipe raises, too.\"\"\"

    def correct(self, *_):
        raise EOFError("ran out of input")

class Dies(SGD):
    \"\"\"Ends the clients' processes.\"\"\"

    def correct(self, *_):
        os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
def test_code_that_fails_at_the_server_or_a_client_ends_its_own_run_and_is_named(
    tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fails_live.py").write_text(BROKEN)
    local = "{{name: fedbuff, label: {0}, local: {{name: 'fails_live:{0}'}}}}".format
    broken = f"{{name: 'fails_live:Ends'}}, {local('Raises')}, {local('Truncated')}, {local('Dies')}"
    (suite := tmp_path / "small.yaml").write_text(SUITE.replace("fedbuff", broken))
    monkeypatch.chdir(tmp_path)
    done = typed("live", str(suite), "--unit", "10ms", "--processes", "2", "--store", "store")
    assert done.returncode == 1 and "3 ended in error" in done.stdout, done.stdout + done.stderr
    assert "error: SystemExit: 3 (fails_live.py:12)" in done.stdout
    assert "error: ClientError: ValueError: no step (fails_live.py:18)" in done.stdout
    assert "error: ClientError: EOFError: ran out of input (fails_live.py:24)" in done.stdout
    assert "stalled: no client is left, and no update came" in done.stdout
    traces = [path.read_text() for path in tmp_path.glob("store/artifacts/*/*/artifacts/traceback.txt")]
    assert len(traces) == 3 and sum("in correct" in trace for trace in traces) == 2

    replayed = typed("replay", "small-live-10ms", "--store", "store")
    assert replayed.returncode == 1 and replayed.stderr == "", replayed.stderr
    assert replayed.stdout.count(" · seed 0: ended in error, it left no log\n") == 3
    assert replayed.stdout.count(": 40 events and all models equal, bit for bit") == 1
    assert replayed.stdout.count(": 4 events and all models equal, bit for bit") == 1  # the losses of clients
    beside = typed("replay", "small-live-10ms", "--beside", "small-live-10ms", "--store", "store")
    assert beside.returncode == 0 and "Ringmaster" in beside.stdout, beside.stdout + beside.stderr
    assert "Dies" not in beside.stdout  # there is no update to compare


def test_a_unit_is_a_length_of_time() -> None:
    for text in ("0ms", "100", "ms", "-1s", "1e3ms"):
        refused = CliRunner().invoke(asyncfl, ["live", "quickstart", "--unit", text])
        assert refused.exit_code == 2 and "--unit" in refused.output


def test_what_cannot_run_in_real_time_is_refused_in_a_line(tmp_path: Path, typed: Typed) -> None:
    (suite := tmp_path / "small.yaml").write_text(
        SUITE.replace("timing: {", "timing: {network: {uplink: 1}, ")
    )
    refused = typed("live", str(suite), "--unit", "10ms", "--store", str(tmp_path / "store"))
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert "cannot run in real time: timing.network is simulated" in refused.stderr


LONG = SUITE.replace("updates: 40", "updates: 1000").replace("fedbuff, ringmaster", "fedbuff")


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["client", "server"])
def test_what_is_killed_is_named_and_the_run_comes_to_its_end(
    victim: str, tmp_path: Path, start: Callable[..., subprocess.Popen[str]], typed: Typed
) -> None:
    (suite := tmp_path / "small.yaml").write_text(LONG)
    store = tmp_path / "store"
    words = "live", str(suite), "--unit", "100ms", "--processes", "2", "--store", str(store)
    driver = start(*words)
    assert eventually(lambda: list(store.glob("outbox/*/*.checkpoint")))
    processes = workers(driver.pid)
    [server] = [process for process in processes if parent(process) not in processes]
    clients = [process for process in processes if parent(process) not in (server, parent(server))]
    assert len(clients) == 2
    os.kill(server if victim == "server" else clients[0], signal.SIGKILL)
    said = driver.communicate(timeout=PATIENCE)[0]
    assert driver.returncode == 0, said
    assert eventually(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))

    [log] = store.glob(f"artifacts/small-live-100ms/*/artifacts/{JOBS.file}")
    jobs, events = parquet.read(log.parent, JOBS), parquet.read(log.parent, EVENTS)
    assert (events[Name.KIND] == EventKind.ARRIVAL).sum() == 1000
    again = jobs[jobs[Name.RESENT] == 1]
    named = re.findall(r"job (\d+) of client (\d+)", said)
    assert sorted((int(k), int(i)) for k, i in named) == sorted(
        zip(again[Name.JOB], again[Name.CLIENT], strict=True)
    )
    lost = events[events[Name.KIND] == EventKind.LOST][Name.CLIENT]
    if victim == "client":
        assert len(lost) == 2 and again.empty
    else:
        assert lost.empty and not again.empty
        assert "resumed at time" in said and "lost with the server and sent again: job" in said
        assert "worker died" in said
    replayed = typed("replay", "small-live-100ms", "--store", str(store))
    assert "all models equal, bit for bit" in replayed.stdout, replayed.stdout + replayed.stderr
