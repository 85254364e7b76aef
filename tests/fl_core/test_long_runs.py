"""A run's memory does not grow with its events, but for the record of its arrivals."""

from __future__ import annotations

import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

EARLY, LATE = 100_000, 1_000_000  # events
SLACK = 2_000_000  # bytes: two an event, less than any object that could be left behind

SCENARIO = {
    "problem": {"name": "quadratic", "centres": [[float(i)] for i in range(100)]},
    "timing": {"durations": "exponential", "availability": {"name": "spells", "mean_on": 50, "mean_off": 10}},
    "budget": {"updates": LATE},
}


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def measured(strategy: str) -> list[tuple[int, int]]:
    """Bytes in memory after so many events, and how many of them hold arrivals; in a process of its own."""
    import torch

    from fl_core.execution.schedule_only import ScheduleOnly
    from fl_core.experiment import Experiment
    from fl_core.loop.simulation import Simulation, simulate
    from fl_core.recording.recorder import Recorder

    torch.set_num_threads(1)
    recorder = Recorder(Simulation(Experiment.model_validate({"scenario": SCENARIO, "strategy": strategy})))
    recorder.start()
    found = []
    for number, event in enumerate(simulate(recorder.simulation, ScheduleOnly()), 1):
        recorder.see(event)
        if number in (EARLY, LATE):
            found.append((resident(), sum(map(sys.getsizeof, recorder.record.arrivals.values()))))
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_after_a_million_events() -> None:
    """Clients come and go, jobs are drawn, buffers are filled: nothing of that adds up."""
    with get_context("spawn").Pool(1) as pool:
        (early, arrived), (late, arrivals) = pool.apply(measured, ("fedbuff",))
    assert arrivals > 25 * (LATE - EARLY)  # 32 bytes each; the other events are clients that return
    assert late - early - (arrivals - arrived) < SLACK
