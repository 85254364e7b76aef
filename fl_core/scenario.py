"""A scenario: a problem, a timing, possibly an arrangement, and a budget; the same for all strategies."""

from fractions import Fraction
from typing import Literal, Self

from pydantic import SerializeAsAny, model_validator

from fl_core.arrangements.arrangement import Arrangement
from fl_core.parts import Count, FieldError, Frozen, Length
from fl_core.problems.problem import Problem
from fl_core.text import many
from fl_core.timing import traces
from fl_core.timing.availability import Always, Availability
from fl_core.timing.durations import Durations, means
from fl_core.timing.network.network import Network
from fl_core.timing.network.per_client import Column, TraceClients
from fl_core.timing.presence import Trace as PresenceTrace
from fl_core.timing.speeds import Fixed
from fl_core.timing.speeds import Trace as DurationTrace


class Timing(Frozen):
    """How long jobs take, when clients are present, and their links; the same for all strategies."""

    durations: SerializeAsAny[Durations] = Fixed()  # the law of how long jobs take
    availability: SerializeAsAny[Availability] = Always()  # the law of when clients are present
    network: Network | None = None  # the links over which models and updates travel; none: in no time
    unit: Length = Fraction(1)  # seconds in a unit of virtual time, for what is in Mbit/s or seconds

    @model_validator(mode="after")
    def _files_have_the_same_clients(self) -> Self:
        """Join columns of links by the ids of the trace; refuse two traces that name clients differently."""
        traced = [
            TraceClients(law.path, law.digest, law.clients == "random")
            for law in (self.durations, self.availability)
            if isinstance(law, DurationTrace | PresenceTrace)
        ]
        if len(traced) > 1:
            first, second = (traces.ids(trace.path, trace.digest) for trace in traced)
            named = not all(map(str.isdecimal, [*first, *second]))
            if named and (first != second or traced[0].drawn != traced[1].drawn):
                raise FieldError(
                    "availability",
                    f"{traced[1].path} and {traced[0].path} name other clients, or the same in another order,"
                    " or only one of them is drawn from: give both the same ids in the same order",
                )
        links = self.network and (self.network.downlink, self.network.uplink, self.network.latency)
        for law in links or ():
            if traced and isinstance(law, Column):
                law.join(traced[0])
        return self

    def label(self) -> str:
        """Return a short name for tables and figures, such as "F80" or "two-speed 20 % × 10"."""
        available = "" if self.availability == Always() else self.availability.label()
        links = self.network.label() if self.network else ""
        return ", ".join(filter(None, [self.durations.label(), available, links]))


class Budget(Frozen):
    """The end of a run: after `iterations`, `updates` or `bytes`, or before an event later than `time`.

    Whichever comes first; `updates` or `time` is required, since a strategy may never step. With a `target`
    a run ends sooner: a tenth of its time later than the first evaluation that is as good.
    """

    iterations: Count | None = None  # server iterations
    updates: Count | None = None  # client updates received
    time: Length | None = None  # virtual time
    bytes: Count | None = None  # sent in both directions
    target: float | None = None  # of the metric that ranks

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.updates is None and self.time is None:
            raise ValueError("a budget needs 'updates' or 'time': without them a run might never end")
        return self

    def label(self) -> str:
        """Return the end of a run in words: "3,000 client updates or 40 units of virtual time"."""
        ends = [
            many(self.iterations, "server iteration") if self.iterations else "",
            many(self.updates, "client update") if self.updates else "",
            f"{float(self.time):g} units of virtual time" if self.time else "",
            many(self.bytes, "byte") if self.bytes else "",
        ]
        sooner = "" if self.target is None else f", or soon after {self.target:g} is reached"
        return " or ".join(filter(None, ends)) + sooner


class Scenario(Frozen):
    """The setting in which strategies are compared."""

    problem: SerializeAsAny[Problem]  # what the clients learn
    timing: Timing = Timing()  # how long jobs take, and when clients are present
    # Which client works on which version; None: the strategy decides
    arrangement: SerializeAsAny[Arrangement] | None = None
    budget: Budget  # where a run ends
    evaluations: Count = 20  # E: marks at k/E of every budget
    # An update that is not finite ends the run as diverged, or is refused: the strategy does not see it
    non_finite: Literal["end", "refuse"] = "end"

    @property
    def target(self) -> float | None:
        """The target of runs: the budget's, at which they end, or else the problem's."""
        return self.problem.target if self.budget.target is None else self.budget.target

    @model_validator(mode="after")
    def _times_fit_the_clients(self) -> Self:
        timing, n = self.timing, self.problem.clients
        means(timing.durations, n, seed=0)  # ValueError if they do not
        if self.arrangement is not None:
            self.arrangement.check(n)
        if timing.network is not None:
            timing.network.check(n)
            if timing.durations.together:
                raise FieldError("timing", "time counted in server iterations has no seconds for a network")
        return self
