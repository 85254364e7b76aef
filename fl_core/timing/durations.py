"""How long jobs take: laws of the length of client i's k-th job, independent of the model.

A law gives the exact mean length of each client's jobs and, if it is random, draws each job's length around
that mean.
"""

import functools
import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from fl_core.parts import Exact, FieldError, Length, Part, Share
from fl_core.streams import Streams, stream
from fl_core.text import many
from fl_core.timing import traces
from fl_core.timing.clock import MICRO, Clock, common_unit
from fl_core.timing.laws import chosen, label, plain


class Durations(Part):
    """Base of all duration laws: how long jobs take."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.timing.durations",)
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
        """True if lengths are exponential: a job in progress takes as long again as a new one."""
        return False

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        """Return each client's mean job length [n], in virtual time.

        Args:
            n: The number of clients.
            seed: The seed of the run, for laws that draw the means.

        Raises:
            ValueError: The law does not fit n clients.
        """
        raise NotImplementedError

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        """Return the length of one job, in virtual time, of a client whose jobs take `mean` on average."""
        return mean

    def cycles(self, n: int, seed: int) -> tuple[tuple[Fraction, ...], ...]:
        """Return the lengths of each client's jobs in turn, over and over, for laws that are not random."""
        return tuple((mean,) for mean in self.means(n, seed))

    def label(self) -> str:
        return label(self)


def means(law: Durations, n: int, seed: int) -> tuple[Fraction, ...]:
    """Return a law's mean lengths [n], checked.

    Raises:
        ValueError: There is not one for each client, positive and finite.
    """
    lengths = law.means(n, seed)
    if len(lengths) != n:
        raise FieldError("durations", f"{law.reference()} gives {len(lengths)} means for {n} clients")
    for client, mean in enumerate(lengths):
        if not 0 < mean < math.inf:
            raise FieldError(
                "durations",
                f"{law.reference()} gives client {client} jobs of mean length {mean}; "
                "a mean is a finite number above 0",
            )
    return lengths


class Lengths:
    """Lengths of all jobs under one law, seed and n clients, in ticks, in any order of calls.

    `clock` has the law's own unit, divided so that each of `exact_times` (FedFix's Δt, say) is a whole number
    of ticks. A job takes the same virtual time whatever they are, so strategies stay paired.
    If the law is per step, `means` are those of one step.
    """

    def __init__(self, law: Durations, n: int, seed: int, exact_times: Iterable[Fraction] = ()) -> None:
        self.law = law
        self.means = means(law, n, seed)
        cycles = () if law.random else law.cycles(n, seed)
        own = Clock(law.unit if law.random else common_unit(chain.from_iterable(cycles)))
        self.clock = Clock(common_unit((own.unit, *exact_times)))
        self._cycles = [tuple(map(self.clock.ticks, cycle)) for cycle in cycles]
        self._means = [float(mean) for mean in self.means]
        self._own_ticks = float(1 / own.unit)  # ticks of the law's own clock in a unit of virtual time
        self._refined = self.clock.ticks(own.unit)  # ticks of `clock` in one of those
        self._streams = Streams(seed, "duration")

    def __call__(self, client: int, job: int, steps: int = 1) -> int:
        """Return a job's length in ticks, at least one; `steps` matters if the law is per step."""
        if self._cycles:
            cycle = self._cycles[client]
            ticks = cycle[job % len(cycle)]
        else:
            length = self.law.draw(self._means[client], self._streams.at(client, job))
            if not 0 <= length < math.inf:
                raise FieldError(
                    "durations",
                    f"{self.law.reference()} drew a job of length {length} for client {client}; "
                    "a length is a finite number, at least 0",
                )
            ticks = max(1, round(length * self._own_ticks)) * self._refined
        return ticks * steps if self.law.per_step else ticks


# -- known beforehand ------------------------------------------------------------------------------


class Fixed(Durations):
    """Fixed lengths: all jobs of a client take the same time, one for all clients or one for each."""

    name: ClassVar[str] = "fixed"

    times: tuple[Length, ...] = (Fraction(1),)  # one for all clients, or one for each

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return one_each(self.times, n)


class Trace(Durations):
    """Recorded lengths from a CSV file, rows of `client,length,…`; a client that runs out starts over.

    A header is skipped. Clients are numbered from 0; if the file names them by text, in order of first
    appearance. A file may have more clients than the problem: `clients: first` takes those numbered
    0 … n−1, `clients: random` draws n of all, anew for every seed.
    """

    name: ClassVar[str] = "trace"

    path: Path  # of the CSV file
    # Which of the file's: the first n, or n drawn anew for every seed
    clients: Literal["first", "random"] = "first"
    digest: str = Field("", validate_default=True)  # of the content, filled in: part of a run's identity

    @field_validator("digest")
    @classmethod
    def _identify(cls, digest: str, info: ValidationInfo) -> str:
        path = info.data.get("path")
        return digest if digest or path is None else traces.digest(path)

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return tuple(sum(cycle, Fraction(0)) / len(cycle) for cycle in self.cycles(n, seed))

    def cycles(self, n: int, seed: int) -> tuple[tuple[Fraction, ...], ...]:
        return traces.read(self.path, self.digest, n, seed if self.clients == "random" else None)

    def label(self) -> str:
        return label(self, f"trace {self.path.name}", shown=("path", "digest"))


