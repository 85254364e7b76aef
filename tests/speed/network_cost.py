"""Cost of an event among many clients: without a network, on links of their own, on a saturated shared link.

Run as `python tests/speed/network_cost.py [CLIENTS]`; process time, all clients busy, no gradients. The three
are measured in one run, so that their ratios hold on a noisy machine.
"""

import sys
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
NETWORKS: dict[str, dict[str, Any] | None] = {
    "no network": None,
    "own links": {"downlink": LAW, "uplink": LAW},
    "shared link": {"uplink": LAW, "shared": {"uplink": ONE}},  # times the clients / 4
}


def measured(clients: int, network: dict[str, Any] | None, events: int = 20_000) -> tuple[float, float]:
    """Return seconds to the first event, and microseconds of each of the following ones."""
    if network and "shared" in network:
        network = {**network, "shared": {"uplink": ONE * clients / 4}}
    data = endless(Quadratic(centres=((0.0,),) * clients), {"name": "fedbuff"}).model_dump()
    data["scenario"]["timing"]["network"] = network
    began = process_time()
    stream = simulate(Simulation(Experiment.model_validate(data)), ScheduleOnly())
    next(stream)
    ready = process_time()
    sum(1 for _ in islice(stream, events))
    return ready - began, (process_time() - ready) / events * 1e6


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for name, network in NETWORKS.items():
        start, event = measured(number, network)
        sys.stdout.write(f"{name:12} start {start:6.1f} s, event {event:6.0f} µs\n")
