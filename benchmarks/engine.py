"""Engines for computing jobs: local processes, or a Ray cluster. Each opens a pool (`benchmarks/pool/`).

Commands get one from `--engine` and `--workers`, and pass it to `Session.run` or `Driver.run`. No other
module distinguishes the engines.

Free: keys and results do not depend on the engine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import device
from benchmarks.errors import UserError
from benchmarks.mlflow_store.provenance import version, versions
from benchmarks.pool.pool import Pool

if TYPE_CHECKING:  # the import of torch takes a second, during which an engine can start
    from fl_core.problems.problem import Problem

Worlds = Mapping["Problem", int]  # each problem of a suite, with one of its seeds


@dataclass(frozen=True, slots=True)
class Local:
    """Worker processes on the local machine."""

    workers: int
    parents: bool = False  # whether workers may start processes: clients of runs in real time

    def warm_up(self, module: str) -> None:
        """Start the parent process of forked workers while the caller goes on; `module` defines the jobs."""
        from benchmarks.pool.fork_server import warm_up

        warm_up(module)

    def pool(self, jobs: int, log: Path, worlds: Worlds) -> Pool[Any, Any]:
        """Return a pool with a process for each job at most."""
        from benchmarks.pool.fork_server import prepare_for_networks
        from benchmarks.pool.local import LocalPool
        from fl_core.problems.supervised import Supervised

        if any(isinstance(problem, Supervised) for problem in worlds):
            prepare_for_networks()
        return LocalPool(min(self.workers, jobs), log, parents=self.parents)


@dataclass(frozen=True, slots=True)
class Ray:
    """Nodes of the Ray cluster joined by the current process."""

    workers: int | None  # None: as many as there are cores, or GPUs

    def warm_up(self, module: str) -> None:
        """Do nothing: workers are started on the nodes."""

    def pool(self, jobs: int, log: Path, worlds: Worlds) -> Pool[Any, Any]:
        """Return a pool on nodes with equal libraries and the data, with settings of the current process."""
        from benchmarks.pool.ray_pool import RayPool

        return RayPool(
            min(self.workers or jobs, jobs),
            resource="CPU" if device.chosen().type == "cpu" else "GPU",
            environment={name: value for name, value in os.environ.items() if name.startswith("ASYNCFL_")},
            prepare=partial(prepare_node, own_versions(), worlds),
        )


Engine = Local | Ray


def engine(name: str, address: str | None, workers: int | None) -> Engine:
    """Return the engine of a name; UserError if not installed, or if the cluster cannot be reached."""
    if name == "local":
        if address:
            raise UserError(f"--address {address}: needs --engine ray")
        return Local(workers or device.processes())
    if find_spec("ray") is None:
        raise UserError("--engine ray: needs the package ray: pip install ray")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "^")  # Ray prints its nodes' logs to the terminal
    from benchmarks.pool.ray_pool import connect

    connect(address)
    return Ray(workers)


def own_versions() -> dict[str, str]:
    """Return the versions of all software with influence on numbers."""
    return {"asyncfl-bench": version("asyncfl-bench"), **versions()}


def prepare_node(expected: Mapping[str, str], worlds: Worlds) -> None:
    """Check a node of a cluster and fetch the data; raise an error for other versions or missing data.

    Other versions of libraries could give other numbers.
    """
    installed = own_versions()
    if differ := [name for name in expected if installed.get(name) != expected[name]]:
        differences = ", ".join(f"{name} {installed.get(name)}, not {expected[name]}" for name in differ)
        raise UserError(
            f"has other versions of packages than the driver: {differences}. Install the driver's "
            "versions there"
        )
    for problem, seed in worlds.items():
        problem.check(seed)
