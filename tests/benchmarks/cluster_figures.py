"""What the driver of a cluster can feed: docs/reliability.md has the figures.

    python tests/benchmarks/cluster_figures.py feed [--nodes 200] [--tracking-uri URI]
    python tests/benchmarks/cluster_figures.py scale

`feed` simulates nodes of 16 cores that answer at once: what is handed out and taken in, with MLflow out of
reach, and what reaches MLflow. `scale` has jobs that sleep computed by one and two nodes of a real cluster.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from recorded import write_suite
from toy import Count

from benchmarks.engine import Worlds
from benchmarks.mlflow_store import database
from benchmarks.mlflow_store.outbox import CHECKSUMS, RESULT, Outbox
from benchmarks.mlflow_store.provenance import provenance
from benchmarks.mlflow_store.run_result import texts_of
from benchmarks.mlflow_store.store import Store
from benchmarks.pool.job import Died, Message
from benchmarks.pool.pool import Pool, WorkerHandle
from benchmarks.runs.messages import Advanced, Finished
from benchmarks.runs.progress import Progress
from benchmarks.runs.run_jobs import Recording, RunJob
from benchmarks.runs.session import Session
from benchmarks.suite.suite import PlannedRun, load
from fl_core.recorded_names import Tag
from fl_core.recording import recorder

CORES = 16  # of a node
RECORDED = 100  # runs in MLflow; they take longer
NOWHERE = "http://127.0.0.1:9"  # nothing listens there

Answers = Mapping[str, tuple[Finished, dict[str, bytes]]]  # by key


class AtOnce(WorkerHandle[RunJob]):
    """A worker whose every job is computed already."""

    def begin(self, job: RunJob) -> None:
        super().begin(job)
        job.files()  # as for a real one

    def cancel(self, key: str) -> None:
        pass


class SimulatedPool(Pool[RunJob, AtOnce]):
    """Answers every job at the next call: with a message about its progress, its files and its end."""

    def __init__(self, size: int, answers: Answers) -> None:
        super().__init__()
        self._size, self.answers = size, answers

    @property
    def size(self) -> int:
        return self._size

    def start(self) -> AtOnce:
        return AtOnce()

    def lost(self, deaths: int, last: Died) -> str:
        raise NotImplementedError

    def messages(self, seconds: float) -> list[tuple[RunJob, Message]]:
        self.assign()
        found: list[tuple[RunJob, Message]] = []
        for worker in self.workers:
            for job in list(worker.jobs.values()):
                finished, files = self.answers[job.key]
                found += self.accept(worker, job.key, Advanced(0.5))
                job.put_files(files)
                found += self.accept(worker, job.key, finished)
        return found

    def stop(self) -> None:
        self.workers.clear()


class SimulatedNodes:
    """The engine with that pool."""

    def __init__(self, nodes: int, answers: Answers) -> None:
        self.nodes, self.answers = nodes, answers

    def warm_up(self, module: str) -> None:
        pass

    def pool(self, jobs: int, log: Path, worlds: Worlds) -> Any:
        return SimulatedPool(self.nodes * CORES, self.answers)


class Clock(Progress):
    """Times the computing alone, without what MLflow takes before and after it."""

    seconds = 0.0

    def __enter__(self) -> Self:
        self.seconds = -time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic()


def answered(session: Session, folder: Path) -> Answers:
    """The records of all runs: one that is computed, under the key of each."""
    outbox = Outbox(folder)
    first, *_ = simulated = [task for task in session.tasks if isinstance(task, PlannedRun)]
    record = recorder.run(first.experiment)
    recording = Recording(outbox, first, provenance())
    recording.stamp(len(record.curve))
    result = recording.simulated(record, {"execution": "one by one", "data": {}})
    files = outbox.files(first.suite, first.key)
    del files[f"{first.key}/{CHECKSUMS}"]
    found = {}
    for task in simulated:
        own = replace(result, tags=result.tags | texts_of({**task.tags(), Tag.KEY: task.key}))
        mine = {name.replace(first.key, task.key): content for name, content in files.items()}
        mine[f"{task.key}/{RESULT}"] = json.dumps(asdict(own)).encode()
        found[task.key] = Finished(own), mine
    return found


def feed(nodes: int, runs: int, tracking_uri: str | None) -> None:
    """Runs a second that are handed out and taken in, and that are recorded."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        suite = load(str(write_suite(folder, "asgd, fedbuff", seeds=runs // 2, updates=200, name="feeding")))
        away = Session(suite, Store(folder / "away", NOWHERE), baselines=False)
        engine = SimulatedNodes(nodes, answered(away, folder / "answers"))
        clock = Clock()
        away.run(engine, lambda _: clock)
        assert away.pending_records == runs
        taken_in = f"{runs / clock.seconds:.0f} runs a second handed out and taken in"
        say(f"{nodes} nodes of {CORES} cores, {runs} runs: {taken_in}")
        few = load(str(write_suite(folder, seeds=RECORDED // 2, updates=200, name="feeding")))
        there = Session(few, Store(folder / "there", tracking_uri), baselines=False)
        if tracking_uri is None:
            database.create(there.store.tracking_uri)
        began = time.monotonic()
        there.run(engine, lambda _: Progress())
        assert not there.pending_records, there.pending_reason
        say(f"{RECORDED / (time.monotonic() - began):.1f} runs a second recorded in MLflow")


def scale() -> None:
    """The same jobs on one node and on two."""
    import ray
    from ray.cluster_utils import Cluster

    from benchmarks.pool.ray_pool import RayPool, connect

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    connect(cluster.address)
    took = {}
    for most in (2, 4):
        with RayPool[Count](most) as pool:
            for number in range(most):  # until its workers have started
                pool.submit(Count(f"first {number}", numbers=1, pause=10))
            while pool.busy:
                pool.messages(1.0)
            began = time.monotonic()
            for number in range(80):
                pool.submit(Count(f"job {number}", numbers=1, pause=1))
            while pool.busy:
                pool.messages(1.0)
            took[most] = time.monotonic() - began
    say(f"80 jobs of 1 s: {took[2]:.1f} s on one node of 2 cores, {took[4]:.1f} s on two")
    say(f"ratio {took[2] / took[4]:.2f}; {80 * 1 / (4 * took[4]):.0%} of the workers' time is spent on jobs")
    ray.shutdown()
    cluster.shutdown()


def say(line: str) -> None:
    """A line for the terminal."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["feed", "scale"])
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3200)
    parser.add_argument("--tracking-uri")
    asked = parser.parse_args()
    if asked.what == "feed":
        feed(asked.nodes, asked.runs, asked.tracking_uri)
    else:
        scale()


if __name__ == "__main__":
    main()
