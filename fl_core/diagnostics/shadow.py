"""A second simulation in lock step with a run: equal events, but other contents of updates.

The error terms, and the check that a strategy is as linear as it says, use it. A strategy whose steps are
linear in the updates makes the step that those other updates would have caused, whatever it caches, buffers
or weighs; how it works need not be known.

Fixed: the run itself, whose streams and state a shadow never touches.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fl_core.execution.execution import ComputeRequest
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import World
from fl_core.strategies.caches import Precision
from fl_core.strategies.strategy import Strategy

TABLE: Any = Precision  # the type of a field for the rounding of a table of updates


@dataclass(frozen=True, slots=True)
class Content:
    """The replaced content of an update."""

    start: Tensor  # [d]
    delta: Tensor  # [d]
    gradient: Tensor  # [d]


class Shadow:
    """A copy of a run's server with other updates; the model is reset to a given model after every event."""

    def __init__(self, real: Simulation, world: World | None = None) -> None:
        experiment = real.experiment.model_copy(update={"strategy": unrounded(real.strategy)})
        self.simulation = Simulation(experiment, world or real.world)
        self._events = self.simulation.events()

    def follow(self, event: Event, content: Content | None, model: Tensor) -> Tensor:
        """Return the step of the run's next event under another update; afterwards continue from `model`.

        Args:
            event: The run's event.
            content: What the event's update holds here; None if no update arrives.
            model: The version from which the shadow goes on [d].

        Returns:
            The step [d]; zero if the server makes none.

        Raises:
            RuntimeError: The event would be another: the choice of clients depends on the content of updates.
        """
        state, previous = self.simulation.state, self.simulation.state.model
        if self._next(content) != event:
            name = self.simulation.strategy.reference()
            raise RuntimeError(
                f"error terms cannot be measured for {name}: the clients that it sends to depend on "
                "the values of updates. Leave out diagnostics.errors"
            )
        step = state.model - previous
        state.versions[state.version] = model
        return step

    def _next(self, content: Content | None) -> Event | ComputeRequest | None:
        """Return the next event, with the content in place of a job's result; None at the end of the run.

        Without a content a job to compute is returned instead, which differs from every event.
        """
        for happened in self._events:
            if not isinstance(happened, ComputeRequest) or content is None:
                return happened
            job = happened.job
            job.start, job.delta, job.gradient = content.start, content.delta, content.gradient
        return None


def unrounded(strategy: Strategy) -> Strategy:
    """Return the strategy with tables of updates in full precision: rounding error counts as noise."""
    fields = type(strategy).model_fields
    tables = [name for name, field in fields.items() if field.annotation == TABLE]
    return strategy.model_copy(update=dict.fromkeys(tables, "full"))


class OneHot(World):
    """A world with two numbers for each client: a step on updates e_i gives the clients' weights.

    The first half [n] is for the weights of the updates' Δ in a step, the second for those of their mean
    gradients. Its own gradients are never used.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world.p, 2 * world.n)
        self.sizes = world.sizes
        self.to(world.initial().device)


def halves(model: Tensor) -> tuple[Tensor, Tensor]:
    """Return the halves [n] of a `OneHot` model: for the updates' Δ, and for the mean gradients."""
    n = len(model) // 2
    return model[:n], model[n:]
