"""Laws of each client's absences in virtual time; a scenario chooses one as `timing.availability`.

`loop/absences.py` reads the absences one by one. They do not depend on the model or the strategy.
An absent client finishes and delivers its current job; jobs sent to it wait with their model
(docs/rules.md, rule 9).
"""

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from fl_core import keys
from fl_core.parts import FieldError, Length, Part, Share, Time, ordered
from fl_core.streams import stream
from fl_core.timing import traces
from fl_core.timing.clock import MICRO, VirtualClock
from fl_core.timing.law_labels import chosen, label

Absence = tuple[Fraction, Fraction | None]  # departure and return, in virtual time; None: for good
Spell = tuple[int, int]  # begin and end of presence, in ticks of MICRO

NEVER: Iterator[Absence] = iter(())  # an empty iterator, shared by all clients


class Availability(Part):
    """Base of all availability laws: when clients are absent."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.timing.availability",)

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        """Yield each departure of a client with the return (None: never), in virtual time.

        Intervals increase, with time present between them; there may be infinitely many.

        Args:
            client: 0 … n − 1.
            n: The number of clients.
            seed: The seed of the run.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `absences`")

    def absences_of(self, ids: Sequence[str], client: int, seed: int) -> Iterator[Absence]:
        """Yield the absences of a client of known id; laws without ids depend on the client's number alone.

        Args:
            ids: The ids of all clients [n].
            client: 0 … n − 1.
            seed: The seed of the run.
        """
        return self.absences(client, len(ids), seed)

    def times(self) -> tuple[Fraction, ...]:
        """Return times for the clock to hit exactly, for absences of a whole number of ticks."""
        return ()

    def label(self) -> str:
        return label(self)


def checked(
    law: Availability, client: int, n: int, seed: int, ids: Sequence[str] | None = None
) -> Iterator[Absence]:
    """Return a client's absences under a law, checked while reading.

    Args:
        law: The law.
        client: 0 … n − 1.
        n: The number of clients.
        seed: The seed of the run.
        ids: The ids of all clients [n], if files are joined by ids.

    Raises:
        TypeError: The law does not return an iterable.
        ValueError: An absence is no pair of times, or does not follow the one before.
    """
    absences = law.absences(client, n, seed) if ids is None else law.absences_of(ids, client, seed)
    if not isinstance(absences, Iterable):
        raise TypeError(f"{type(law).__name__}.absences must yield absences, not return {absences!r}")
    return absences if absences is NEVER else _in_order(law, client, absences)


def _in_order(law: Availability, client: int, absences: Iterable[Absence]) -> Iterator[Absence]:
    """Yield absences; raise ValueError for one that is no pair of increasing times."""
    back = Fraction(0)
    for absence in absences:
        try:
            leaves, returns = absence
            follows = back <= leaves < (math.inf if returns is None else returns) and returns != math.inf
        except (TypeError, ValueError):
            follows = False
        if not follows:
            raise ValueError(
                f"{type(law).__name__}.absences yields {absence!r} for client {client}, present "
                f"from {back} on: must be pairs (leaves, returns) of increasing times, with None "
                "for a client that never returns"
            )
        yield leaves, returns
        if returns is None:
            return
        back = returns


class Always(Availability):
    """Always available: all clients are present all the time."""

    name: ClassVar[str] = "always"

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        return NEVER


class Dropouts(Availability):
    """Drop-outs: a random share of the clients leaves at a given time, for good or up to a later time."""

    name: ClassVar[str] = "dropouts"

    share: Share  # of clients that leave, rounded to a whole number of them
    at: Time  # when they leave
    back: Length | None = None  # when they return; None: never

    _ordered = ordered("at", "back", strictly=True)

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        if client in chosen(self.share, n, seed, "dropouts"):
            yield self.at, self.back

    def times(self) -> tuple[Fraction, ...]:
        return (self.at,) if self.back is None else (self.at, self.back)


class Spells(Availability):
    """On/off spells of exponential length, independent across clients, stationary from the start."""

    name: ClassVar[str] = "spells"

    mean_on: Length  # mean time present
    mean_off: Length  # mean time absent

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        rng, clock = stream(seed, "spells", client), VirtualClock(MICRO)
        on, off = float(self.mean_on), float(self.mean_off)
        leaves = clock.round(rng.exponential(on)) if rng.random() < on / (on + off) else 0
        while True:
            back = leaves + clock.round(rng.exponential(off))
            yield leaves * MICRO, back * MICRO
            leaves = back + clock.round(rng.exponential(on))

    def times(self) -> tuple[Fraction, ...]:
        return (MICRO,)


