"""Laws of the lengths of jobs (`Durations`), and the `Lengths` of a run's jobs under a law.

Suites choose a law by name as `timing.durations`. `Simulation` makes the `Lengths` of a run, and
`loop/service.py` asks for the length of each job when it begins. A law gives the exact mean length of each
client's jobs and, if it is random, draws each job's length around that mean.

Fixed: names, fields and defaults of laws (keys of runs), the length of each job, and names of methods, which
users' laws override.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain
from numbers import Rational, Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fl_core.parts import Exact, FieldError, Length, Part, Share, ordered
from fl_core.streams import Streams, stream
from fl_core.text import many
from fl_core.timing import traces
from fl_core.timing.clock import MICRO, VirtualClock, common_unit, exact
from fl_core.timing.law_labels import chosen, label, plain
from fl_core.user_code import filled_in

EXACT = "an exact number above 0: a whole number, or a Fraction"


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


class Fixed(Durations):
    """Fixed lengths: all jobs of a client take equal time, given once for all clients or for each."""

    name: ClassVar[str] = "fixed"

    times: tuple[Length, ...] = (Fraction(1),)  # one for all clients, or one for each

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return one_each(self.times, n)


class DurationTrace(Durations):
    """Recorded lengths from a CSV file, rows of `client,length,…`, repeated after the last length.

    A header is skipped. Clients are numbered from 0; if the file names them by text, in order of first
    appearance. A file may have more clients than the problem: `clients: first` takes those numbered
    0 … n−1, `clients: random` draws n of all, anew for every seed.
    """

    name: ClassVar[str] = "trace"

    path: Path  # of the CSV file
    # Which of the file's: the first n, or n drawn anew for every seed
    clients: Literal["first", "random"] = "first"
    # Of the content, filled in: part of a run's identity
    digest: Annotated[str, Field(validate_default=True), filled_in(traces.digest)] = ""

    @property
    def time_unit(self) -> str:
        return traces.time_unit(self.path, self.digest)

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return tuple(sum(cycle, Fraction(0)) / len(cycle) for cycle in self.cycles(n, seed))

    def cycles(self, n: int, seed: int) -> tuple[tuple[Fraction, ...], ...]:
        return traces.read(self.path, self.digest, n, seed if self.clients == "random" else None)

    def label(self) -> str:
        return label(self, f"trace {self.path.name}", except_for=("path", "digest"))


class SpeedPerClient(Durations):
    """Base of laws with different clients: each job takes the client's mean, or is exponential."""

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


class FX(SpeedPerClient):
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
        return label(self, f"F{plain(self.spread)}", except_for=("spread",))


class LogNormalSpeeds(Durations):
    """Log-normal speeds: each client has its own mean length, drawn once a run, and its jobs vary around it.

    Both laws are scaled to their means: a client's mean length is `mean` on average over clients, and a job's
    length is its client's mean on average over jobs.
    """

    name: ClassVar[str] = "lognormal"

    mean: Length = Fraction(1)  # mean length of a job over all clients
    sigma: Annotated[float, Field(ge=0, le=5)] = 1.0  # standard deviation of log means over clients
    noise: Annotated[float, Field(ge=0, le=5)] = 0.3  # standard deviation of log lengths over a client's jobs

    @property
    def random(self) -> bool:
        return self.noise > 0

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        drawn = float(self.mean) * _log_normal(self.sigma, stream(seed, "means").standard_normal(n))
        return on_unit(drawn, self.unit)

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return mean * float(_log_normal(self.noise, rng.standard_normal()))

    def label(self) -> str:
        text = f"log-normal speeds σ {self.sigma:g}" + (f", jobs σ {self.noise:g}" if self.noise else "")
        return label(self, text, except_for=("sigma", "noise"))


def _log_normal(sigma: float, normal: Any) -> Any:
    """Return log-normal numbers of mean 1 from standard normal numbers."""
    return np.exp(sigma * normal - sigma**2 / 2)


class TwoSpeed(SpeedPerClient):
    """Two-speed mixture: a random share of the clients is slow throughout.

    Exponential jobs of means 0.5 and 5 give the mixed delays in the published code of ACE (arXiv 2511.19066).
    """

    name: ClassVar[str] = "two_speed"

    share: Share = 0.2  # of clients that are slow, rounded to a whole number of them
    fast: Length = Fraction(1)  # mean length of a fast client's jobs
    slow: Length = Fraction(10)  # of a slow client's; with fast = 1, the slowdown factor

    _ordered = ordered("fast", "slow")

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        slow = chosen(self.share, n, seed, "slow")
        return tuple(self.slow if client in slow else self.fast for client in range(n))

    def label(self) -> str:
        factor = plain(self.slow / self.fast)
        return label(self, f"two-speed {100 * self.share:g} % × {factor}", except_for=("share", "slow"))