# -- each client has its own speed -----------------------------------------------------------------


class OwnSpeed(Durations):
    """Base of laws in which clients differ: each job takes its client's mean, or is exponential."""

    # A client's jobs all take its mean time, or are exponential with it
    jobs: Literal["constant", "exponential"] = "constant"

    @property
    def random(self) -> bool:
        return self.jobs == "exponential"

    @property
    def memoryless(self) -> bool:
        return self.random

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return rng.exponential(mean)


class FX(OwnSpeed):
    """F_X, times spread evenly from 1 down to 1 − X/100, client 0 slowest (Fraboni et al., JMLR 2023, §5.1).

    The text says "uniformly distributed". The published code, and so `reading: grid`, takes an even grid, the
    same for every seed: τ_i = 1 − X/100 · i/(n−1). `reading: uniform` draws each τ_i from U(1 − X/100, 1).
    """

    name: ClassVar[str] = "fx"

    # X, in percent: how much sooner the fastest is done
    spread: Annotated[Exact, Field(ge=0, lt=100)] = Fraction(80)
    reading: Literal["grid", "uniform"] = "grid"  # an even grid of times, or uniform ones

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        if self.reading == "grid":
            step = self.spread / 100 / max(1, n - 1)
            return tuple(1 - i * step for i in range(n))
        faster = float(self.spread / 100) * stream(seed, "means").random(n)
        return on_unit(1 - faster, self.unit)

    def label(self) -> str:
        return label(self, f"F{plain(self.spread)}", shown=("spread",))


class TwoSpeed(OwnSpeed):
    """Two-speed mixture: a random share of the clients is slow throughout.

    Exponential jobs of means 0.5 and 5 give the mixed delays in the published code of ACE (arXiv 2511.19066).
    """

    name: ClassVar[str] = "two_speed"

    share: Share = 0.2  # of clients that are slow, rounded to a whole number of them
    fast: Length = Fraction(1)  # mean length of a fast client's jobs
    slow: Length = Fraction(10)  # of a slow client's; with fast = 1, the slowdown factor

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.slow < self.fast:
            raise FieldError(
                "slow", f"must not be below the fast clients' mean {self.fast}, but is {self.slow}"
            )
        return self

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        slow = chosen(self.share, n, seed, "slow")
        return tuple(self.slow if client in slow else self.fast for client in range(n))

    def label(self) -> str:
        factor = plain(self.slow / self.fast)
        return label(self, f"two-speed {100 * self.share:g} % × {factor}", shown=("share", "slow"))


class Phones(OwnSpeed):
    """Phones: each has one of three speeds, as measured for FLASH (Yang et al., WWW 2021).

    In the authors' simulator (github.com/PKU-Chengxu/FLASH, models/utils/device_util/device_util.py) a
    mini-batch of FEMNIST's network takes `MILLISECONDS` on three kinds of phones, and phones of an unknown
    model are of these kinds with the weights `PHONES`.
    """

    name: ClassVar[str] = "phones"
    MILLISECONDS: ClassVar[tuple[int, ...]] = (1642, 588, 179)
    PHONES: ClassVar[tuple[int, ...]] = (18820, 16428, 159)

    mean: Length = Fraction(
        1
    )  # mean length of a job over all phones; of the three kinds 1.43, 0.51, 0.16 of it

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        speeds, shares = np.array(self.MILLISECONDS), np.array(self.PHONES) / sum(self.PHONES)
        drawn = stream(seed, "means").choice(speeds, n, p=shares)
        return on_unit(float(self.mean) * drawn / (speeds @ shares), self.unit)


# -- every job is drawn ----------------------------------------------------------------------------


class Drawn(Durations):
    """Base of laws that draw jobs from one law for all clients."""

    mean: Length = Fraction(1)  # mean length of a job

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return (self.mean,) * n


class Exponential(Drawn):
    """Exponential lengths, i.i.d. over clients and jobs, or with a given mean for each client.

    I.i.d. they are the delays of the ACE paper (arXiv 2511.19066, §5); by client they are the service times
    of Generalized AsyncSGD, of mean 1/μ_i (arXiv 2502.08206, §2.1).
    """

    name: ClassVar[str] = "exponential"

    times: tuple[Length, ...] = (Fraction(1),)  # in units of `mean`; one for all clients, or one for each
    memoryless: ClassVar[bool] = True

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return one_each(tuple(self.mean * time for time in self.times), n)

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return rng.exponential(mean)