class Bernoulli(Availability):
    """Bernoulli: in each period a client is present with its probability (MIFA, Gu et al., NeurIPS 2021)."""

    name: ClassVar[str] = "bernoulli"

    probability: Share = 0.5  # of being present in a period
    up_to: Share | None = None  # if given, each client's probability is uniform from `probability` to this
    period: Length = Fraction(1)  # its length

    _ordered = ordered("probability", "up_to")

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        rng = stream(seed, "bernoulli", client)
        p = rng.uniform(self.probability, self.probability if self.up_to is None else self.up_to)
        if p in (0, 1):
            yield from [(Fraction(0), None)] if p == 0 else []
            return
        # Runs of periods in one state are geometric: a rare return costs no more than a frequent one.
        leaves = 0 if rng.random() >= p else int(rng.geometric(1 - p))
        while True:
            back = leaves + int(rng.geometric(p))
            yield leaves * self.period, back * self.period
            leaves = back + int(rng.geometric(1 - p))

    def times(self) -> tuple[Fraction, ...]:
        return (self.period,)


class Diurnal(Availability):
    """Day and night: each day a spell around the client's local peak (Bonawitz et al., MLSys 2019).

    At local time t a client is present with probability p(t) = share · (1 + a cos(2π (t − peak)/day)), where
    a = (ratio − 1)/(ratio + 1). Each day it draws u from U(0, 1) and is present while p(t) > u, in one spell
    symmetric about the peak. Local time is virtual time less the client's zone.

    A ratio of 4 between the hours of most and fewest devices was measured in production, with a population
    centred on one country (arXiv 1902.01046, §9).
    """

    name: ClassVar[str] = "diurnal"

    share: Annotated[float, Field(gt=0, lt=1)] = 0.5  # of the time that a client is present
    ratio: Annotated[float, Field(gt=1)] = 4.0  # of the clients present at the peak to those half a day later
    day: Length = Fraction(24)  # its length in virtual time
    peak: Time = Fraction(0)  # local time at which most are present
    zones: Annotated[tuple[Time, ...], Field(min_length=1)] = (Fraction(0),)  # drawn from evenly by clients

    @model_validator(mode="after")
    def _are_shares(self) -> Self:
        """Refuse a share and a ratio that would need a probability above 1 at the peak."""
        if self.share * (1 + self.swing) > 1:
            peak = (self.ratio + 1) / (2 * self.ratio)
            raise FieldError(
                "share",
                f"must be at most {peak:.4g} with ratio {self.ratio:g}, not {self.share:g}; or give a ratio "
                f"of at most {1 / (2 * self.share - 1):.4g}",
            )
        return self

    @property
    def swing(self) -> float:
        """The amplitude a of p(t), in units of the mean."""
        return (self.ratio - 1) / (self.ratio + 1)

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        return between(self.spells(stream(seed, "diurnal", client)))

    def spells(self, rng: np.random.Generator) -> Iterator[Spell]:
        """Yield a client's spells of presence, from the day before time 0 on."""
        day = float(self.day)
        peak_share = self.share * (1 + self.swing)  # the probability of any spell in a day
        peak = float((self.peak + self.zones[rng.integers(len(self.zones))]) % self.day) - 2 * day
        while True:
            peak += day * int(rng.geometric(peak_share))
            height = (rng.uniform(0, peak_share) / self.share - 1) / self.swing
            half = day / (2 * math.pi) * math.acos(min(1, max(-1, height)))
            yield round((peak - half) / float(MICRO)), round((peak + half) / float(MICRO))

    def times(self) -> tuple[Fraction, ...]:
        return (MICRO,)


def between(spells: Iterable[Spell]) -> Iterator[Absence]:
    """Yield the absences between spells of presence in order; spells may touch or lie before time 0."""
    departure = 0
    for begin, end in spells:
        if begin < end and end > departure:
            if begin > departure:
                yield departure * MICRO, begin * MICRO
            departure = end
    yield departure * MICRO, None


class Schedule(NamedTuple):
    """A client's times of presence, in ticks of MICRO."""

    spells: Sequence[Spell]  # in order, with gaps between
    period: int | None  # after which the spells repeat; None: never


