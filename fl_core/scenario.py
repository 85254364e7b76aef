"""A scenario: a problem, a timing, possibly an arrangement, and a budget; shared by all strategies.

Suites (`benchmarks/suite/`) expand their `scenarios:` into these; with strategy and seed one is an
`Experiment`.

Fixed: names and defaults of fields (keys of runs, digests of tuned values, suites). Labels are in no key, but
recorded, and suites name scenarios by them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Literal, Self

from pydantic import SerializeAsAny, model_validator

from fl_core.arrangements import Arrangement
from fl_core.parts import Count, FieldError, Frozen, Length
from fl_core.problems.problem import Problem
from fl_core.text import many
from fl_core.timing import traces
from fl_core.timing.availability import Always, Availability, Diurnal, PresenceTrace
from fl_core.timing.durations import Durations, DurationTrace, Fixed, Lengths, means
from fl_core.timing.law_labels import plain
from fl_core.timing.network import ColumnLaw, Network, PerClient
from fl_core.timing.power import Power

HOUR_SECONDS = Fraction(3600)


class ServerTiming(Frozen):
    """A server that takes time for each update: they queue in order of arrival (docs/rules.md, rule 24)."""

    durations: SerializeAsAny[Durations]  # the law of how long the server takes for an update

    @model_validator(mode="after")
    def _serves_one_by_one(self) -> Self:
        """Refuse laws that are defined for clients only."""
        if self.durations.together or self.durations.per_step:
            law = self.durations.reference()
            raise FieldError(
                "durations",
                f"'{law}' {'with per_step ' if self.durations.per_step else ''}cannot be the law of a "
                "server: it counts the clients' iterations or steps. Choose another, such as fixed",
            )
        means(self.durations, 1, seed=0)  # ValueError for a law with a list of times
        return self

    def lengths(self, seed: int, exact_times: tuple[Fraction, ...] = ()) -> Lengths:
        """Return the lengths of services, on a clock of which all `exact_times` are whole ticks."""
        return Lengths(self.durations, 1, seed, exact_times, purpose="service")

    def label(self) -> str:
        """Return a short name for tables and figures: "server fixed × 0.1"."""
        return f"server {self.durations.label()}"


class Timing(Frozen):
    """Durations of jobs, presence of clients, links and server; shared by all strategies."""

    durations: SerializeAsAny[Durations] = Fixed()  # the law of how long jobs take
    availability: SerializeAsAny[Availability] = Always()  # the law of when clients are present
    network: Network | None = None  # the links over which models and updates travel; none: in no time
    server: ServerTiming | None = None  # how long the server takes for an update; none: no time
    power: Power | None = None  # what clients draw, for the energy of a run; none: not counted
    # Seconds in a unit of virtual time, for what is in Mbit/s, seconds or watts
    unit: Length = Fraction(1)

    @model_validator(mode="after")
    def _files_fit_each_other(self) -> Self:
        """Refuse files about the same clients that cannot be joined by the clients' ids."""
        traced = self._traces()
        self._must_have_days_of_its_unit()
        if len({law.clients for law in traced}) > 1:
            raise FieldError(
                "availability",
                f"{traced[1].path} and {traced[0].path} are joined by the ids of clients, but only "
                "one of them draws its clients at random: give both the same 'clients'",
            )
        for law in self._columns():
            if traced and law.client is None and not _numbered(traced[0]):
                raise FieldError(
                    "client",
                    f"is missing: name the column of {law.path} with the ids of clients, since the "
                    f"clients of {traced[0].path} have ids or are drawn at random",
                )
        return self

    def _must_have_days_of_its_unit(self) -> None:
        """Refuse a day of 24 units if the unit of the trace of durations is not an hour."""
        unit, law = self.durations.time_unit, self.availability
        seconds = traces.TIME_UNITS.get(unit, HOUR_SECONDS)
        if isinstance(law, Diurnal) and law.day == 24 and seconds != HOUR_SECONDS:
            day = plain(24 * HOUR_SECONDS / seconds)
            raise FieldError(
                "availability",
                f"a day would last 24 {unit}, the unit of {self.durations.label()}: give 'day: "
                f"{day}', and 'peak' and 'zones' in {unit}, too",
            )

    def ids(self, n: int, seed: int) -> list[str] | None:
        """Return the ids of the n clients of a run, for joining files.

        They are those of the trace of durations, or else of presence, or else of the first column of links
        that has ids. None if fewer than two files have ids: there is nothing to join.

        Raises:
            ValueError: The file that has them does not fit n clients.
        """
        return self.device_ids(n, seed) if len(self._laws_with_ids()) > 1 else None

    def device_ids(self, n: int, seed: int) -> list[str] | None:
        """Return the ids of the n clients of a run as named in a file; None if no file names clients.

        Raises:
            ValueError: The file does not fit n clients.
        """
        first = next(iter(self._laws_with_ids()), None)
        if first is None or isinstance(first, ColumnLaw):
            return first.ids(n) if first else None
        return traces.ids(first.path, first.digest, n, seed if first.clients == "random" else None)

    def check_ids(self, n: int) -> None:
        """Check every file for all clients, whatever the seed.

        Raises:
            ValueError: A file lacks one of them.
        """
        if (ids := self.ids(n, seed=0)) is None:
            return
        first, *rest = self._laws_with_ids()
        if not isinstance(first, ColumnLaw) and first.clients == "random":
            ids = traces.ids(first.path, first.digest)
        for law in rest:
            law_ids = set(law.ids() if isinstance(law, ColumnLaw) else traces.ids(law.path, law.digest))
            if missing := [client for client in ids if client not in law_ids]:
                raise ValueError(
                    f"{law.path} has no row for client '{missing[0]}' of {first.path}: add it, or leave the "
                    "client out of both files"
                )

    def _laws_with_ids(self) -> list[DurationTrace | PresenceTrace | ColumnLaw]:
        """Return the laws from files with ids of clients; the first decides which clients take part."""
        return [*self._traces(), *(law for law in self._columns() if law.client is not None)]

    def _traces(self) -> list[DurationTrace | PresenceTrace]:
        laws = (self.durations, self.availability)
        return [law for law in laws if isinstance(law, DurationTrace | PresenceTrace)]

    def _columns(self) -> list[ColumnLaw]:
        laws: list[PerClient | None] = []
        if links := self.network:
            laws += [links.downlink, links.uplink, links.latency]
        if power := self.power:
            laws += [power.computation, power.download, power.upload, power.idle]
        return [law for law in laws if isinstance(law, ColumnLaw)]

    def label(self) -> str:
        """Return a short name for tables and figures, for example "F80" or "two-speed 20 % × 10"."""
        available = "" if self.availability == Always() else self.availability.label()
        links = self.network.label() if self.network else ""
        server = self.server.label() if self.server else ""
        return ", ".join(filter(None, [self.durations.label(), available, links, server]))


