"""A pool on a Ray cluster: on each node as many workers as cores (or GPUs), wherever the driver is.

`engine.Ray` opens it for `--engine ray`; its workers are `pool/ray_worker.py`. Nothing but Ray connects
driver and nodes: files that a job leaves on a node's disk come back through messages, and the driver remains
the only writer. If a node is lost, its jobs lose the work since their last heartbeat. Nodes that join later
get workers, too.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from benchmarks.errors import UserError, warn
from benchmarks.pool.fork_server import THREADS
from benchmarks.pool.job import MAX_DEATHS, Died, J, Message
from benchmarks.pool.pool import Pool, WorkerHandle
from benchmarks.pool.ray_worker import HEARTBEAT_SECONDS, RayWorker, WorkerReport
from fl_core.import_guard import SOURCES, own_packages

STOP_SECONDS = 30.0  # that workers have to save their jobs and send the files after Ctrl-C
NODE_POLL_SECONDS = 2.0  # between two updates of the list of nodes
REPORT_SECONDS = 0.5  # in which a worker gathers messages, longer with more than 100 workers, to keep …
MAX_POLLS_PER_SECOND = 200.0  # … of all workers together
CONNECT_SECONDS = 10.0  # within which a head node must answer

HOW_TO_JOIN = "start one with `ray start --head`, or name another with --address"


def connect(address: str | None) -> None:
    """Join a Ray cluster as the driver: the local machine's, or the cluster at an address.

    Raises:
        UserError: No cluster answers.
    """
    if ray.is_initialized():
        return
    cluster = address or os.environ.get("RAY_ADDRESS") or "auto"
    if cluster != "auto":
        _must_answer(cluster)
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        with chdir(SOURCES):  # Ray puts the working directory first on the import path of all workers
            ray.init(cluster, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RayError, RuntimeError, ValueError, ImportError) as error:
        if cluster == "auto":
            raise UserError(f"--engine ray: this machine belongs to no Ray cluster: {HOW_TO_JOIN}") from None
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"--address {cluster}: {reason or type(error).__name__}") from None


def _must_answer(address: str) -> None:
    """Raise UserError unless a server listens at the address; Ray alone would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and host and port.isdigit() and int(port) < 65536):
        raise UserError(f"--address {address}: must be HOST:PORT, as `ray start --head` prints it")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise UserError(
            f"--address {address}: no Ray cluster answers ({error.strerror or error}): {HOW_TO_JOIN}"
        ) from None


class WorkerOnNode(WorkerHandle[J]):
    """Handle of a Ray worker on the driver's side."""

    def __init__(self, actor: Any, node: str, prepare: Callable[[], None] | None) -> None:
        super().__init__()
        self.actor, self.node = actor, node
        self.ready = False
        self.pending = actor.prepare_node.remote(prepare)  # Ray's future of the next answer; later, reports

    def begin(self, job: J) -> None:
        """Send a job to the worker, with the driver's files of the job."""
        super().begin(job)
        self.actor.begin.remote(job, job.files())

    def cancel(self, key: str) -> None:
        """Ask the worker to end a job."""
        self.actor.cancel.remote(key)


