"""An experiment: scenario × strategy × seed, validated; the unit that is run, tracked and resumed."""

from __future__ import annotations

from typing import Any, Self

from pydantic import NonNegativeInt, SerializeAsAny, model_validator

from fl_core.keys import key
from fl_core.parts import Frozen
from fl_core.scenario import Scenario
from fl_core.strategies.strategy import Strategy


class Experiment(Frozen):
    """One run."""

    scenario: Scenario
    strategy: SerializeAsAny[Strategy]
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        clients = self.scenario.problem.clients
        if reason := self.strategy.local.refuses(clients) or self.strategy.refuses(self.scenario):
            raise ValueError(reason)
        if self.scenario.timing.durations.together and not self._steps_once_an_iteration():
            law = self.scenario.timing.durations.reference()
            raise ValueError(
                f"durations '{law}' need a strategy with one step for several arrivals (`receive_together`), "
                f"which {self.strategy.reference()} does not have"
            )
        return self

    def _steps_once_an_iteration(self) -> bool:
        return type(self.strategy).receive_together is not Strategy.receive_together

    def description(self) -> dict[str, Any]:
        """The whole experiment as plain JSON data, defaults included."""
        return self.model_dump(mode="json")

    @property
    def key(self) -> str:
        """The run's identifier: a hash of its identity."""
        return key(self.identity())
