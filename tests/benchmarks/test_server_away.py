"""A real MLflow server that is cut off, again and again: every record is there exactly once in the end."""

import random
import shutil
import socket
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import ViewType
from mlflow_server import MlflowServer
from recorded import computed, keys, runs, trials, write_campaign, write_suite

from benchmarks.engine import Local
from benchmarks.mlflow_store import delivery
from benchmarks.mlflow_store.store import Store
from benchmarks.runs.messages import Finished
from benchmarks.runs.progress import Progress, TaskMessage
from benchmarks.runs.session import Session, sync
from benchmarks.suite.suite import load
from tuning.driver import Driver
from tuning.plan import plan
from tuning.storage import open_storage

pytestmark = pytest.mark.slow


class Line:
    """A line to a server, which can be cut: before a request, or after it is carried out but not answered."""

    def __init__(self, server: int, seed: int) -> None:
        self.server, self.share = server, 0.0
        self.dead = False
        self.cuts: Counter[str] = Counter()
        self._draw = random.Random(seed)
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            with suppress(OSError):
                client, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Requests on one connection, each answered before the next."""
        there = ("127.0.0.1", self.server)
        with suppress(OSError, ValueError), client, socket.create_connection(there) as server:
            while request := _message(client):
                fate = self._draw.random()
                if self.dead or fate < self.share / 2:
                    self.cuts["before"] += 1
                    return
                server.sendall(request)
                answer = _message(server)
                if fate < self.share:
                    self.cuts["after"] += 1
                    return
                client.sendall(answer)

    def close(self) -> None:
        self._socket.close()


def _message(sender: socket.socket) -> bytes:
    """A whole request or answer of HTTP/1.1."""
    found = b""
    while b"\r\n\r\n" not in found:
        part = sender.recv(65536)
        if not part:
            return b""
        found += part
    head, _, body = found.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if fields.get(b"transfer-encoding") == b"chunked":
        while not body.endswith(b"0\r\n\r\n"):
            body += sender.recv(65536)
    else:
        while len(body) < int(fields.get(b"content-length", b"0")):
            body += sender.recv(65536)
    return head + b"\r\n\r\n" + body


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[MlflowServer]:
    """An MLflow server with SQLite behind it."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_database, folder / "mlflow.db")
    found = MlflowServer(f"sqlite:///{folder / 'mlflow.db'}", folder / "files")
    found.start()
    yield found
    found.kill()


@pytest.fixture
def line(server: MlflowServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """A line to it; the store is tried again at once, and requests are repeated without a pause."""
    monkeypatch.setattr(delivery, "RETRY_SECONDS", 0.5)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    found = Line(server.port, seed=1)
    yield found
    found.close()


class Watching(Progress):
    """Does something after so many runs."""

    def __init__(self, line: Line, after: int) -> None:
        self.line, self.after, self.ended = line, after, 0

    def see(self, told: TaskMessage) -> None:
        self.ended += told is not None and isinstance(told[1], Finished)
        self.line.dead = self.ended >= self.after


def exactly_once(store: Store, suite: Path) -> None:
    """Every run, every point of its curves and every group."""
    assert not list(store.outbox.glob("*/*"))
    wanted = computed(suite)
    found = runs(store, suite.stem)
    assert keys(found) == sorted(wanted)
    assert {run.info.status for run in found} == {"FINISHED"}
    client = MlflowClient(store.tracking_uri)
    for run in found:
        _, curve, *_ = wanted[run.data.tags["asyncfl.key"]]
        points = client.get_metric_history(run.info.run_id, "distance")
        assert [(point.step, point.value) for point in points] == list(
            zip(curve["iteration"], curve["distance"], strict=True)
        )
        assert len(client.list_artifacts(run.info.run_id)) == 4
    groups = runs(store, suite.stem, kind="group")
    assert len(groups) == 2 and all("seeds/done" in group.data.metrics for group in groups)


@pytest.mark.usefixtures("fork_server")
def test_a_server_that_goes_in_mid_suite_and_comes_back(tmp_path: Path, line: Line) -> None:
    suite = write_suite(tmp_path, name="goes", seeds=6)
    store = Store(tmp_path / "results", line.uri)
    session = Session(load(str(suite)), store)
    session.run(Local(1), lambda _: Watching(line, after=8))
    assert (session.statuses, session.outage) == ({"done": 15}, "the server does not answer")
    assert 7 <= session.pending_records <= 15
    again = sync(store)
    assert (again.sent, again.pending_records, again.pending_reason) == (
        0,
        session.pending_records,
        "the server does not answer",
    )

    line.dead = False
    found = sync(store)
    assert (found.sent, found.pending_records, found.pending_reason) == (session.pending_records, 0, "")
    exactly_once(store, suite)
    assert sync(store).sent == 0


@pytest.mark.usefixtures("fork_server")
def test_a_line_that_is_cut_at_random(tmp_path: Path, line: Line) -> None:
    """A sixth of all requests are lost, or carried out and not answered."""
    suite = write_suite(tmp_path, name="cut", seeds=6)
    store = Store(tmp_path / "results", line.uri)
    line.share = 1 / 6
    session = Session(load(str(suite)), store)
    session.run(Local(1), lambda _: Progress())
    assert session.statuses == {"done": 15}
    for _ in range(20):
        if not session.pending_records or not sync(store).pending_records:
            break
    line.share = 0.0
    sync(store)
    assert min(line.cuts.values()) >= 5 and line.cuts.total() > 20
    exactly_once(store, suite)


@pytest.mark.usefixtures("fork_server")
def test_a_campaign_over_a_line_that_is_cut_at_random(tmp_path: Path, line: Line) -> None:
    """Trials are kept in the journal; what MLflow lacks, or has twice, is mended by the next command."""
    campaign = plan(load(str(write_campaign(tmp_path, "asgd, fedavg", updates=60)), tuned=False))
    store = Store(tmp_path / "results", line.uri)
    line.share = 1 / 6
    for _ in range(20):
        driver = Driver(campaign, open_storage(str(tmp_path / "tuning.journal")), store)
        driver.run(Local(1), lambda _: None)
        assert driver.finished
        if not driver.outage and min(line.cuts.values()) >= 5:
            break
    line.share = 0.0
    Driver(campaign, open_storage(str(tmp_path / "tuning.journal")), store).run(Local(1), lambda _: None)
    wanted = {
        (study.plan.name, trial.number, seed): value
        for study in driver.studies
        for trial in study.trials
        for seed, value in trial.by_seed.items()
    }
    found = trials(store)
    assert {place: metrics["objective"] for place, metrics in found.items()} == wanted


@pytest.mark.usefixtures("fork_server")
def test_a_database_that_another_process_holds(tmp_path: Path, store: Store) -> None:
    """SQLite waits twenty seconds for its lock; then records wait on disk."""
    suite = write_suite(tmp_path, name="locked", seeds=1)
    session = Session(load(str(suite)), store)
    with closing(sqlite3.connect(store.database)) as other:
        other.execute("BEGIN IMMEDIATE")
        session.run(Local(1), lambda _: Progress())
        assert session.statuses == {"done": 3} and session.pending_records == 3
        assert "database is locked" in session.pending_reason
        other.rollback()
    assert sync(store).sent == 3
    exactly_once(store, suite)
    assert len(runs(store, "locked", view=ViewType.ALL)) == 2
