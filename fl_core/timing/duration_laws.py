"""Laws of job lengths: given, recorded, with a speed for each client, or drawn for each job.

Suites choose one by name as `timing.durations`; the interface is in `durations`.
"""

import functools
import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fl_core.parts import Exact, FieldError, Length, Share, ordered
from fl_core.streams import stream
from fl_core.timing import traces
from fl_core.timing.durations import Durations, on_unit, one_each
from fl_core.timing.law_labels import chosen, label, plain
from fl_core.user_code import filled_in


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
