"""The pool by itself, with jobs that only count: what is submitted ends once, whatever dies."""

import ast
import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from patience import PATIENCE
from toy import Count, Counted, Deadly, Saving, Sociable, Sum, finals, told

from benchmarks.pool.job import MAX_DEATHS, Died, GivenUp, Message
from benchmarks.pool.local import LocalPool

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("fork_server")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "results" / "workers.log"


def test_every_job_is_computed_and_tells_of_itself(log: Path) -> None:
    jobs = [Count(f"job {number}", numbers=number) for number in range(1, 8)]
    with LocalPool[Count](3, log) as pool:
        assert pool.idle == 3 and not pool.busy and pool.messages(0.0) == []
        for job in jobs:
            pool.submit(job)
        assert pool.idle == 0 and pool.busy
        heard = list(told(pool))
        assert pool.idle == 3
    for job in jobs:
        *numbers, last = [message for about, message in heard if about == job]
        assert numbers == [Counted(number) for number in range(1, job.numbers + 1)]
        assert isinstance(last, Sum) and last.total == job.numbers * (job.numbers + 1) // 2
    assert not multiprocessing.active_children()


def test_jobs_of_one_worker_have_something_in_common(log: Path) -> None:
    with LocalPool[Count](1, log) as pool:
        for number in range(3):
            pool.submit(Count(f"job {number}"))
        ended = finals(pool)
    assert [one.jobs_before for one in ended.values()] == [0, 1, 2]
    assert len({one.process for one in ended.values()}) == 1


def test_a_killed_worker_is_replaced_and_its_job_retried(tmp_path: Path, log: Path) -> None:
    heard: list[Message] = []
    go = tmp_path / "go"
    with LocalPool[Count](1, log) as pool:
        pool.submit(Count("job", numbers=20, holds=3, go=str(go)))
        for _, message in told(pool):
            heard.append(message)
            if message == Counted(3) and not go.exists():
                (worker,) = multiprocessing.active_children()
                os.kill(worker.pid or 0, signal.SIGKILL)
                worker.join()
                go.touch()
    assert heard.count(Died("killed by SIGKILL")) == 1
    assert heard.count(Counted(1)) == 2 and heard.count(Counted(20)) == 1
    assert isinstance(heard[-1], Sum) and heard[-1].total == 210


@pytest.mark.parametrize("deaths", [MAX_DEATHS - 1, MAX_DEATHS])
def test_a_job_that_kills_its_workers_is_given_up(tmp_path: Path, log: Path, deaths: int) -> None:
    tally = tmp_path / "deaths"
    with LocalPool[Count](1, log) as pool:
        pool.submit(Deadly("deadly", deaths=deaths, tally=str(tally)))
        pool.submit(Count("other"))
        ended = finals(pool)
    assert len(set(tally.read_text().split())) == deaths
    assert isinstance(ended["other"], Sum)
    if deaths < MAX_DEATHS:
        assert isinstance(ended["deadly"], Sum)
    else:
        assert ended["deadly"] == GivenUp(f"its worker process died 3 times (killed by SIGKILL); see {log}")
        assert log.is_file()


def test_a_stopped_job_saves_itself_and_goes_on(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.pool.local.STOP_SECONDS", PATIENCE)
    saved = tmp_path / "saved"
    job = Saving("job", numbers=400, holds=5, saved=str(saved))
    with LocalPool[Count](1, log) as pool:
        pool.submit(job)
        pool.submit(Count("never begun"))
        for _, message in told(pool):
            if message == Counted(5):
                break
    assert not pool.busy and not multiprocessing.active_children()
    assert saved.read_text() == "5"
    with LocalPool[Count](1, log) as pool:
        pool.submit(job)
        (end,) = finals(pool).values()
    assert isinstance(end, Sum) and end.total == 400 - 5


def test_a_job_that_cannot_save_itself_is_ended_at_once(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.pool.local.STOP_SECONDS", 3600.0)  # to wait for it would never end
    with LocalPool[Count](1, log) as pool:
        pool.submit(Count("job", holds=1))
        assert next(told(pool))[1] == Counted(1)
    assert not multiprocessing.active_children()


def test_one_job_is_cancelled_and_no_other(log: Path) -> None:
    first, second = Count("first", numbers=10**6, pause=0.05), Count("second", numbers=3, pause=0.05)
    with LocalPool[Count](1, log) as pool:
        pool.submit(first)
        pool.submit(second)
        ended: dict[str, Sum] = {}
        for job, message in told(pool):
            if job is first and message == Counted(2):
                pool.cancel(second)  # it is not in progress, and goes on
                pool.cancel(first)
            if isinstance(message, Sum):
                ended[job.key] = message
                pool.cancel(job)  # it has ended
    assert 3 <= ended["first"].total < 10**6
    assert ended["second"].total == 6


def test_jobs_of_a_kind_go_on_side_by_side(tmp_path: Path, log: Path) -> None:
    """As many as there is capacity for, and no more than leaves the other worker its share."""
    met = tmp_path / "met"
    met.mkdir()
    with LocalPool[Count](2, log) as pool:
        for number in range(4):
            pool.submit(Sociable(f"job {number}", pause=0.05, met=str(met)))
        ended = finals(pool)
    assert len(ended) == 4
    assert [one.beside for one in ended.values()] == [2, 2, 2, 2]
    assert len({one.process for one in ended.values()}) == 2


def test_the_pool_knows_nothing_of_what_it_computes() -> None:
    for path in (ROOT / "benchmarks" / "pool").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks"):
                assert (node.module or "").startswith(("benchmarks.pool", "benchmarks.errors")), path
