"""Cost of an event with few and with many clients, by strategy: the schedule alone, 100 jobs in flight.

Run as `python tests/speed/strategy_growth.py [STRATEGY …]`; processor time, few and many in turns. Strategies
that take no concurrency have all clients at work.
"""

import gc
import sys
from collections.abc import Callable
from itertools import islice
from statistics import median
from time import process_time
from typing import Any

from workloads import endless

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.quadratic import Quadratic
from fl_core.strategies.strategy import Strategy

FEW, MANY, EVENTS, TURNS = 1_000, 100_000, 140, 7  # so few events that both are in the first pass


def described(name: str) -> dict[str, Any]:
    """A strategy with 100 jobs in flight, or rounds of 10 clients, where it has such a field."""
    if name in ("fedavg", "fedstale"):
        return {"name": name, "sampling": {"name": "uniform", "sample": 10}}
    takes = Strategy.members()[name].model_fields["concurrency"].annotation is not type(None)
    return {"name": name, "concurrency": 100} if takes else {"name": name}


def turns(name: str, clients: int) -> Callable[[], float]:
    """A function that returns the microseconds of processor time of the next events, each."""
    experiment = endless(Quadratic(centres=((0.0,),) * clients), described(name))
    events = simulate(Simulation(experiment), ScheduleOnly())
    next(events)

    def microseconds() -> float:
        began = process_time()
        for _ in islice(events, EVENTS):
            pass
        return (process_time() - began) / EVENTS * 1e6

    return microseconds


if __name__ == "__main__":
    sys.stdout.write(f"{'µs an event':22}{FEW:>9,}{MANY:>9,}  ratio\n")
    for strategy in sys.argv[1:] or Strategy.members():
        arms = turns(strategy, FEW), turns(strategy, MANY)
        gc.collect()
        gc.freeze()  # what was built at the start is not looked through again
        measured = [[compute() for compute in arms] for _ in range(TURNS)]
        gc.unfreeze()
        few, many = (median(column) for column in zip(*measured, strict=True))
        ratio = median(after / before for before, after in measured)
        sys.stdout.write(f"{strategy:22}{few:9.0f}{many:9.0f}{ratio:7.2f}\n")
        sys.stdout.flush()
