"""The strategy interface: when does the server step, what does it add, and whom does it send to?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import SerializeAsAny, model_validator

from fl_core.local.work import SGD, LocalWork
from fl_core.parts import Count, Part, Rate
from fl_core.server.jobs import Send, Update

if TYPE_CHECKING:
    from fl_core.scenario import Scenario
    from fl_core.server.server import Server


@dataclass(frozen=True, slots=True)
class Range:
    """Where good values of a hyper-parameter are looked for: low to high, both included."""

    low: float
    high: float
    log: bool = True  # evenly on a logarithmic scale


Candidates = Range | tuple[float | str, ...]  # a range, or the values to try


class Strategy(Part):
    """Frozen hyper-parameters and a few short methods; all mutable state is the server's."""

    homes: ClassVar[tuple[str, ...]] = (
        "fl_core.strategies.every_arrival",
        "fl_core.strategies.buffered",
        "fl_core.strategies.tables",
        "fl_core.strategies.rounds",
    )
    title: ClassVar[str]  # as its paper spells it
    follows: ClassVar[Literal["delta", "gradient"]] = "delta"  # which part of an update makes its step
    # What is tuned unless a suite says otherwise, by field.
    tunable: ClassVar[Mapping[str, Candidates]] = {"local_lr": Range(1e-3, 1), "server_lr": Range(0.1, 10)}

    local_lr: Rate = 0.1  # η_l
    server_lr: Rate = 1.0  # η_g
    concurrency: Count | None = None  # jobs kept in flight; None: whoever is due
    local: SerializeAsAny[LocalWork] = SGD()

    @model_validator(mode="after")
    def _receives(self) -> Self:
        if type(self).receive is Strategy.receive:
            raise ValueError(
                f"{type(self).__name__} has no receive: write `def receive(self, server, update)`, which "
                "keeps the update and calls server.step(...) when it is time to"
            )
        return self

    def label(self) -> str:
        """The title, and where its own hyper-parameters differ from the paper's defaults."""
        own = type(self).model_fields.keys() - Strategy.model_fields.keys() | {"concurrency"}
        fields = {key: field for key, field in type(self).model_fields.items() if key in own}
        differ = [key for key, field in fields.items() if getattr(self, key) != field.get_default()]
        title = getattr(self, "title", type(self).__name__)
        return f"{title} ({', '.join(f'{key} {getattr(self, key)}' for key in differ)})" if differ else title

    def refuses(self, scenario: Scenario) -> str | None:
        """One sentence why this strategy and this scenario do not go together, or None."""
        return None

    def expected(self) -> Self | str:
        """The strategy whose step on expected updates is this one's expected step, or why there is none.

        That is itself where steps are linear in the updates: a weighted sum of them, and of the model that
        each started from. Whom it sends to must not depend on what the updates hold, either.
        """
        return self

    def surrogate(self, server: Server) -> Sequence[float]:
        """How often each client takes part, up to a common factor [n].

        That is its importance in the problem that is minimised where all updates weigh the same (Fraboni et
        al., JMLR 2023, eq. 6): 1/τ_i, unless the scheme says otherwise.
        """
        return [float(1 / time) for time in server.mean_time]

    def at_clients(self) -> tuple[str, ...]:
        """Names in `server.memory` of what the clients keep in a deployment."""
        return ()

    def times(self) -> tuple[Fraction, ...]:
        """Lengths of virtual time that the clock must hit exactly (FedFix's Δt)."""
        return ()

    @property
    def first_pass(self) -> bool:
        """Whether all clients are sent the first model, and nothing else is sent before the first step."""
        return False

    def stalled_by(self, server: Server, gone: Collection[int]) -> Collection[int]:
        """Which of these clients, from whom no update will come any more, rule out any further step."""
        return ()

    def begin(self, server: Server) -> None:
        """Allocate `server.memory`, before the first job is sent."""

    def receive(self, server: Server, update: Update) -> None:
        """An update arrived: keep it, and step when it is time to."""
        raise NotImplementedError  # a strategy without it is refused when it is described

    def tick(self, server: Server) -> None:
        """The alarm set by `server.wake(at)` rang."""

    def next(self, server: Server) -> Iterable[int | Send]:
        """Who gets the current model now."""
        if self.concurrency is None:
            return server.due
        return server.draw(self.concurrency - server.in_flight)
