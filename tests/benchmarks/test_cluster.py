"""A suite on a Ray cluster of two nodes: a node lost, the driver killed, and the numbers of one machine."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from driver import PATIENCE, finished
from recorded import computed, keys, runs, tables, write_suite

from benchmarks.tracking.store import Store

pytest.importorskip("ray", reason="Ray is not installed")

from ray.cluster_utils import Cluster

SEEDS, UPDATES = 50, 60

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
    path = write_suite(tmp_path, "asgd, fedbuff", seeds=SEEDS, updates=UPDATES)
    node = cluster.add_node(num_cpus=1)
    on_ray = ("run", path.name, "--engine", "ray", "--address", cluster.address, "--no-report")
    command = (*on_ray, "--store", str(store.folder))

    first = start(*command)
    said = finished(first, 20)
    cluster.remove_node(node, allow_graceful=False)
    said += finished(first, 45)
    first.kill()
    first.wait()
    assert len(re.findall("its worker was lost", said)) <= 1
    assert "raylet" not in said and "Traceback" not in said

    cluster.add_node(num_cpus=1)
    second = start(*command)
    output, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, output
    before = re.search(r": (\d+) done, (\d+) finished before", output)
    assert before and int(before[1]) + int(before[2]) == 3 * SEEDS and int(before[2]) >= 45 - 1

    here = computed(path)
    assert keys(runs(store)) == sorted(here) and len(here) == 2 * SEEDS
    assert tables(store) == here
    assert len(runs(store, kind="pooled")) == SEEDS
    assert not list(store.outbox.glob("*/*"))