class PresenceTrace(Availability):
    """Recorded presence from a CSV file, rows of `client,from,to`, or `client,from,to,period`.

    A client is absent outside of its rows. These repeat after `period`, or else after the client's own, the
    file's fourth column; without either a client is gone after its last row. Beside a trace of durations
    clients are those of that trace, by their ids; alone, they are numbered as in one.
    """

    name: ClassVar[str] = "trace"

    path: Path  # of the CSV file
    # Which of the file's: the first n, or n drawn anew for every seed
    clients: Literal["first", "random"] = "first"
    period: Length | None = None  # virtual time after which rows repeat; None: as the file says
    shift: bool = False  # whether each client starts somewhere in its period, drawn anew for every seed
    digest: str = Field("", validate_default=True)  # of the content, filled in: part of a run's identity

    @field_validator("digest")
    @classmethod
    def _identify(cls, digest: str, info: ValidationInfo) -> str:
        """Fill in the digest of the file, and check all rows."""
        path = info.data.get("path")
        if digest or path is None:
            return digest
        digest = keys.digest(traces.content(path, limit=traces.MOST_BYTES))
        schedules = _schedules(path, digest, info.data.get("period")).values()
        if info.data.get("shift") and not all(schedule.period for schedule in schedules):
            raise FieldError("shift", f"needs a 'period', since {path} has none: add one, or leave out shift")
        return digest

    def absences(self, client: int, n: int, seed: int) -> Iterator[Absence]:
        drawn = seed if self.clients == "random" else None
        schedule = _of_clients(self.path, self.digest, self.period, n, drawn)[client]
        return self._absences(schedule, client, seed)

    def absences_of(self, ids: Sequence[str], client: int, seed: int) -> Iterator[Absence]:
        number = traces.number(self.path, self.digest, ids[client])
        return self._absences(_schedules(self.path, self.digest, self.period)[number], client, seed)

    def _absences(self, schedule: Schedule, client: int, seed: int) -> Iterator[Absence]:
        """Yield the absences under a schedule, repeated and shifted as the fields say."""
        spells, period = schedule
        if period is None:
            return between(spells)
        if spells == [(0, period)]:
            return NEVER
        begin = int(stream(seed, "shift", client).integers(period)) if self.shift else 0
        starts = (turn * period - begin for turn in count())
        return between((start + leaves, start + returns) for start in starts for leaves, returns in spells)

    def times(self) -> tuple[Fraction, ...]:
        return (MICRO,)

    def label(self) -> str:
        return label(self, f"present as in {self.path.name}", except_for=("path", "digest"))


@functools.lru_cache(maxsize=32)
def _of_clients(
    path: Path, digest: str, period: Fraction | None, n: int, seed: int | None
) -> Sequence[Schedule]:
    """Return the schedules of the n clients of a run; cached, since each client asks."""
    return traces.of_clients(path, _schedules(path, digest, period), n, seed)


@functools.lru_cache(maxsize=4)
def _schedules(path: Path, digest: str, period: Fraction | None) -> Mapping[int, Schedule]:
    """Return the schedule of each client of a file, times rounded to ticks of MICRO.

    Raises:
        ValueError: The file has another digest, or a row that is no time of presence within the period.
    """
    seen: dict[str, list[tuple[Spell, int | None]]] = defaultdict(list)
    period_ticks = None if period is None else VirtualClock(MICRO).round(period)
    for line, (client, *cells) in traces.rows(path, traces.content(path, digest, traces.MOST_BYTES)):
        try:
            begin, end, *period_of_row = (round(float(cell) / float(MICRO)) for cell in cells)
            lasts = period_of_row[0] if period_ticks is None and period_of_row else period_ticks
            if (
                len(period_of_row) > 1
                or client.startswith("-")
                or not (client and 0 <= begin < end <= (math.inf if lasts is None else lasts))
            ):
                raise ValueError
        except (ValueError, OverflowError):
            raise ValueError(
                f"trace file {path}, line {line}: must be a client, the begin and the end of its "
                f"presence, and optionally a period, such as 'a7,12.5,80' or 'a7,12.5,80,86400', "
                f"not '{','.join([client, *cells])}'" + (f" with period {period}" if period_ticks else "")
            ) from None
        if seen[client] and seen[client][0][1] != lasts:
            raise ValueError(
                f"trace file {path}, line {line}: client {client} has two different periods: give "
                "the same in all rows"
            )
        seen[client].append(((begin, end), lasts))
    return {client: _schedule(rows) for client, rows in traces.numbered(seen).items()}


def _schedule(rows: Sequence[tuple[Spell, int | None]]) -> Schedule:
    """Return the schedule of a client's rows; touching and overlapping rows are merged."""
    spells: list[Spell] = []
    for begin, end in sorted(spell for spell, _ in rows):
        if spells and begin <= spells[-1][1]:
            spells[-1] = (spells[-1][0], max(end, spells[-1][1]))
        else:
            spells.append((begin, end))
    return Schedule(spells, rows[0][1])
