"""Fraboni et al. (JMLR 2023) on quadratics: Examples 1 and 2, four clients under F80.

On L_i = ½‖θ − θ_i*‖², K local steps move a model by φ(θ_i* − θ), φ = 1 − (1 − η_l)^K.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice

import numpy as np

from asyncfl.claims.computed.fraboni_schedules import (
    Arrivals,
    buffers,
    equal,
    hardware,
    one_by_one,
    ticks,
)
from fl_core.theory import weights
from fl_core.theory.jackson import Array

CENTRES = (1.0, -2.0, 3.0, 0.5)  # θ_i* of the four clients
ROUNDS = 12_000  # of theirs

# -- examples and quadratics ----------------------------------------------------------------------


def example_1(*, phi: float, rounds: int, optimum: float = 1.0) -> list[float]:
    """θ^0, …, θ^rounds of θ^{n+2} = θ^{n+1} + φ(θ* − θ^n), θ^0 = 0, θ^1 = φθ* or, if φ is 1, θ*."""
    models = [0.0, phi * optimum]
    while len(models) <= rounds:
        models.append(models[-1] + phi * (optimum - models[-2]))
    return models[: rounds + 1]


def example_1_ends(*, phi: float, optimum: float = 1.0, rounds: int = 5000) -> list[float]:
    """The last six models of Example 1: six times θ* where it converges."""
    return example_1(phi=phi, rounds=rounds, optimum=optimum)[-6:]


def example_2_attractor(*, q: Sequence[str], phi: str, optima: Sequence[int]) -> list[Fraction]:
    """The two-cycle of Example 2 as fractions: x = y + q₁φ(θ₁* − x), y = x + q₂φ(θ₂* − y)."""
    (first, second), step, (a, b) = map(Fraction, q), Fraction(phi), optima
    whole = first + second + first * second * step
    after_1 = (first * a * (1 + second * step) + second * b) / whole
    return [after_1, (after_1 + second * step * b) / (1 + second * step)]


def _models(
    schedule: Iterable[Arrivals], d: Sequence[float], phi: float, optima: Sequence[float]
) -> Iterator[float]:
    """θ^1, θ^2, … of a schedule, from θ^0 = 0, where a client moves its model by φ(θ_i* − θ)."""
    models = [0.0]
    for here in schedule:
        models.append(models[-1] + sum(d[i] * phi * (optima[i] - models[v]) for i, v in here.items()))
        yield models[-1]


def four_clients(*, scheme: str, phi: float) -> Array:
    """Models of four quadratics under F80 [ROUNDS]; weights by the names of the published code."""
    times = hardware(4, 80)
    p, half = equal(4), Fraction(1, 2)
    counts = weights.fedbuff_participations(times, 2, ROUNDS)
    schedule, d = {
        "identical": (one_by_one(times), [Fraction(1)] * 4),
        "time_based": (one_by_one(times), weights.time_based(p, times)),
        "fedfix": (ticks(times, half), weights.fedfix(p, times, half)),
        "fedbuff identical": (buffers(times, 2), [half] * 4),
        "fedbuff weight": (buffers(times, 2), weights.by_participation(p, counts, ROUNDS)),
    }[scheme]
    played = islice(schedule, ROUNDS)
    return np.array(list(_models(played, [float(each) for each in d], phi, CENTRES)))


def passes_through(*, scheme: str, phi: float, printed: float) -> bool:
    """Whether a mean of 2000 consecutive models is what the published code printed, to its last digit.

    The last 2000 models of a run of unknown length: those that end anywhere in a cycle of 732 arrivals.
    """
    sums = np.cumsum(four_clients(scheme=scheme, phi=phi)[-(2000 + 732) :])
    means = (sums[2000:] - sums[:-2000]) / 2000
    return bool(means.min() - 5e-6 <= printed <= means.max() + 5e-6)