class Phones(SpeedPerClient):
    """Phones: each has one of three speeds, as measured for FLASH (Yang et al., WWW 2021).

    In the authors' simulator (github.com/PKU-Chengxu/FLASH, models/utils/device_util/device_util.py) a
    mini-batch of FEMNIST's network takes `MILLISECONDS` on three kinds of phones, and phones of an unknown
    model are of these kinds with the weights `PHONES`.
    """

    name: ClassVar[str] = "phones"
    MILLISECONDS: ClassVar[tuple[int, ...]] = (1642, 588, 179)
    PHONES: ClassVar[tuple[int, ...]] = (18820, 16428, 159)

    # Mean length of a job over all phones; of the three kinds 1.43, 0.51 and 0.16 times this
    mean: Length = Fraction(1)

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        speeds, shares = np.array(self.MILLISECONDS), np.array(self.PHONES) / sum(self.PHONES)
        drawn = stream(seed, "means").choice(speeds, n, p=shares)
        return on_unit(float(self.mean) * drawn / (speeds @ shares), self.unit)


class RandomDurations(Durations):
    """Base of laws with a shared distribution of jobs for all clients, exponential unless redefined."""

    mean: Length = Fraction(1)  # mean length of a job

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return (self.mean,) * n

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return rng.exponential(mean)


class Exponential(RandomDurations):
    """Exponential lengths, i.i.d. over clients and jobs, or with a given mean for each client.

    I.i.d. they are the delays of the ACE paper (arXiv 2511.19066, §5); by client they are the service times
    of Generalized AsyncSGD, of mean 1/μ_i (arXiv 2502.08206, §2.1).
    """

    name: ClassVar[str] = "exponential"

    times: tuple[Length, ...] = (Fraction(1),)  # in units of `mean`; one for all clients, or one for each
    memoryless: ClassVar[bool] = True

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return one_each(tuple(self.mean * time for time in self.times), n)


class Persistent(RandomDurations):
    """Exponential lengths around persistent client means, themselves drawn from an exponential law."""

    name: ClassVar[str] = "persistent"
    memoryless: ClassVar[bool] = True

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return on_unit(stream(seed, "means").exponential(float(self.mean), n), self.unit)


class Iterations(Durations):
    """Delays of ⌊Exp(β)⌋ server iterations, with a single step for each (arXiv 2511.19066, 2025, §5).

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
        return label(self, f"delays of Exp({plain(self.mean)}) iterations", except_for=("mean",))


class ShiftedExponential(RandomDurations):
    """Shifted exponential lengths: a constant part, and an exponential rest."""

    name: ClassVar[str] = "shifted_exponential"

    shift: Length = Fraction(1, 2)  # the part that every job takes; `mean` is the mean of the whole

    @model_validator(mode="after")
    def _leaves_a_rest(self) -> Self:
        """Refuse a constant part as long as the mean."""
        if self.shift >= self.mean:
            raise FieldError(
                "shift", f"must be below the mean length of a job, {self.mean}, not {self.shift}"
            )
        return self

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return float(self.shift) + rng.exponential(mean - float(self.shift))


class Scipy(RandomDurations):
    """Any positive law of `scipy.stats` by name (gamma, lognorm, pareto, …), scaled to the mean."""

    name: ClassVar[str] = "scipy"

    law: str = "lognorm"  # its name in `scipy.stats`
    shape: tuple[float, ...] = (1.0,)  # its shape parameters, in the order that SciPy gives them

    @model_validator(mode="after")
    def _is_a_length(self) -> Self:
        """Refuse laws that are unknown, negative, or without a finite mean."""
        frozen(self.law, self.shape)
        return self

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        law, its_mean = frozen(self.law, self.shape)
        return mean / its_mean * float(law.rvs(random_state=rng))

    def label(self) -> str:
        return label(self, " ".join([self.law, *map(plain, self.shape)]), except_for=("law", "shape"))


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
            "law",
            f"unknown continuous law '{law}' of scipy.stats. Available: gamma, lognorm, pareto and others",
        )
    if len(shape) != family.numargs:
        parameters = f"({family.shapes})" if family.shapes else "none"
        message = f"{law} has {family.numargs} shape parameters {parameters}, {len(shape)} given"
        raise FieldError("shape", message)
    distribution = family(*shape)
    mean, minimum = float(distribution.mean()), float(distribution.support()[0])
    if not (minimum >= 0 and 0 < mean < math.inf):  # invalid parameters give mean nan
        raise FieldError(
            "shape", f"{law} with {shape} must be positive with a finite mean, but its mean is {mean}"
        )
    return distribution, mean
