"""Laws of job lengths with a draw for every job."""

import functools
import math
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import model_validator

from fl_core.parts import FieldError, Length
from fl_core.streams import stream
from fl_core.timing.durations import Durations, on_unit, one_each
from fl_core.timing.laws import label, plain


class RandomDurations(Durations):
    """Base of laws with a shared distribution of jobs for all clients."""

    mean: Length = Fraction(1)  # mean length of a job

    def means(self, n: int, seed: int) -> tuple[Fraction, ...]:
        return (self.mean,) * n


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

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return rng.exponential(mean)


class Persistent(RandomDurations):
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
        return label(self, f"delays of Exp({plain(self.mean)}) iterations", except_for=("mean",))


class ShiftedExponential(RandomDurations):
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


class Scipy(RandomDurations):
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
            "law", f"scipy.stats has no continuous law '{law}'; it has gamma, lognorm, pareto, …"
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
