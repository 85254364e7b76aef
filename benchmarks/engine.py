"""Which engine computes the jobs: the one place that knows their names. Each opens a pool."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import device
from benchmarks.errors import UserError
from benchmarks.pool.dispatch import Pool
from benchmarks.tracking.provenance import version, versions

if TYPE_CHECKING:  # it imports torch, which takes a second: an engine can start meanwhile
    from fl_core.problems.problem import Problem

NAMES = ("local", "ray")

Worlds = Mapping["Problem", int]  # the problems of a suite, with a seed of each


class Engine(ABC):
    """What computes jobs."""

    def warm_up(self, module: str) -> None:  # noqa: B027 - workers may be started where jobs are
        """Begin to start workers while the caller does other things; `module` defines the jobs."""

    @abstractmethod
    def pool(self, jobs: int, log: Path, worlds: Worlds) -> Pool[Any, Any]:
        """A pool for so many jobs."""


@dataclass(frozen=True, slots=True)
class Local(Engine):
    """Worker processes on this machine."""

    workers: int
    parents: bool = False  # whether they may start processes themselves

    def warm_up(self, module: str) -> None:
        """Start the process that workers are forked from."""
        from benchmarks.pool.fork_server import warm_up

        warm_up(module)

    def pool(self, jobs: int, log: Path, worlds: Worlds) -> Pool[Any, Any]:
        """A process for each job at most."""
        from benchmarks.pool.fork_server import prepare_for_networks
        from benchmarks.pool.local import LocalPool
        from fl_core.problems.supervised import Supervised

        if any(isinstance(problem, Supervised) for problem in worlds):
            prepare_for_networks()
        return LocalPool(min(self.workers, jobs), log, parents=self.parents)


@dataclass(frozen=True, slots=True)
class Ray(Engine):
    """The nodes of a Ray cluster that this process has joined."""

    workers: int | None  # None: as many as there are cores, or GPUs

    def pool(self, jobs: int, log: Path, worlds: Worlds) -> Pool[Any, Any]:
        """Workers with the settings of this process, on nodes that have the same libraries and the data."""
        from benchmarks.pool.ray_pool import RayPool

        return RayPool(
            min(self.workers or jobs, jobs),
            resource="CPU" if device.chosen().type == "cpu" else "GPU",
            environment={name: value for name, value in os.environ.items() if name.startswith("ASYNCFL_")},
            prepare=partial(must_be_fit, libraries(), worlds),
        )


def engine(name: str, address: str | None, workers: int | None) -> Engine:
    """The engine of that name; UserError if it is not installed, or its cluster cannot be reached."""
    if name == "local":
        if address:
            raise UserError(f"--address {address}: is for --engine ray")
        return Local(workers or device.processes())
    if find_spec("ray") is None:
        raise UserError("--engine ray: needs the package ray: pip install ray")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "^")  # Ray prints its nodes' logs to the terminal
    from benchmarks.pool.ray_pool import connect

    connect(address)
    return Ray(workers)


def libraries() -> dict[str, str]:
    """Versions of all that numbers depend on."""
    return {"asyncfl-bench": version("asyncfl-bench"), **versions()}


def must_be_fit(expected: Mapping[str, str], worlds: Worlds) -> None:
    """Raise unless this machine computes the same numbers as the driver, and has the data or gets them."""
    here = libraries()
    if differ := [name for name in expected if here.get(name) != expected[name]]:
        differences = ", ".join(f"{name} {here.get(name)}, not {expected[name]}" for name in differ)
        raise UserError(f"has other versions than the driver: {differences}")
    for problem, seed in worlds.items():
        problem.check(seed)
