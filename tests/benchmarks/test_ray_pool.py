"""The pool on a Ray cluster of two nodes on this machine: the same contract as that of worker processes."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from toy import Count, Counted, Deadly, Saving, Sociable, Sum, finals, told

from benchmarks.errors import UserError
from benchmarks.pool.job import MAX_DEATHS, Died, Final, GivenUp, Message, PoolJob

pytest.importorskip("ray", reason="Ray is not installed")

import ray
from ray.cluster_utils import Cluster

from benchmarks.pool import ray_pool
from benchmarks.pool.ray_pool import RayPool, connect
from fl_core.import_guard import leave_the_path, load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A head with one core and another node with one; this process is its driver."""
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    found.add_node(num_cpus=1)
    with chdir(tmp_path_factory.mktemp("started")):
        connect(found.address)
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.mark.usefixtures("cluster")
def test_the_contract_of_a_pool(tmp_path: Path) -> None:
    """Every job ends once; requests to end arrive; a job that kills its workers is given up, and no other."""
    jobs = [Count(f"job {number}", numbers=number) for number in range(1, 8)]
    cancelled = Count("cancelled", numbers=10**6, pause=0.05)
    deadly = Deadly("deadly", deaths=MAX_DEATHS, tally=str(tmp_path / "deaths"))
    ended: dict[str, Message] = {}
    heard: list[tuple[PoolJob, Message]] = []
    with RayPool[Any](10) as pool:
        for job in (*jobs, cancelled, deadly):
            pool.submit(job)
        for job, message in told(pool):
            heard.append((job, message))
            if message == Counted(2) and job is cancelled:
                pool.cancel(cancelled)
            if isinstance(message, Final):
                assert job.key not in ended
                ended[job.key] = message
        assert (pool.idle, pool.busy) == (2, False)
    for job in jobs:
        *numbers, last = [message for about, message in heard if about is job]
        assert numbers == [Counted(number) for number in range(1, job.numbers + 1)]
        assert isinstance(last, Sum) and last.total == job.numbers * (job.numbers + 1) // 2
    last = ended.pop("cancelled")
    assert isinstance(last, Sum)
    assert sorted(ended) == sorted(["deadly", *(job.key for job in jobs)])
    assert {key for key, message in ended.items() if isinstance(message, GivenUp)} == {"deadly"}
    assert len(set((tmp_path / "deaths").read_text().split())) == MAX_DEATHS


@pytest.mark.usefixtures("cluster")
def test_jobs_of_a_kind_go_on_side_by_side(tmp_path: Path) -> None:
    with RayPool[Count](2) as pool:
        for number in range(4):
            pool.submit(Sociable(f"job {number}", pause=0.1, met=str(tmp_path)))
        ended = finals(pool)
    assert len(ended) == 4
    assert max(one.beside for one in ended.values() if isinstance(one, Sum)) >= 2


@pytest.mark.usefixtures("cluster")
def test_a_stopped_job_comes_back_with_its_files_and_goes_on(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    job = Saving("job", numbers=1000, holds=5, saved=str(saved))
    with RayPool[Count](1) as pool:
        pool.submit(job)
        pool.submit(Count("never begun"))
        for _, message in told(pool):
            if message == Counted(5):
                break
    assert not pool.busy
    assert saved.read_text() == "5"
    with RayPool[Count](1) as pool:
        pool.submit(job)
        (end,) = finals(pool).values()
    assert isinstance(end, Sum) and end.total == 1000 - 5


@pytest.mark.usefixtures("cluster")
def test_workers_find_packages_that_the_user_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the command was started, and nothing else there."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    (tmp_path / "jobs_of_a_user.py").write_text("from toy import Count\n\nclass Own(Count): ...\n")
    leave_the_path(tmp_path)
    with RayPool[Any](1) as pool:
        pool.submit(load("jobs_of_a_user:Own")("job", numbers=3))
        (end,) = finals(pool).values()
    assert isinstance(end, Sum) and end.total == 6
    folders = ray.get(ray.remote(lambda: sys.path).remote())
    assert not any("started" in folder for folder in folders), folders


class _Reads(Count):
    """Reads a file of the folder in which the command was started."""

    def compute(self, worker: Any) -> None:
        worker.tell(self, Sum(int(Path("total").read_text()), os.getpid()))


@pytest.mark.usefixtures("cluster")
def test_relative_paths_begin_in_the_drivers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "total").write_text("7")
    monkeypatch.chdir(tmp_path)
    with RayPool[Any](1) as pool:
        pool.submit(_Reads("job"))
        (end,) = finals(pool).values()
    assert isinstance(end, Sum) and end.total == 7