class RayPool(Pool[J, WorkerOnNode[J]]):
    """Pool of at most `max_workers` workers on the nodes of the joined Ray cluster."""

    def __init__(
        self,
        max_workers: int,
        *,
        resource: str = "CPU",
        environment: Mapping[str, str] | None = None,
        prepare: Callable[[], None] | None = None,
        heartbeat: float = HEARTBEAT_SECONDS,
    ) -> None:
        """Store the options of workers, and find the nodes.

        Args:
            max_workers: On all nodes together.
            resource: Of which a worker takes one: CPU or GPU.
            environment: Variables for workers; a node's own value of a variable comes first.
            prepare: Called once on each node before any job, e.g. to fetch data; if it fails, no worker runs
                on the node.
            heartbeat: Seconds between two copies of a job's checkpoint.
        """
        super().__init__()
        self.max_workers, self.resource, self.prepare = max_workers, resource, prepare
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        variables = {**dict.fromkeys(THREADS, "1"), "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        self._options: dict[str, Any] = {
            "num_cpus": int(resource == "CPU"),
            "num_gpus": int(resource == "GPU"),
            "max_concurrency": 8,  # threads for calls: a worker answers while it computes
            "runtime_env": {"env_vars": variables},
        }
        self._arguments = (dict(environment or {}), heartbeat, own_packages(), Path.cwd())
        self._nodes: dict[str, int] = {}  # Ray's id of each live node → its cores or GPUs
        self._names: dict[str, str] = {}  # id → host name
        self._prepared: set[str] = set()  # ids
        self._failed: Counter[str] = Counter()  # id → workers that did not start
        self._excluded: dict[str, str] = {}  # id → why the node is not used
        self._next_update = 0.0
        self._driver_node = ray.get_runtime_context().get_node_id()
        self._update_nodes()

    @property
    def size(self) -> int:
        """Maximum number of workers on all nodes; a single worker on each node not yet prepared."""
        return min(self.max_workers, sum(map(self._max_workers_on, self._nodes)))

    def _max_workers_on(self, node: str) -> int:
        return self._nodes[node] if node in self._prepared else min(1, self._nodes[node])

    def start(self) -> WorkerOnNode[J]:
        """Start a worker on the node with the most free places for workers."""
        taken = Counter(worker.node for worker in self.workers)
        node = max(self._nodes, key=lambda node: self._max_workers_on(node) - taken[node])
        affinity = NodeAffinitySchedulingStrategy(node, soft=False)
        make = ray.remote(RayWorker).options(**self._options, scheduling_strategy=affinity)
        actor = make.remote(*self._arguments)
        return WorkerOnNode(actor, node, None if node in self._prepared else self.prepare)

    def lost(self, deaths: int, last: Died) -> str:
        """Return how the workers died, and where to read more."""
        return f"its worker died {deaths} times ({last.how}); see the logs of Ray on that node"

    def messages(self, seconds: float) -> list[tuple[J, Message]]:
        """Return the messages reported by workers since the last call."""
        self._update_nodes()
        self.assign()
        pending = {worker.pending: worker for worker in self.workers}
        if not pending:
            time.sleep(min(seconds, NODE_POLL_SECONDS))
            return []
        answered, _ = ray.wait(list(pending), timeout=seconds)
        if answered:
            answered, _ = ray.wait(list(pending), num_returns=len(pending), timeout=0)
        return [message for answer in answered for message in self._received(pending[answer])]

    def _update_nodes(self) -> None:
        """Update the list of live nodes, at most every `NODE_POLL_SECONDS` seconds.

        Raises:
            UserError: Ray has ended on this machine, or no node is usable.
        """
        if time.monotonic() < self._next_update:
            return
        self._next_update = time.monotonic() + NODE_POLL_SECONDS
        alive = [node for node in _nodes() if node["Alive"]]
        if self._driver_node not in {node["NodeID"] for node in alive}:
            raise UserError(
                "--engine ray: Ray has ended on this machine. Start it again and rerun the same command"
            )
        self._names |= {node["NodeID"]: node["NodeManagerHostname"] for node in alive}
        capacities = {node["NodeID"]: int(node["Resources"].get(self.resource, 0)) for node in alive}
        self._nodes = {
            node: count for node, count in capacities.items() if count and node not in self._excluded
        }
        if not self._nodes and self._excluded:
            raise UserError(
                *(f"node {self._names[node]}: {reason}" for node, reason in self._excluded.items())
            )
        if not any(capacities.values()):
            raise UserError(
                f"--engine ray: no node of the cluster has a {self.resource}. Add one, or change --device"
            )

    def _received(self, worker: WorkerOnNode[J]) -> Iterator[tuple[J, Message]]:
        """Yield the messages in a worker's answer, and ask the worker for the next answer."""
        try:
            answer = ray.get(worker.pending)
        except RayError as error:
            ray.kill(worker.actor)  # perhaps only out of reach: it must not compute the retried jobs, too
            yield from self.died(worker, Died(f"on {self._names[worker.node]}"))
            if not worker.ready:
                self._failed[worker.node] += 1
                if self._failed[worker.node] == MAX_DEATHS:
                    self._exclude(worker.node, f"no worker starts: {str(error).strip().splitlines()[-1]}")
            return
        if worker.ready:
            for report in answer:
                yield from self._accept_report(worker, report)
        elif answer:
            ray.kill(worker.actor)
            self.workers.remove(worker)
            self._exclude(worker.node, answer)
            return
        else:
            worker.ready = True
            self._prepared.add(worker.node)
        worker.pending = worker.actor.reports.remote(
            max(REPORT_SECONDS, len(self.workers) / MAX_POLLS_PER_SECOND)
        )

    def _accept_report(
        self, worker: WorkerOnNode[J], report: WorkerReport | None
    ) -> Iterator[tuple[J, Message]]:
        """Store the files of a report on the driver's disk, and yield the message."""
        if report is None:
            return
        if report.files:
            worker.jobs[report.key].put_files(report.files)
        if report.message is not None:
            yield from self.accept(worker, report.key, report.message)

    def _exclude(self, node: str, reason: str) -> None:
        warn(f"node {self._names[node]} is left out: {reason}")
        self._excluded[node] = reason
        self._next_update = 0.0

    def stop(self) -> None:
        """Save all jobs and receive the files; workers are killed after a time limit."""
        self.waiting.clear()
        busy = [worker for worker in self.workers if worker.jobs]
        for worker in busy:
            worker.actor.stop.remote()
        end = time.monotonic() + STOP_SECONDS
        try:
            while busy and (seconds := end - time.monotonic()) > 0:
                answered, _ = ray.wait([worker.pending for worker in busy], timeout=seconds)
                busy = [worker for worker in busy if not (worker.pending in answered and self._ended(worker))]
        finally:
            for worker in self.workers:
                ray.kill(worker.actor)
            self.workers.clear()

    def _ended(self, worker: WorkerOnNode[J]) -> bool:
        """Process the last reports of a stopped worker; return whether the worker has ended."""
        try:
            answer = ray.get(worker.pending)
        except RayError:
            return True
        for _ in (message for report in answer for message in self._accept_report(worker, report)):
            pass
        worker.pending = worker.actor.reports.remote(REPORT_SECONDS)
        return None in answer


def _nodes() -> list[dict[str, Any]]:
    """Return all nodes in the history of the cluster, as described by Ray."""
    return ray.nodes()
