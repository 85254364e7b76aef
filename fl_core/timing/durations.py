"""The interface of duration laws, `Durations`, and the `Lengths` of a run's jobs under a law.

The laws are in `duration_laws.py`. `Simulation` makes the `Lengths` of a run, and `loop/service.py` asks for
the length of each job when it begins. A law gives the exact mean length of each client's jobs and, if it is
random, draws each job's length around that mean.

Fixed: names of methods and fields, which users' laws override, and the stream of each length.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain
from numbers import Rational, Real
from typing import ClassVar

import numpy as np

from fl_core.parts import FieldError, Part
from fl_core.streams import Streams
from fl_core.text import many
from fl_core.timing.clock import MICRO, VirtualClock, common_unit, exact
from fl_core.timing.law_labels import label

EXACT = "an exact number above 0: a whole number, or a Fraction"


class Durations(Part):
    """Base of all duration laws: how long jobs take."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.timing.duration_laws",)
    unit: ClassVar[Fraction] = MICRO  # the tick on which a random law rounds; exact laws derive theirs
    together: ClassVar[bool] = False  # whether what arrives at one tick belongs to one server iteration

    per_step: bool = False  # lengths are those of one local step: a job of K steps takes K times as long

    @property
    def random(self) -> bool:
        """True if each job's length is drawn; otherwise lengths are known beforehand and exact."""
        return type(self).draw is not Durations.draw

    @property
    def constant(self) -> bool:
        """True if all jobs of a client take equally long, for equal numbers of steps."""
        return not self.random and type(self).cycles is Durations.cycles

    @property
    def memoryless(self) -> bool:
        """True if lengths are exponential: a job in progress takes as long again as a new job."""
        return False

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        """Return each client's mean job length [n], in virtual time.

        Args:
            n: The number of clients.
            seed: The seed of the run, for laws that draw the means.

        Raises:
            ValueError: The law does not fit n clients.
        """
        raise FieldError(
            "durations", f"{self.reference()} does not define `means`: write `def means(self, n, seed)`"
        )

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        """Return a job's length, in virtual time, for a client with mean length `mean`."""
        return mean

    def cycles(self, n: int, seed: int) -> tuple[tuple[Fraction, ...], ...]:
        """Return the lengths of each client's jobs in turn, over and over, for non-random laws."""
        return tuple((mean,) for mean in self.means(n, seed))

    @property
    def time_unit(self) -> str:
        """Name of the unit of virtual time, for example seconds; empty if unnamed."""
        return ""

    def label(self) -> str:
        return label(self)


def means(law: Durations, n: int, seed: int) -> tuple[Fraction, ...]:
    """Return a law's mean lengths [n], checked.

    Raises:
        ValueError: There is no positive and finite mean for each client.
    """
    lengths = law.means(n, seed)
    if not isinstance(lengths, Sequence | np.ndarray):
        raise FieldError("durations", f"{law.reference()}.means must return {n} means, not {lengths!r}")
    if len(lengths) != n:
        raise FieldError(
            "durations", f"{law.reference()} must give one mean for each of {n} clients, not {len(lengths)}"
        )
    kind, expected = (Real, "a finite number above 0") if law.random else (Rational, EXACT)
    for client, mean in enumerate(lengths):
        if not (isinstance(mean, kind) and 0 < mean < math.inf):
            raise FieldError(
                "durations",
                f"{law.reference()} gives client {client} the mean length {mean}: must be {expected}",
            )
    return tuple(lengths)


def cycles(law: Durations, n: int, seed: int) -> tuple[tuple[Fraction, ...], ...]:
    """Return checked lengths of each client's jobs under a non-random law.

    Raises:
        ValueError: A client has no lengths, or a length is not exact and above 0.
    """
    lengths = law.cycles(n, seed)
    if not isinstance(lengths, Sequence) or len(lengths) != n:
        message = f"{law.reference()}.cycles must return the lengths of jobs of {n} clients"
        raise FieldError("durations", f"{message}, not {lengths!r}")
    for client, cycle in enumerate(lengths):
        if not isinstance(cycle, Sequence) or not cycle:
            message = f"{law.reference()}.cycles gives client {client} {cycle!r}"
            raise FieldError("durations", f"{message}: must be the lengths of its jobs in turn")
        for length in cycle:
            if not (isinstance(length, Rational) and length > 0):
                raise FieldError(
                    "durations",
                    f"{law.reference()} gives client {client} a job of length {length}: must be {EXACT}",
                )
    return lengths


class Lengths:
    """Lengths of all jobs under a law, a seed and n clients, in ticks, in any order of calls.

    `clock` has the law's own unit, divided so that each of `exact_times` (FedFix's Δt, say) is a whole number
    of ticks. The virtual time of a job does not depend on `exact_times`, so strategies stay paired.
    If the law is per step, `means` are those of one step. `purpose` names the random stream.
    """

    def __init__(
        self,
        law: Durations,
        n: int,
        seed: int,
        exact_times: Iterable[Fraction] = (),
        *,
        purpose: str = "duration",
    ) -> None:
        self.law = law
        self.means = means(law, n, seed)
        fixed = () if law.random else cycles(law, n, seed)
        (unit,) = exact((law.unit,), f"{law.reference()}: unit")
        own_clock = VirtualClock(unit if law.random else common_unit(chain.from_iterable(fixed)))
        self.clock = VirtualClock(common_unit((own_clock.unit, *exact_times)))
        self._cycles = [tuple(map(self.clock.ticks, cycle)) for cycle in fixed]
        self._means = [float(mean) for mean in self.means]
        self._own_ticks = float(1 / own_clock.unit)  # ticks of the law's own clock in a unit of virtual time
        self._refined = self.clock.ticks(own_clock.unit)  # ticks of `clock` in a tick of the law's clock
        self._streams = Streams(seed, purpose)

    def __call__(self, client: int, job: int, steps: int = 1) -> int:
        """Return a job's length in ticks, at least 1; `steps` matters if the law is per step."""
        if self._cycles:
            cycle = self._cycles[client]
            ticks = cycle[job % len(cycle)]
        else:
            length = self.law.draw(self._means[client], self._streams.at(client, job))
            if not ((type(length) is float or isinstance(length, Real)) and 0 <= length < math.inf):
                raise FieldError(
                    "durations",
                    f"{self.law.reference()} drew a job of length {length} for client {client}: "
                    "must be a finite number of 0 or more",
                )
            ticks = (round(length * self._own_ticks) or 1) * self._refined
        return ticks * steps if self.law.per_step else ticks


def one_each(times: tuple[Fraction, ...], n: int) -> tuple[Fraction, ...]:
    """Return `times` for n clients [n], as given or repeated.

    Raises:
        ValueError: There are neither 1 nor n times.
    """
    if len(times) not in (1, n):
        raise FieldError(
            "times", f"{len(times)} given for {many(n, 'client')}; give one for all, or one for each"
        )
    return times if len(times) == n else times * n


def on_unit(times: np.ndarray, unit: Fraction) -> tuple[Fraction, ...]:
    """Return drawn times [n], each rounded to a whole number of units, at least 1."""
    clock = VirtualClock(unit)
    top, bottom = unit.as_integer_ratio()
    return tuple(Fraction(clock.round(time) * top, bottom) for time in times.tolist())