@dataclass(frozen=True)
class _Heartbeat(Saving):
    """Saves itself at every number, and leaves the rest to the heartbeat."""

    def compute(self, worker: Any) -> None:
        saved = Path(self.saved)
        begin = int(saved.read_text()) if saved.exists() else 0
        for number in range(begin + 1, self.numbers + 1):
            time.sleep(self.pause)
            saved.write_text(str(number))
            worker.tell(self, Counted(number))
            while number == self.holds and not Path(self.go).exists():
                time.sleep(0.1)
                worker.tell(self, Counted(number))
        worker.tell(self, Sum(self.numbers - begin, os.getpid()))


def test_a_lost_node_costs_what_was_done_since_the_last_heartbeat(tmp_path: Path, cluster: Cluster) -> None:
    node = cluster.add_node(num_cpus=1, resources={"spare": 1})
    go, saved = tmp_path / "go", [tmp_path / str(number) for number in range(3)]
    heard: list[Message] = []
    there = True
    with RayPool[Count](3, heartbeat=0.5) as pool:
        for path in saved:
            pool.submit(_Heartbeat(path.name, numbers=600, holds=100, go=str(go), saved=str(path)))
        for _, message in told(pool):
            heard.append(message)
            if there and all(path.exists() and path.read_text() == "100" for path in saved):
                cluster.remove_node(node, allow_graceful=False)
                there = False
            if isinstance(message, Died):  # from then on nothing counts on the lost node
                go.touch()
    died = [message for message in heard if isinstance(message, Died)]
    ended = [message for message in heard if isinstance(message, Sum)]
    assert len(died) == 1
    assert len(ended) == 3
    assert sorted(one.total for one in ended) == [500, 600, 600]


@pytest.mark.usefixtures("cluster")
def test_an_unfit_node_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    def prepare() -> None:
        raise OSError(os.environ["ASYNCFL_WHY"])

    with RayPool[Count](2, environment={"ASYNCFL_WHY": "no data"}, prepare=prepare) as pool:
        pool.submit(Count("job"))
        # A line for each: Ray may still count a node that an earlier test lost.
        with pytest.raises(UserError, match=r"(?m)^node .*: OSError: no data"):
            finals(pool)
    assert "is left out: OSError: no data" in capsys.readouterr().err


@pytest.mark.usefixtures("cluster")
def test_a_driver_whose_own_node_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would start no worker any more, and say nothing."""
    here = ray.get_runtime_context().get_node_id()
    others = [node for node in ray.nodes() if node["NodeID"] != here]
    with RayPool[Count](2) as pool:
        pool.submit(Count("job", numbers=200, pause=0.05))
        monkeypatch.setattr(ray_pool, "_nodes", lambda: others)
        with pytest.raises(UserError, match=r"^--engine ray: Ray has ended on this machine\. Start it again"):
            finals(pool)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "nowhere", "a:b"])
def test_an_address_without_a_cluster_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_pool.ray, "is_initialized", lambda: False)
    with pytest.raises(UserError, match=f"^--address {address}: ") as caught:
        connect(address)
    assert len(caught.value.lines) == 1
