"""An experiment: scenario × strategy × seed, validated; the unit of running, tracking and resuming.

Suites are turned into experiments (`benchmarks/suite/`), and `Simulation` plays one. Finished runs are found
again by `Experiment.key`: a change of `identity` makes every stored run of the part count as missing.

Fixed: `identity`; `description`, which is recorded with every run and read again by `asyncfl replay`.
"""

from functools import lru_cache
from typing import Any, Self

from pydantic import NonNegativeInt, SerializeAsAny, model_validator

from fl_core.keys import key
from fl_core.metrics import SURROGATE
from fl_core.parts import Frozen
from fl_core.scenario import Scenario
from fl_core.strategies.participation import Participation
from fl_core.strategies.strategy import Strategy
from fl_core.timing.availability import Always


class Experiment(Frozen):
    """A scenario, a strategy and a seed: the input of a run."""

    scenario: Scenario
    strategy: SerializeAsAny[Strategy]
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        """Refuse strategies, problems, timings and arrangements that cannot be combined."""
        clients = self.scenario.problem.clients
        if reason := self._misfit():
            raise ValueError(reason)
        if reason := self.strategy.local.refuses(clients) or self.strategy.refuses(self.scenario):
            raise ValueError(reason)
        if self.scenario.arrangement is not None and (reason := self.strategy.refuses_arrangement):
            raise ValueError(
                f"{self.strategy.reference()} cannot follow an arrangement: {reason}. Leave out the "
                "arrangement"
            )
        steps_once = type(self.strategy).receive_together is not Strategy.receive_together
        if self.scenario.timing.durations.together and not steps_once:
            law = self.scenario.timing.durations.reference()
            raise ValueError(
                f"durations '{law}' need a strategy with one step for several arrivals (`receive_together`), "
                f"which {self.strategy.reference()} does not have: choose another law or strategy"
            )
        if reason := self.lacks(self.scenario.problem.metric):
            raise ValueError(reason)
        return self

    def _misfit(self) -> str | None:
        """Return the reason why problem and local work are incompatible, or None."""
        problem, local = self.scenario.problem, self.strategy.local
        if problem.local_work and local.reference() != problem.local_work:
            return (
                f"clients of problem '{problem.reference()}' train by their own code: local work must be "
                f"'{problem.local_work}', not '{local.reference()}'"
            )
        if local.whole and problem.local_work is None:
            return f"local work '{local.reference()}' does not go with problem '{problem.reference()}'"
        return None

    @property
    def participation(self) -> Participation | None:
        """The law of each client's share of all arrivals in the long run; None if no formula is known."""
        scenario, dynamic = self.scenario, self.strategy.local.dynamic
        as_the_strategy_sends = (
            scenario.arrangement is None
            and scenario.timing.availability == Always()
            and scenario.timing.network is None  # else transfers are a part of each job
            and (scenario.timing.server is None or self.strategy.routed_by is not None)  # else clients wait
            and scenario.non_finite == "end"  # else updates may be refused
            and not (scenario.timing.durations.per_step and dynamic)  # lengths are as their law says
        )
        return self.strategy.participation(scenario) if as_the_strategy_sends else None

    def lacks(self, metric: str) -> str | None:
        """Return the reason why a metric of the problem is not recorded, or None."""
        if metric not in SURROGATE or self.participation is not None:
            return None
        return f"no '{metric}' is recorded, since no formula says how often each client takes part"

    def description(self) -> dict[str, Any]:
        """Return the whole experiment as plain JSON data, defaults included."""
        return self.model_dump(mode="json")

    def identity(self) -> dict[str, Any]:
        """Return the fields with non-default values; identities of shared parts are cached."""
        seed = {"seed": self.seed} if self.seed else {}
        return {part: _identity(_Instance(getattr(self, part))) for part in ("scenario", "strategy")} | seed

    @property
    def key(self) -> str:
        """Return the run's identifier, a hash of the identity."""
        return key(self.identity())


class _Instance:
    """A frozen part as a cache key, compared by identity for speed."""

    __slots__ = ("part",)

    def __init__(self, part: Frozen) -> None:
        self.part = part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Instance) and self.part is other.part

    def __hash__(self) -> int:
        return id(self.part)


@lru_cache(maxsize=4096)
def _identity(instance: _Instance) -> dict[str, Any]:
    """Return the identity of a part; the seeds of a suite share scenario and strategy."""
    return instance.part.identity()
