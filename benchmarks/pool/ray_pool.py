"""A pool on a Ray cluster: on each node as many workers as cores (or GPUs), wherever the driver is.

Nothing but Ray connects driver and nodes. What a job leaves on a node's disk comes back through messages, so
that the driver remains the only writer; a node that is lost costs what its jobs did since their last
heartbeat. Nodes that join later get workers, too.
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
from benchmarks.pool.dispatch import Pool, WorkerHandle
from benchmarks.pool.fork_server import THREADS
from benchmarks.pool.job import DEATHS, Died, J, Message
from benchmarks.pool.ray_worker import HEARTBEAT, RayWorker, WorkerReport
from fl_core.import_guard import SOURCES, own_packages

PATIENCE = 30.0  # seconds that workers have to save their jobs and send them when all is stopped
LOOK_EVERY = 2.0  # seconds between two looks at the nodes of the cluster
REPORT_EVERY = 0.5  # seconds in which a worker gathers messages …
POLLS = 200.0  # … and more where there are many: so many polls a second at most
REACHABLE = 10.0  # seconds within which a head node answers

NOWHERE = "start one with `ray start --head`, or name another with --address"


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
            raise UserError(f"--engine ray: this machine belongs to no Ray cluster: {NOWHERE}") from None
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"--address {cluster}: {reason or type(error).__name__}") from None


def _must_answer(address: str) -> None:
    """Raise UserError unless a server listens at the address; Ray alone would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and host and port.isdigit() and int(port) < 65536):
        raise UserError(f"--address {address}: must be HOST:PORT, as `ray start --head` prints it")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACHABLE).close()
    except OSError as error:
        raise UserError(
            f"--address {address}: no Ray cluster answers ({error.strerror or error}): {NOWHERE}"
        ) from None


class WorkerOnNode(WorkerHandle[J]):
    """Handle of a Ray worker on the driver's side."""

    def __init__(self, actor: Any, node: str, prepare: Callable[[], None] | None) -> None:
        super().__init__()
        self.actor, self.node = actor, node
        self.ready = False
        self.pending = actor.unfit.remote(prepare)  # the answer that is awaited

    def begin(self, job: J) -> None:
        """Send a job to the worker, with the driver's files of the job."""
        super().begin(job)
        self.actor.begin.remote(job, job.files())

    def cancel(self, key: str) -> None:
        """Ask the worker to end a job."""
        self.actor.cancel.remote(key)


