"""A second simulation in lock step with a run: the same events, but its updates hold something else.

A strategy whose steps are linear in the updates answers with the step that those other updates would have
made, whatever it caches, buffers or weighs. Nobody has to know how it works.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fl_core.execution.one_by_one import Need
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import World
from fl_core.strategies.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Content:
    """What an update holds instead."""

    start: Tensor  # [d]
    delta: Tensor  # [d]
    gradient: Tensor  # [d]


class Shadow:
    """The server of a run, fed with other updates; its model is set to a given one after every event."""

    def __init__(self, real: Simulation, strategy: Strategy, world: World | None = None) -> None:
        experiment = real.experiment.model_copy(update={"strategy": strategy})
        self.simulation = Simulation(experiment, world or real.world)
        self._events = self.simulation.events()

    def follow(self, event: Event, content: Content | None, model: Tensor) -> Tensor:
        """The step [d] of the run's next event if its update had this content; then go on from `model`.

        Zero where the server makes none. RuntimeError if the event would be another: whom the strategy sends
        to depends on what the updates hold.
        """
        server, before = self.simulation.server, self.simulation.server.model
        if self._next(content) != event:
            name = self.simulation.strategy.reference()
            raise RuntimeError(f"{name} sends to other clients when updates hold something else")
        step = server.model - before
        server.versions[server.version] = model
        return step

    def _next(self, content: Content | None) -> Event | Need | None:
        for happened in self._events:
            if not isinstance(happened, Need) or content is None:
                return happened
            job = happened.job
            job.start, job.delta, job.gradient = content.start, content.delta, content.gradient
        return None


class OneHot(World):
    """A world whose model has one number for each client: with updates e_i a step is the clients' weights.

    Its gradients are never asked for.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world.p, world.n)
        self.sizes = world.sizes
        self.to(world.initial().device)