class Persistent(Drawn):
    """Exponential lengths around persistent client means, themselves drawn from an exponential law."""

    name: ClassVar[str] = "persistent"
    memoryless: ClassVar[bool] = True

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return on_unit(stream(seed, "means").exponential(float(self.mean), n), self.unit)

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return rng.exponential(mean)


class Iterations(Durations):
    """Delays of ⌊Exp(β)⌋ server iterations, all arrivals of one in one step (arXiv 2511.19066, 2025, §5).

    Time is counted in server iterations. A job of delay k arrives k + 1 iterations after it was sent, and the
    server makes one step from all that arrives in an iteration, none if nothing does, and only then sends
    (rule 20). How many clients are at work is the strategy's concurrency, as elsewhere.

    The paper counts delays τ_i in server iterations (§3.1), gives them an exponential law (§5), keeps all n
    clients of ACE at work (F.4) and finds high participation for τ_algo twice the mean delay (D.4.2). By
    Little's law n jobs in flight and a mean delay of β are n/(β + 1) arrivals an iteration. Its "one upload
    an iteration" (F.1.4) cannot hold beside them; `iteration_delay` keeps that sentence and drops the others.
    """

    name: ClassVar[str] = "iterations"
    unit: ClassVar[Fraction] = Fraction(1)
    together: ClassVar[bool] = True

    mean: Length = Fraction(5)  # β, before it is rounded down

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return (1 + Fraction(1 / math.expm1(min(1 / float(self.mean), 700))),) * n  # e^700 is still a float

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return 1 + math.floor(rng.exponential(float(self.mean)))

    def label(self) -> str:
        return label(self, f"delays of Exp({plain(self.mean)}) iterations", shown=("mean",))


class ShiftedExponential(Drawn):
    """Shifted exponential lengths: a part that every job takes, and an exponential rest."""

    name: ClassVar[str] = "shifted_exponential"

    shift: Length = Fraction(1, 2)  # the part that every job takes; `mean` is the mean of the whole

    @model_validator(mode="after")
    def _leaves_a_rest(self) -> Self:
        if self.shift >= self.mean:
            raise FieldError(
                "shift", f"must be below the mean length of a job, {self.mean}, not {self.shift}"
            )
        return self

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return float(self.shift) + rng.exponential(mean - float(self.shift))


class Scipy(Drawn):
    """Any positive law of `scipy.stats` by its name there (gamma, lognorm, pareto, …), scaled to the mean."""

    name: ClassVar[str] = "scipy"

    law: str = "lognorm"  # its name in `scipy.stats`
    shape: tuple[float, ...] = (1.0,)  # its shape parameters, in the order that SciPy gives them

    @model_validator(mode="after")
    def _is_a_length(self) -> Self:
        frozen(self.law, self.shape)
        return self

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        law, its_mean = frozen(self.law, self.shape)
        return mean / its_mean * float(law.rvs(random_state=rng))

    def label(self) -> str:
        return label(self, " ".join([self.law, *map(plain, self.shape)]), shown=("law", "shape"))


@functools.cache
def frozen(law: str, shape: tuple[float, ...]) -> tuple[Any, float]:
    """Return a law of `scipy.stats` at unit scale, and the law's mean.

    Raises:
        ValueError: There is no such law, or its values are not positive lengths of a finite mean.
    """
    from scipy import stats

    family = getattr(stats, law, None)
    if not isinstance(family, stats.rv_continuous):
        raise FieldError(
            "law", f"scipy.stats has no continuous law '{law}'; it has gamma, lognorm, pareto, …"
        )
    if len(shape) != family.numargs:
        wanted = f"({family.shapes})" if family.shapes else "none"
        given = f"{law} has {family.numargs} shape parameters {wanted}, {len(shape)} given"
        raise FieldError("shape", given)
    distribution = family(*shape)
    mean, least = float(distribution.mean()), float(distribution.support()[0])
    if not (least >= 0 and 0 < mean < math.inf):  # invalid parameters give mean nan
        raise FieldError(
            "shape", f"{law} with {shape} must be positive with a finite mean, but its mean is {mean}"
        )
    return distribution, mean


def one_each(times: tuple[Fraction, ...], n: int) -> tuple[Fraction, ...]:
    """Return `times` for n clients [n], as given or one repeated.

    Raises:
        ValueError: There are neither 1 nor n times.
    """
    if len(times) not in (1, n):
        raise FieldError(
            "times", f"{len(times)} given for {many(n, 'client')}; give one for all, or one for each"
        )
    return times if len(times) == n else times * n


def on_unit(times: np.ndarray, unit: Fraction) -> tuple[Fraction, ...]:
    """Return drawn times [n], each rounded to a whole number of units, at least one."""
    clock = Clock(unit)
    top, bottom = unit.as_integer_ratio()
    return tuple(Fraction(clock.round(time) * top, bottom) for time in times.tolist())
