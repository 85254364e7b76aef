"""Cost of an event among many clients, by what takes time or draws power beside their computation.

Run as `python tests/speed/network_cost.py [CLIENTS]`; process time, all clients busy, no gradients. All are
measured in one run, so that their ratios hold on a noisy machine.
"""

import sys
from copy import deepcopy
from fractions import Fraction
from itertools import islice
from time import process_time
from typing import Any

from workloads import endless

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.quadratic import Quadratic

ONE = 64e-6  # Mbit/s that carry a model of one number in a unit of virtual time
LAW = {"name": "lognormal", "median": 4 * ONE}
TIMINGS: dict[str, dict[str, Any]] = {
    "computation": {},
    "own links": {"network": {"downlink": LAW, "uplink": LAW}},
    "shared link": {"network": {"uplink": LAW, "shared": {"uplink": ONE}}},  # times the clients / 4
    "server": {"server": {"durations": {"name": "exponential"}}},  # mean: half a client's share
    "power": {"power": {"computation": 2, "idle": 1}},
}


def measured(clients: int, timing: dict[str, Any], events: int = 20_000) -> tuple[float, float]:
    """Return seconds to the first event, and microseconds of each of the following ones."""
    timing = deepcopy(timing)
    if shared := timing.get("network", {}).get("shared"):
        shared["uplink"] = ONE * clients / 4
    if server := timing.get("server"):
        server["durations"]["mean"] = Fraction(1, 2 * clients)
    data = endless(Quadratic(centres=((0.0,),) * clients), {"name": "fedbuff"}).model_dump()
    data["scenario"]["timing"].update(timing)
    began = process_time()
    stream = simulate(Simulation(Experiment.model_validate(data)), ScheduleOnly())
    next(stream)
    ready = process_time()
    sum(1 for _ in islice(stream, events))
    return ready - began, (process_time() - ready) / events * 1e6


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for name, timing in TIMINGS.items():
        start, event = measured(number, timing)
        sys.stdout.write(f"{name:12} start {start:6.1f} s, event {event:6.0f} µs\n")
