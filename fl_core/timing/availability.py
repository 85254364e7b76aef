"""When clients are present: laws of each client's absences in virtual time, independent of the model.

An absent client finishes and delivers its current job; jobs sent to it wait with their model
(docs/architecture.md, rule 9).
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Self

from pydantic import model_validator

from fl_core.parts import FieldError, Length, Part, Share, Time
from fl_core.streams import stream
from fl_core.timing.clock import MICRO, Clock
from fl_core.timing.laws import chosen, label

NEVER: Iterator[tuple[Fraction, Fraction | None]] = iter(())  # one for all clients, since it is empty


class Availability(Part):
    """Base of all availability laws: when clients are absent."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.timing.availability",)

    def absences(self, client: int, n: int, seed: int) -> Iterator[tuple[Fraction, Fraction | None]]:
        """Yield when a client leaves and returns (None: never), in virtual time.

        Intervals increase, with time present between them; there may be infinitely many.

        Args:
            client: 0 … n − 1.
            n: The number of clients.
            seed: The seed of the run.
        """
        raise NotImplementedError

    def times(self) -> tuple[Fraction, ...]:
        """Return times that the clock must hit exactly, so that every absence is a whole number of ticks."""
        return ()

    def label(self) -> str:
        return label(self)


class Always(Availability):
    """Always available: all clients are present all the time."""

    name: ClassVar[str] = "always"

    def absences(self, client: int, n: int, seed: int) -> Iterator[tuple[Fraction, Fraction | None]]:
        return NEVER


class Dropouts(Availability):
    """Drop-outs: a random share of the clients leaves at a given time, for good or until a later one."""

    name: ClassVar[str] = "dropouts"

    share: Share  # of clients that leave, rounded to a whole number of them
    at: Time  # when they leave
    back: Length | None = None  # how much later they return; None: never

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.back is not None and self.back <= self.at:
            raise FieldError("back", f"must be later than the time of leaving, {self.at}, not {self.back}")
        return self

    def absences(self, client: int, n: int, seed: int) -> Iterator[tuple[Fraction, Fraction | None]]:
        if client in chosen(self.share, n, seed, "dropouts"):
            yield self.at, self.back

    def times(self) -> tuple[Fraction, ...]:
        return (self.at,) if self.back is None else (self.at, self.back)


class Spells(Availability):
    """On/off spells of exponential length, independent across clients, stationary from the start."""

    name: ClassVar[str] = "spells"

    mean_on: Length  # mean time present
    mean_off: Length  # mean time absent

    def absences(self, client: int, n: int, seed: int) -> Iterator[tuple[Fraction, Fraction | None]]:
        rng, clock = stream(seed, "spells", client), Clock(MICRO)
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

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.up_to is not None and self.up_to < self.probability:
            raise FieldError(
                "up_to", f"must not be below the probability {self.probability}, but is {self.up_to}"
            )
        return self

    def absences(self, client: int, n: int, seed: int) -> Iterator[tuple[Fraction, Fraction | None]]:
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
