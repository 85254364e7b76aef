"""Cost of an event with few and with many clients, by strategy: the schedule alone, 100 jobs in flight.

Run as `python tests/speed/strategy_growth.py [STRATEGY …]`; processor time. Strategies that take no
concurrency have all clients at work.
"""

import gc
import sys
from itertools import islice
from time import process_time
from typing import Any

from workloads import endless

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.quadratic import Quadratic
from fl_core.strategies.strategy import Strategy

FEW, MANY, EVENTS = 1_000, 100_000, 2_000


def described(name: str) -> dict[str, Any]:
    """A strategy with 100 jobs in flight, or rounds of 10 clients, where it has such a field."""
    if name in ("fedavg", "fedstale"):
        return {"name": name, "sampling": {"name": "uniform", "sample": 10}}
    takes = Strategy.members()[name].model_fields["concurrency"].annotation is not type(None)
    return {"name": name, "concurrency": 100} if takes else {"name": name}


def microseconds(name: str, clients: int) -> float:
    """Processor time of an event after the first one."""
    experiment = endless(Quadratic(centres=((0.0,),) * clients), described(name))
    events = simulate(Simulation(experiment), ScheduleOnly())
    next(events)
    gc.collect()
    gc.freeze()  # what was built at the start is not looked through again
    began = process_time()
    for _ in islice(events, EVENTS):
        pass
    seconds = process_time() - began
    gc.unfreeze()
    return seconds / EVENTS * 1e6


if __name__ == "__main__":
    sys.stdout.write(f"{'µs an event':22}{FEW:>9,}{MANY:>9,}  ratio\n")
    for strategy in sys.argv[1:] or Strategy.members():
        few, many = microseconds(strategy, FEW), microseconds(strategy, MANY)
        sys.stdout.write(f"{strategy:22}{few:9.0f}{many:9.0f}{many / few:7.2f}\n")
        sys.stdout.flush()
