"""Asynchronous federated learning, compared reproducibly: the public names of asyncfl-bench.

import asyncfl

runs = asyncfl.run("quickstart")
runs.groupby(["scenario", "strategy"])["test/accuracy"].mean()

Each name is imported when it is first used. Modules of the packages beside this one may change at any time.

Fixed: every name in `__all__`, with its methods, fields and parameters.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.commands.functions import (
        Simulated,
        clients,
        compare,
        curves,
        figures,
        report,
        results,
        run,
        simulate,
        tune,
    )
    from benchmarks.errors import UserError
    from fl_core.arrangements import Arrangement
    from fl_core.compression import Coding
    from fl_core.experiment import Experiment
    from fl_core.local_work import LocalWork
    from fl_core.metrics import Metric
    from fl_core.parts import Count, Length, Rate, Share, Tune, TuneAmong, find
    from fl_core.problems.models.model import Model
    from fl_core.problems.partitions import Partition
    from fl_core.problems.problem import Evaluation, Problem, World
    from fl_core.scenario import Budget, Scenario, Timing
    from fl_core.server.jobs import Send, Update
    from fl_core.server.optimizers import ServerOptimizer
    from fl_core.server.server import Server
    from fl_core.strategies.sampling import Sampling
    from fl_core.strategies.strategy import Strategy
    from fl_core.testing import conformance
    from fl_core.timing.availability import Availability
    from fl_core.timing.durations import Durations
    from fl_core.timing.network import PerClient

__all__ = [  # noqa: RUF022 - by their use
    # what the commands do
    "run",
    "results",
    "curves",
    "clients",
    "figures",
    "compare",
    "tune",
    "report",
    "UserError",
    # a single run
    "simulate",
    "Simulated",
    "Experiment",
    "Scenario",
    "Timing",
    "Budget",
    # parts of your own
    "Strategy",
    "Sampling",
    "LocalWork",
    "ServerOptimizer",
    "Coding",
    "Problem",
    "Partition",
    "Model",
    "Durations",
    "Availability",
    "PerClient",
    "Arrangement",
    "conformance",
    "find",
    # what parts are given and return
    "Server",
    "Update",
    "Send",
    "World",
    "Evaluation",
    "Metric",
    # fields of parts
    "Count",
    "Share",
    "Rate",
    "Length",
    "Tune",
    "TuneAmong",
]

PACKAGES = ("fl_core", "benchmarks", "tuning", "reports")
HOMES = {
    "benchmarks.errors": "UserError",
    "benchmarks.commands.functions": (
        "Simulated clients compare curves figures report results run simulate tune"
    ),
    "fl_core.arrangements": "Arrangement",
    "fl_core.compression": "Coding",
    "fl_core.experiment": "Experiment",
    "fl_core.local_work": "LocalWork",
    "fl_core.metrics": "Metric",
    "fl_core.parts": "Count Length Rate Share Tune TuneAmong find",
    "fl_core.problems.models.model": "Model",
    "fl_core.problems.partitions": "Partition",
    "fl_core.problems.problem": "Evaluation Problem World",
    "fl_core.scenario": "Budget Scenario Timing",
    "fl_core.server.jobs": "Send Update",
    "fl_core.server.optimizers": "ServerOptimizer",
    "fl_core.server.server": "Server",
    "fl_core.strategies.sampling": "Sampling",
    "fl_core.strategies.strategy": "Strategy",
    "fl_core.testing": "conformance",
    "fl_core.timing.availability": "Availability",
    "fl_core.timing.network": "PerClient",
    "fl_core.timing.durations": "Durations",
}


def _load_own_packages(folder: Path) -> None:
    """Load the four packages from `folder`, not from a user's folder of equal name.

    Raises:
        ImportError: Such a folder was imported before, or the installation is incomplete.
    """
    for name in PACKAGES:
        spec = PathFinder.find_spec(name, [str(folder)])
        if spec is None or spec.origin is None or spec.loader is None:
            raise ImportError(f"asyncfl is not installed completely: {folder} has no package '{name}'")
        if name not in sys.modules:
            module = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(module)
            continue
        loaded = sys.modules[name]
        file = getattr(loaded, "__file__", None) or next(iter(loaded.__path__))
        if os.path.realpath(file) != os.path.realpath(spec.origin):
            raise ImportError(
                f"asyncfl needs its own package '{name}', but {file} is imported already under that name: "
                "import asyncfl first, or rename that folder"
            )


_load_own_packages(Path(__file__).parents[1])

if not TYPE_CHECKING:  # type checkers see the imports above

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from benchmarks.mlflow_store.provenance import version

            return version("asyncfl-bench")
        home = next((home for home, names in HOMES.items() if name in names.split()), None)
        if home is None:
            raise AttributeError(f"module 'asyncfl' has no attribute '{name}'")
        value = globals()[name] = pkgutil.resolve_name(f"{home}.{name}")
        return value

    def __dir__() -> list[str]:
        return __all__