class RayPool(Pool[J, WorkerOnNode[J]]):
    """Pool of at most `most` workers on the nodes of the joined Ray cluster."""

    def __init__(
        self,
        most: int,
        *,
        resource: str = "CPU",
        environment: Mapping[str, str] | None = None,
        prepare: Callable[[], None] | None = None,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        """Store the options of workers, and find the nodes.

        A worker needs one `resource`, CPU or GPU; `environment` yields to that of a node.

        `prepare` is called once on each node, before any job: it may fetch data. A node where it fails is
        left out.
        """
        super().__init__()
        self.most, self.resource, self.prepare = most, resource, prepare
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        variables = {**dict.fromkeys(THREADS, "1"), "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        self._options: dict[str, Any] = {
            "num_cpus": int(resource == "CPU"),
            "num_gpus": int(resource == "GPU"),
            "max_concurrency": 8,  # it answers while it computes
            "runtime_env": {"env_vars": variables},
        }
        self._arguments = (dict(environment or {}), heartbeat, own_packages(), Path.cwd())
        self._nodes: dict[str, int] = {}  # alive: id → workers that it may have
        self._names: dict[str, str] = {}
        self._prepared: set[str] = set()
        self._failed: Counter[str] = Counter()  # id → workers that did not start
        self._unfit: dict[str, str] = {}  # id → why
        self._next_look = 0.0
        self._here = ray.get_runtime_context().get_node_id()
        self._look()

    @property
    def size(self) -> int:
        """Maximum number of workers on all nodes; a single worker on each node not yet prepared."""
        return min(self.most, sum(map(self._room, self._nodes)))

    def _room(self, node: str) -> int:
        return self._nodes[node] if node in self._prepared else min(1, self._nodes[node])

    def start(self) -> WorkerOnNode[J]:
        """Start a worker on the node with the most free places for workers."""
        taken = Counter(worker.node for worker in self.workers)
        node = max(self._nodes, key=lambda node: self._room(node) - taken[node])
        affinity = NodeAffinitySchedulingStrategy(node, soft=False)
        make = ray.remote(RayWorker).options(**self._options, scheduling_strategy=affinity)
        actor = make.remote(*self._arguments)
        return WorkerOnNode(actor, node, None if node in self._prepared else self.prepare)

    def lost(self, deaths: int, last: Died) -> str:
        """Return how the workers died, and where to read more."""
        return f"its worker died {deaths} times ({last.how}); see the logs of Ray on that node"

    def messages(self, seconds: float) -> list[tuple[J, Message]]:
        """Return the messages reported by workers since the last call."""
        self._look()
        self.assign()
        pending = {worker.pending: worker for worker in self.workers}
        if not pending:
            time.sleep(min(seconds, LOOK_EVERY))
            return []
        answered, _ = ray.wait(list(pending), timeout=seconds)
        if answered:
            answered, _ = ray.wait(list(pending), num_returns=len(pending), timeout=0)
        return [message for answer in answered for message in self._received(pending[answer])]

    def _look(self) -> None:
        """Update the list of live nodes, at most every `LOOK_EVERY` seconds.

        Raises:
            UserError: Ray has ended on this machine, or no node is usable.
        """
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_EVERY
        alive = [node for node in _nodes() if node["Alive"]]
        if self._here not in {node["NodeID"] for node in alive}:
            raise UserError(
                "--engine ray: Ray has ended on this machine. Start it again and rerun the same command"
            )
        self._names |= {node["NodeID"]: node["NodeManagerHostname"] for node in alive}
        capacities = {node["NodeID"]: int(node["Resources"].get(self.resource, 0)) for node in alive}
        self._nodes = {node: count for node, count in capacities.items() if count and node not in self._unfit}
        if not self._nodes and self._unfit:
            raise UserError(*(f"node {self._names[node]}: {reason}" for node, reason in self._unfit.items()))
        if not any(capacities.values()):
            raise UserError(
                f"--engine ray: no node of the cluster has a {self.resource}. Add one, or change --device"
            )

    def _received(self, worker: WorkerOnNode[J]) -> Iterator[tuple[J, Message]]:
        try:
            answer = ray.get(worker.pending)
        except RayError as error:
            ray.kill(worker.actor)  # it may only be out of reach, and must not go on
            yield from self.died(worker, Died(f"on {self._names[worker.node]}"))
            if not worker.ready:
                self._failed[worker.node] += 1
                if self._failed[worker.node] == DEATHS:
                    self._leave_out(worker.node, f"no worker starts: {str(error).strip().splitlines()[-1]}")
            return
        if worker.ready:
            for report in answer:
                yield from self._taken_in(worker, report)
        elif answer:
            ray.kill(worker.actor)
            self.workers.remove(worker)
            self._leave_out(worker.node, answer)
            return
        else:
            worker.ready = True
            self._prepared.add(worker.node)
        worker.pending = worker.actor.reports.remote(max(REPORT_EVERY, len(self.workers) / POLLS))

    def _taken_in(self, worker: WorkerOnNode[J], report: WorkerReport | None) -> Iterator[tuple[J, Message]]:
        if report is None:
            return
        if report.files:
            worker.jobs[report.key].put_files(report.files)
        if report.message is not None:
            yield from self.accept(worker, report.key, report.message)

    def _leave_out(self, node: str, reason: str) -> None:
        warn(f"node {self._names[node]} is left out: {reason}")
        self._unfit[node] = reason
        self._next_look = 0.0

    def stop(self) -> None:
        """Save all jobs and receive the files; workers are killed after a time limit."""
        self.waiting.clear()
        busy = [worker for worker in self.workers if worker.jobs]
        for worker in busy:
            worker.actor.stop.remote()
        end = time.monotonic() + PATIENCE
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
        for _ in (message for report in answer for message in self._taken_in(worker, report)):
            pass
        worker.pending = worker.actor.reports.remote(REPORT_EVERY)
        return None in answer


def _nodes() -> list[dict[str, Any]]:
    """Return all nodes in the history of the cluster, as described by Ray."""
    return ray.nodes()
