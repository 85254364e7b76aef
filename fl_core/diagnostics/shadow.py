"""A second simulation in lock step with a run: the same events, but its updates hold something else.

A strategy whose steps are linear in the updates answers with the step that those other updates would have
made, whatever it caches, buffers or weighs. Nobody has to know how it works.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fl_core.execution.execution import Need
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import World
from fl_core.strategies.strategy import Strategy
from fl_core.strategies.tables.caches import Precision

TABLE: Any = Precision  # the type of a field that says how a table of updates is rounded


@dataclass(frozen=True, slots=True)
class Content:
    """What an update holds instead."""

    start: Tensor  # [d]
    delta: Tensor  # [d]
    gradient: Tensor  # [d]


class Shadow:
    """The server of a run, fed with other updates; its model is set to a given one after every event."""

    def __init__(self, real: Simulation, world: World | None = None) -> None:
        experiment = real.experiment.model_copy(update={"strategy": unrounded(real.strategy)})
        self.simulation = Simulation(experiment, world or real.world)
        self._events = self.simulation.events()

    def follow(self, event: Event, content: Content | None, model: Tensor) -> Tensor:
        """The step [d] of the run's next event if its update had this content; then go on from `model`.

        Zero where the server makes none. RuntimeError if the event would be another: whom the strategy sends
        to depends on what the updates hold.
        """
        state, before = self.simulation.state, self.simulation.state.model
        if self._next(content) != event:
            name = self.simulation.strategy.reference()
            raise RuntimeError(f"{name} sends to other clients when updates hold something else")
        step = state.model - before
        state.versions[state.version] = model
        return step

    def _next(self, content: Content | None) -> Event | Need | None:
        for happened in self._events:
            if not isinstance(happened, Need) or content is None:
                return happened
            job = happened.job
            job.start, job.delta, job.gradient = content.start, content.delta, content.gradient
        return None


def unrounded(strategy: Strategy) -> Strategy:
    """The strategy with its tables of updates in full precision: what rounding does to them is noise."""
    fields = type(strategy).model_fields
    tables = [name for name, field in fields.items() if field.annotation == TABLE]
    return strategy.model_copy(update=dict.fromkeys(tables, "full"))


class OneHot(World):
    """A world whose model has two numbers for each client: a step on updates e_i is the clients' weights.

    The first half [n] is for what a step takes from the updates' Δ, the second for their mean gradients. Its
    own gradients are never asked for.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world.p, 2 * world.n)
        self.sizes = world.sizes
        self.to(world.initial().device)


def halves(model: Tensor) -> tuple[Tensor, Tensor]:
    """The two halves [n] of a model of the world of weights: of the updates' Δ, of their mean gradients."""
    n = len(model) // 2
    return model[:n], model[n:]
