"""A Ray cluster of two nodes: workers, a node and the driver lost, and the numbers of one machine."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from driver import finished
from patience import PATIENCE
from processes import workers
from recorded import computed, held, keys, runs, tables, trials, write_campaign, write_suite
from toy_paper import take_numbers, write_claims

from benchmarks.mlflow_store.store import Store

pytest.importorskip("ray", reason="Ray is not installed")

from ray.cluster_utils import Cluster

SEEDS, UPDATES = 50, 60
SLOW = "{name: 'sluggish:Slow', pause: 0.004}"

pytestmark = pytest.mark.slow

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A head with one core, and another node with one."""
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield found
    found.shutdown()


def test_a_node_is_lost_and_the_driver_killed(
    tmp_path: Path, store: Store, cluster: Cluster, start: Start
) -> None:
    """100 runs: after 20 a node dies, after 45 the driver; another driver and another node do the rest."""
    go = tmp_path / "go"
    path = write_suite(tmp_path, f"asgd, {held(go, free=30)}", seeds=SEEDS, updates=UPDATES)
    node = cluster.add_node(num_cpus=1)
    on_ray = ("run", path.name, "--engine", "ray", "--address", cluster.address, "--no-report")
    command = (*on_ray, "--store", str(store.folder))

    first = start(*command)
    said = finished(first, 20)
    cluster.remove_node(node, allow_graceful=False)
    said += finished(first, 45)
    first.kill()
    first.wait()
    go.touch()
    assert len(re.findall("worker died", said)) <= 1
    assert "raylet" not in said and "Traceback" not in said

    cluster.add_node(num_cpus=1)
    second = start(*command)
    output, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, output
    before = re.search(r": (\d+) done, (\d+) finished before", output)
    assert before and int(before[1]) + int(before[2]) == 2 * SEEDS + 3 and int(before[2]) >= 45 - 1

    here = computed(path)
    assert keys(runs(store)) == sorted(here) and len(here) == 2 * SEEDS
    assert tables(store) == here
    assert len(runs(store, kind="pooled")) == 3
    assert not list(store.outbox.glob("*/*"))


def done(process: subprocess.Popen[str]) -> str:
    """What a command said until its end, which is a good one."""
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and "Traceback" not in said, said
    return said


def test_trials_on_a_cluster_that_loses_a_node(tmp_path: Path, cluster: Cluster, start: Start) -> None:
    """The trials in progress there are simulated anew on the other; values are those of this machine."""
    path = write_campaign(tmp_path, f"{SLOW}, fedavg", updates=200)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    done(start("tune", path.name, "--workers", "2", "--store", str(here.folder)))
    found = (tmp_path / "tuned-small.yaml").read_bytes()

    node = cluster.add_node(num_cpus=1)
    on_ray = ("--engine", "ray", "--address", cluster.address, "--store", str(there.folder))
    driver = start("tune", path.name, *on_ray)
    finished(driver, 2)
    cluster.remove_node(node, allow_graceful=False)
    done(driver)
    assert trials(there) == trials(here) and len(trials(here)) == 24
    assert len(runs(there, "small.tuning", "trial")) == 12  # no other was begun
    assert (tmp_path / "tuned-small.yaml").read_bytes() == found


def test_claims_on_a_cluster_that_loses_a_worker(tmp_path: Path, cluster: Cluster, start: Start) -> None:
    """Its run goes on elsewhere; runs and numbers are those of this machine."""
    claims = write_claims(tmp_path)
    words = ("claims", "run", "--claims", str(claims), "--allow-code")
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    done(start(*words, "--workers", "2", "--store", str(here.folder)))
    numbers = take_numbers(claims)

    cluster.add_node(num_cpus=1)
    on_ray = ("--engine", "ray", "--address", cluster.address, "--store", str(there.folder))
    driver = start(*words, *on_ray)
    finished(driver, 1)
    victim, *_ = workers(driver.pid)
    os.kill(victim, signal.SIGKILL)
    done(driver)
    assert take_numbers(claims) == numbers and len(numbers) == 6
    name = "claims-toy-small"
    assert tables(there, name) == tables(here, name) and len(runs(there, name)) == 6
