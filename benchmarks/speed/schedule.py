"""Events per second of the schedule alone: no data, no gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.quadratic import Quadratic

STRATEGIES = ("asgd", "fedbuff")
LAWS = ("fixed", "exponential")
EVENTS = 20_000


def events(clients: int, strategy: str, law: str) -> Callable[[], int]:
    """A run of one-dimensional models with a tenth of the clients at work."""
    problem = Quadratic(centres=((0.0,),) * clients)
    experiment = Experiment.model_validate(
        {
            "scenario": {
                "problem": problem,
                "timing": {"durations": law},
                "budget": {"updates": 10**9},
            },
            "strategy": {"name": strategy, "concurrency": clients // 10},
        }
    )
    simulation = Simulation(experiment)
    going = simulate(simulation, ScheduleOnly())
    next(going)  # the first jobs are sent

    def go_on() -> int:
        return sum(1 for _ in islice(going, EVENTS))

    return go_on
