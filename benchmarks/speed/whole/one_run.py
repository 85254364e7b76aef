"""The seconds of one run of a suite, with whatever version of this package is found first: a script.

python one_run.py SUITE STRATEGY
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from time import process_time
from typing import Any

import torch

# Where things are, in the order of versions: an installed later one must not lend its modules to an earlier.
LOAD = ("benchmarks.suite:load", "benchmarks.suite.suite:load")
RUN = ("fl_core.measure:run", "fl_core.recording.recorder:run")
EXECUTIONS = ("benchmarks.computing:EXECUTIONS", "benchmarks.runs.jobs:EXECUTIONS")


def main(suite: str, strategy: str) -> None:
    """Write the processor time of the suite's first run of a strategy, from its first event to its record."""
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)]).step()  # imports what only the first step does
    load, simulate, executions = map(found, (LOAD, RUN, EXECUTIONS))
    planned = next(run for run in load(suite).runs() if run.experiment.strategy.name == strategy)
    experiment = planned.experiment
    world = experiment.scenario.problem.world(experiment.seed)
    known = inspect.signature(simulate).parameters
    evaluate = (
        {"evaluate": planned.evaluate} if "evaluate" in known else {}
    )  # earlier versions judge all data
    began = process_time()
    record = simulate(experiment, world, executions[planned.execution](), **evaluate)
    seconds = process_time() - began
    result = {"updates": len(record.arrivals["time"]), "rows": len(record.curve), "seconds": seconds}
    sys.stdout.write(f"{json.dumps(result)}\n")


def found(places: tuple[str, ...]) -> Any:
    """What is at the first `module:name` that there is."""
    for place in places:
        module, name = place.split(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {', '.join(places)}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
