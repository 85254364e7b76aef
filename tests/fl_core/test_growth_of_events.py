"""The cost of an event does not grow with the number of clients, counted in operations of Python."""

from __future__ import annotations

import sys
from itertools import islice
from types import FrameType
from typing import Any

import numpy as np
import pytest
from worlds import play, quick_for_one_of_each_kind, scenario

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.quadratic import Quadratic
from fl_core.strategies.every_arrival.asgd import ASGD
from fl_core.strategies.strategy import Strategy

AT_WORK = 10


def of_few_clients(name: str) -> dict[str, Any]:
    """A strategy by which few clients work at a time, as far as it lets one say so."""
    if name in ("fedavg", "fedstale"):
        return {"name": name, "sampling": {"name": "fastest", "sample": AT_WORK}}
    takes = Strategy.members()[name].model_fields["concurrency"].annotation is not type(None)
    return {"name": name, "concurrency": AT_WORK} if takes else {"name": name}


def operations(
    strategy: dict[str, Any], clients: int, events: int = 150, availability: Any = "always"
) -> int:
    """Bytecode operations of the events after the first one."""
    problem = Quadratic(centres=((0.0,),) * clients)
    timing = {"durations": "exponential", "availability": availability}
    where = {"problem": problem, "timing": timing, "budget": {"updates": 10**6}}
    experiment = Experiment.model_validate({"scenario": where, "strategy": strategy})
    stream = simulate(Simulation(experiment), ScheduleOnly())
    next(stream)
    executed = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal executed
        executed += event == "opcode"
        frame.f_trace_opcodes = "fl_core" in frame.f_code.co_filename
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        for _ in islice(stream, events):
            pass
    finally:
        sys.settrace(before)
    return executed


@pytest.mark.parametrize("name", quick_for_one_of_each_kind(Strategy.members()))
def test_an_event_costs_no_more_with_more_clients(name: str) -> None:
    """30 times the clients, at most 1.5 times the operations."""
    strategy = of_few_clients(name)
    assert operations(strategy, 3000) <= 1.5 * operations(strategy, 100)


@pytest.mark.parametrize("name", ["ace", "asgd", "mifa", "ringleader"])
def test_an_event_costs_no_more_with_more_lost_clients(name: str) -> None:
    """Half of all clients leave for good while they compute their first update, which still arrives."""
    lost = {"name": "dropouts", "share": 0.5, "at": "1/1000000"}
    few, many = (operations({"name": name}, clients, availability=lost) for clients in (100, 2000))
    assert many <= 1.5 * few


def test_sums_that_are_kept_draw_the_same_clients() -> None:
    """A tuple of probabilities as an array, while clients leave and come back."""
    drawn: list[list[list[int]]] = []
    for kind in (tuple, np.array):
        simulation, _ = play(ASGD(), scenario([1] * 40, updates=1))
        server, roster = simulation.server, simulation.state.roster
        random = np.random.default_rng(2)
        drawn.append([])
        for turn in range(6):
            p = kind((random.random(40) * (random.random(40) < 0.7)).tolist())
            for client in range(turn, 40, 7):
                if roster.present[client]:
                    roster.leave(client)
                else:
                    roster.come_back(client, free=True, version=0)
                drawn[-1] += [server.draw(k, p, busy=True, replace=True) for k in (1, 1, 5)]
    assert drawn[0] == drawn[1]
    assert len({client for clients in drawn[0] for client in clients}) > 20
