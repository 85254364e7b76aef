"""Where the time of a run goes: local work, of which the gradients, and the simulator around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

from benchmarks.speed.arms import Case, Counted, going_on
from fl_core.execution.execution import Execution, Need
from fl_core.loop.simulation import Simulation, simulate


class Timed:
    """A function that adds up the processor time of its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.seconds = 0.0

    def __call__(self, *arguments: Any) -> Any:
        """The same, timed."""
        began = process_time()
        result = self.function(*arguments)
        self.seconds += process_time() - began
        return result


class Watched:
    """An execution whose calls are timed."""

    def __init__(self, execution: Execution) -> None:
        self.label = execution.label
        self.timed = Timed(execution.fill)

    def fill(self, needs: Sequence[Need]) -> int:
        """The same, timed."""
        computed: int = self.timed(needs)
        return computed


def shares(case: Case, execution: Execution) -> dict[str, float]:
    """Shares of one simulation's time: outside local work, and outside the gradients themselves.

    Local work is gradients, mini-batches, stacking and optimiser steps.
    """
    simulation = Simulation(case.experiment())
    world, watched = simulation.world, Watched(execution)
    gradients = [Timed(world.gradient), Timed(world.gradients)]
    vars(world).update(gradient=gradients[0], gradients=gradients[1])
    counted = Counted(watched)
    go_on = going_on(simulate(simulation, counted), counted, case.updates)
    timed = (watched.timed, *gradients)
    before, began = [one.seconds for one in timed], process_time()
    go_on()
    whole = process_time() - began
    spent = [one.seconds - earlier for one, earlier in zip(timed, before, strict=True)]
    return {"outside_local_work": 1 - spent[0] / whole, "outside_gradients": 1 - sum(spent[1:]) / whole}