def _numbered(law: DurationTrace | PresenceTrace) -> bool:
    """Return whether the n clients of a trace are numbered 0 … n − 1."""
    ids = traces.ids(law.path, law.digest)
    return law.clients == "first" and all(
        client.isdecimal() and len(client) <= traces.DIGITS for client in ids
    )


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
            raise ValueError("needs 'updates' or 'time': without them a run might never end")
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
    """The setting for comparing strategies."""

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
        """Return the target of runs: the budget's, where runs end, or the problem's."""
        return self.problem.target if self.budget.target is None else self.budget.target

    @model_validator(mode="after")
    def _times_fit_the_clients(self) -> Self:
        """Refuse laws and lists that do not fit the problem's number of clients."""
        timing, n = self.timing, self.problem.clients
        with _faults_of("timing.durations"):
            means(timing.durations, n, seed=0)
        with _faults_of("timing"):
            timing.check_ids(n)
        if self.arrangement is not None:
            with _faults_of("arrangement"):
                self.arrangement.check(n)
        if timing.network is not None:
            with _faults_of("timing.network"):
                timing.network.check(n, timing.ids(n, seed=0))
            if timing.durations.together:
                raise FieldError(
                    "timing", "the durations count server iterations, not time: leave out timing.network"
                )
        if timing.power is not None:
            with _faults_of("timing.power"):
                timing.power.watts(n, 0, timing.ids(n, seed=0))
        if timing.durations.together and (timing.server is not None or timing.power is not None):
            raise FieldError(
                "timing",
                "the durations count server iterations, not time: leave out timing.server and timing.power",
            )
        return self


@contextmanager
def _faults_of(field: str) -> Iterator[None]:
    """Raise errors about a value as errors about the field, a dotted key."""
    try:
        yield
    except ValueError as error:
        raise FieldError(field, str(error)) from None
