"""The strategy interface: when and by how much the server steps, and the clients of the next jobs.

A suite chooses a strategy by name; the simulation (`fl_core.loop`) calls its methods at every event of a run.

Fixed: names of methods, class variables and fields, which users' strategies override
(docs/reference/strategy.md); names and defaults of fields (keys of all runs). Their ranges are the
default search space of `asyncfl tune`.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import SerializeAsAny, ValidationError, model_validator

from fl_core.compression import Coding
from fl_core.local_work import SGD, LocalWork
from fl_core.parts import Count, FieldError, Part, Rate
from fl_core.scenario import Scenario
from fl_core.server.jobs import Send, Update
from fl_core.server.optimizers import ServerOptimizer, ServerSGD
from fl_core.server.server import Server
from fl_core.strategies.participation import Participation, by_replacement
from fl_core.text import counted
from fl_core.tuning_ranges import LOCAL_RATES, SERVER_RATES

LINKS = ("uplink", "downlink")  # the fields with a coding of messages, one for each direction


class Strategy(Part):
    """A strategy: frozen hyper-parameters and a few short methods; all mutable state is the server's."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.strategies",)
    title: ClassVar[str]  # as its paper spells it
    routed_by: ClassVar[str | None] = None  # name in `server.memory` of the routing probabilities p [n]
    collects: ClassVar[bool] = False  # whether it asks clients at work for their update: `Server.collect`
    reads_losses: ClassVar[bool] = False  # whether updates carry what training reports: `Update.reported`
    pulls: ClassVar[bool] = False  # whether idle clients work at once, and not after the next step only
    # What of an update a client sends; None: the strategy itself codes what both sides send
    sends: ClassVar[Literal["delta", "gradient"] | None] = "delta"

    local_lr: Annotated[Rate, LOCAL_RATES] = 0.1  # η_l, the clients' learning rate
    server_lr: Annotated[Rate, SERVER_RATES] = 1.0  # η_g, the server's learning rate
    server: SerializeAsAny[ServerOptimizer] = ServerSGD()  # what the server makes of the step's direction
    concurrency: Count | None = None  # jobs kept in flight; None: all clients that are due
    local: SerializeAsAny[LocalWork] = SGD()  # what a client does with a model
    uplink: SerializeAsAny[Coding] | None = None  # how updates are coded; None: sent as they are
    downlink: SerializeAsAny[Coding] | None = None  # how models are coded; None: sent as they are

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} sets self.{name}: a strategy never changes; what changes in a run "
            "belongs into server.memory"
        )

    @model_validator(mode="before")
    @classmethod
    def _rate_of_its_optimizer(cls, written: Any) -> Any:
        """Take the server optimiser's usual rate where none is written: 1 is for plain steps."""
        if isinstance(written, dict) and "server" in written and "server_lr" not in written:
            with suppress(ValidationError):  # then the field says what is wrong with it
                server = ServerOptimizer.model_validate(written["server"])
                usual = {} if server.usual is None else {"server_lr": server.usual}
                return {**written, "server": server, **usual}
        return written

    @model_validator(mode="after")
    def _takes_its_optimizer(self) -> Self:
        """Refuse a server optimiser if the strategy's step is no direction for an optimiser."""
        if self.server != ServerSGD() and (reason := self.refuses_optimizer):
            raise FieldError(
                "server", f"{self.reference()} cannot be combined with {self.server.reference()}: {reason}"
            )
        return self

    @model_validator(mode="after")
    def _receives(self) -> Self:
        """Refuse a class without a `receive` of its own."""
        if type(self).receive is Strategy.receive:
            raise ValueError(
                f"{type(self).__name__} has no receive: write `def receive(self, server, update)`, which "
                "keeps the update and calls server.step(...) when it is time to"
            )
        return self

    @model_validator(mode="after")
    def _can_be_coded(self) -> Self:
        """Refuse a coding that does not suit the messages of the strategy or of its local work."""
        if self.sends is None:
            for name in LINKS:
                if (link := getattr(self, name)) and link.feedback != "none":
                    raise FieldError(name, f"{self.reference()} codes its models itself: leave out feedback")
        elif self.downlink and (reason := self.downlink.refuses_models()):
            raise FieldError("downlink", reason)
        reads = type(self.local).receive is not LocalWork.receive
        if self.uplink and self.sends == "gradient" and reads:
            raise FieldError(
                "uplink",
                f"{self.reference()} sends gradients, but {self.local.reference()} needs deltas: "
                "leave out uplink, or choose other local work",
            )
        return self

    def label(self) -> str:
        """Return the title, and the hyper-parameters different from the paper's defaults."""
        specific = type(self).model_fields.keys() - Strategy.model_fields.keys() | {
            "concurrency",
            "server",
            *LINKS,
        }
        settings = ", ".join(
            f"{key} {v.label() if isinstance(v, Part) else counted(v) if isinstance(v, tuple) else v}"
            for key, v in self.changed().items()
            if key in specific
        )
        title = getattr(self, "title", type(self).__name__)
        return f"{title} ({settings})" if settings else title

    def refuses(self, scenario: Scenario) -> str | None:
        """Return the reason why the strategy is incompatible with a scenario, or None."""
        return None

    def remarks(self) -> Sequence[str]:
        """Return advice for users before a run, as sentences."""
        return ()

    @property
    def refuses_optimizer(self) -> str | None:
        """Return the reason why a server optimiser cannot take the step, in a few words; None if possible.

        Where the answer is the same for all values of the fields, it is a class variable.
        """
        return None

    @property
    def refuses_arrangement(self) -> str | None:
        """Return the reason why no arrangement is allowed, in a few words; None if any is.

        Where the answer is the same for all values of the fields, it is a class variable.
        """
        return None

    @property
    def linear(self) -> Literal[True] | str:
        """True if the step on expected updates is the expected step, or a sentence with the reason.

        Steps have to be linear in the updates: a weighted sum of them, and of the model that each started
        from. The choice of clients must not depend on the updates either. Rounding of cached updates does not
        count. Where the answer is the same for all values of the fields, it is a class variable.
        """
        return True

    @property
    def kept_by_clients(self) -> tuple[str, ...]:
        """The names in `server.memory` of tensors kept by clients in a deployment."""
        return ()

    def participation(self, scenario: Scenario) -> Participation | None:
        """Return the law of each client's share of all arrivals in the long run, or None if none is known.

        The share is a client's importance in the problem that is minimised where all updates weigh the same
        (Fraboni et al., JMLR 2023, eq. 6). The default holds for strategies that send to a client whenever
        its update arrives, or, with a `concurrency`, to one that is drawn. It is asked where nothing but the
        strategy decides who works: `Experiment.participation`.
        """
        return by_replacement(self.concurrency, scenario)

    def times(self) -> tuple[Fraction, ...]:
        """Return lengths of virtual time for the clock to hit exactly (FedFix's Δt)."""
        return ()

    @property
    def first_pass(self) -> bool:
        """True if all clients get the first model, and nothing more is sent before the first step."""
        return False

    def stalled_by(self, server: Server, gone: Collection[int]) -> Collection[int]:
        """Return lost clients whose absence rules out any further step: any ends the run as stalled.

        The simulation asks at every event once a client is lost. What can change only with a step or another
        lost client is looked up for `server.newly_gone` alone.

        Args:
            server: The run at present.
            gone: Clients that left permanently and will send no more updates.
        """
        return ()

    def begin(self, server: Server) -> None:
        """Allocate `server.memory`; called before the first job is sent."""

    def receive(self, server: Server, update: Update) -> None:
        """Take an arrived update, and call `server.step` at the right time.

        Args:
            server: The run: model, clients, jobs in flight, `memory`, actions.
            update: Δ [d], mean gradient [d], client, staleness.
        """
        raise NotImplementedError  # a strategy without it is refused when it is described

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        """Take all updates of a server iteration, and step at most once.

        Called in place of `receive` where time is counted in iterations (`Durations.together`).
        """
        raise NotImplementedError  # a strategy without it refuses such a scenario

    def lost(self, server: Server, client: int) -> None:
        """Note a client's refused update; step if the step waited only for the update.

        Defined by strategies that wait for a number of jobs, not of updates. The client is due.
        """

    def tick(self, server: Server) -> None:
        """Act at the time set by `server.wake(at)`; `server.ringing` is the alarm's number."""

    def next(self, server: Server) -> Iterable[int | Send]:
        """Return the next clients to work, each with the newest model or with a `Send`.

        By default with a `concurrency` as many as keep that number at work, drawn at random. Else all that
        are idle, if the strategy `pulls`, or those that are due, whose update arrived before the latest step:
        each waits for the step after its update.
        """
        if self.concurrency is None:
            return list(server.idle) if self.pulls else server.due
        return server.draw(self.concurrency - server.in_flight)
