"""Fraboni et al. (JMLR 2023) on quadratics: Examples 1 and 2, four clients under F80, Theorem 1.

On L_i = ½‖θ − θ_i*‖², K local steps move a model by φ(θ_i* − θ), φ = 1 − (1 − η_l)^K.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np

from benchmarks.claims.computed.fraboni_schedules import (
    Arrivals,
    buffers,
    equal,
    hardware,
    one_by_one,
    scheme_of,
    ticks,
)
from fl_core.theory import fraboni, schemes, weights
from fl_core.theory.jackson import Array

CENTRES = (1.0, -2.0, 3.0, 0.5)  # θ_i* of the four clients

# -- examples and quadratics ----------------------------------------------------------------------


def example_1(*, phi: float, rounds: int, optimum: float = 1.0) -> list[float]:
    """θ^0, …, θ^rounds of θ^{n+2} = θ^{n+1} + φ(θ* − θ^n), θ^0 = 0, θ^1 = φθ* or, if φ is 1, θ*."""
    models = [0.0, phi * optimum]
    while len(models) <= rounds:
        models.append(models[-1] + phi * (optimum - models[-2]))
    return models[: rounds + 1]


def example_1_at(*, phi: float, n: int, optimum: float = 1.0) -> float:
    """θ^n of Example 1."""
    return example_1(phi=phi, rounds=n, optimum=optimum)[n]


def example_1_ends(*, phi: float, optimum: float = 1.0, rounds: int = 5000) -> list[float]:
    """The last six models of Example 1: six times θ* where it converges."""
    return example_1(phi=phi, rounds=rounds, optimum=optimum)[-6:]


def example_2(
    *, q: Sequence[float], phi: float, optima: Sequence[float], rounds: int = 40_000
) -> list[float]:
    """The last models of Example 2, two clients that alternate: after client 1 and after client 2."""
    alternating = ({n % 2: max(n - 1, 0)} for n in range(rounds))
    models = list(_models(alternating, q, phi, optima))
    return models[-2:]


def example_2_after(*, client: int, q: Sequence[float], phi: float, optima: Sequence[float]) -> float:
    """Where Example 2 ends after client 1 or 2."""
    return example_2(q=q, phi=phi, optima=optima)[client - 1]


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


def four_clients(*, scheme: str, phi: float, rounds: int = 12_000) -> Array:
    """Models of four quadratics under F80 [rounds]; weights by the names of the published code."""
    times = hardware(4, 80)
    p, half = equal(4), Fraction(1, 2)
    counts = weights.fedbuff_participations(times, 2, rounds)
    schedule, d = {
        "identical": (one_by_one(times), [Fraction(1)] * 4),
        "time_based": (one_by_one(times), weights.time_based(p, times)),
        "fedfix": (ticks(times, half), weights.fedfix(p, times, half)),
        "fedbuff identical": (buffers(times, 2), [half] * 4),
        "fedbuff weight": (buffers(times, 2), weights.by_participation(p, counts, rounds)),
    }[scheme]
    played = islice(schedule, rounds)
    return np.array(list(_models(played, [float(each) for each in d], phi, CENTRES)))


def passes_through(*, scheme: str, phi: float, printed: float) -> bool:
    """Whether a mean of 2000 consecutive models is what the published code printed, to its last digit.

    The last 2000 models of a run of unknown length: those that end anywhere in a cycle of 732 arrivals.
    """
    sums = np.cumsum(four_clients(scheme=scheme, phi=phi)[-(2000 + 732) :])
    means = (sums[2000:] - sums[:-2000]) / 2000
    return bool(means.min() - 5e-6 <= printed <= means.max() + 5e-6)


def surrogate_optimum(*, clients: int = 4, spread: int = 80) -> float:
    """Σ θ_i*/τ_i / Σ 1/τ_j: what identical weights minimise (eq. 6)."""
    rate = np.array([float(1 / time) for time in hardware(clients, spread)])
    return float(rate @ np.array(CENTRES) / rate.sum())


# -- Theorem 1 ------------------------------------------------------------------------------------

CURVATURE, NOISE, FIRST = np.array([1.0, 0.6, 0.8, 0.5]), 0.3, 4.0  # λ_i (L = 1), noise of a gradient, θ^0


def theorem_1_share(
    *, scheme: str, steps: int, period: str = "1/2", rounds: int = 1000, seeds: int = 10
) -> float:
    """Share of N ≤ rounds for which the bound of Theorem 1 is above the measured mean excess of L^n.

    Four quadratics under F80, every constant known; the step size is the largest of a grid that meets the
    proof's conditions. The mean is over n < N, k < K and the seeds.
    """
    column, endless = scheme_of(scheme, hardware(4, 80), period)
    schedule = list(islice(endless, rounds))
    d = np.array(column.weights, float)
    q = np.array([[d[i] * (i in here) for i in range(4)] for here in schedule])  # [N, M]
    run = _largest_step(column, steps, rounds, weight=max(1.0, q.sum(1).max()))
    excess = _excess(q, virtual_models(schedule, d, lr=run.lr, steps=steps, noise=NOISE, seeds=seeds)).mean(
        (0, 2)
    )  # [N]
    measured = np.cumsum(excess) / np.arange(1, rounds + 1)
    bounds = [_bound(q[:n], replace(run, rounds=n)) for n in range(1, rounds + 1)]
    return float(np.mean(measured <= np.array(bounds)))


def _largest_step(column: schemes.Scheme, steps: int, rounds: int, weight: float) -> fraboni.FraboniSetting:
    alpha, beta = float(column.alpha), float(column.beta)
    run = fraboni.FraboniSetting(1.0, rounds, alpha, beta, column.delay, steps=steps, weight=weight)
    smaller = (replace(run, lr=lr) for lr in np.logspace(0, -6, 300))
    return next(run for run in smaller if all(run.conditions().values()))


def virtual_models(
    schedule: Sequence[Arrivals], d: Array, *, lr: float, steps: int, noise: float, seeds: int
) -> Array:
    """θ^{n,k} [S, N, K]: the server's model after k of K virtual steps of aggregation n."""
    stream = np.random.default_rng(0)
    models, virtual = [np.full(seeds, FIRST)], np.empty((seeds, len(schedule), steps))
    for n, here in enumerate(schedule):
        local, now = {i: models[version].copy() for i, version in here.items()}, models[-1].copy()
        for k in range(steps):
            virtual[:, n, k] = now
            for i in here:
                gradient = CURVATURE[i] * (local[i] - CENTRES[i]) + noise * stream.normal(size=seeds)
                local[i] -= lr * gradient
                now -= lr * d[i] * gradient
        models.append(now)
    return virtual


def _losses(q: Array, models: Array) -> Array:
    """L^n = Σ q_i(n) L_i of models [..., N], q [N, M]."""
    each: Array = (q * CURVATURE / 2 * (models[..., None] - np.array(CENTRES)) ** 2).sum(-1)
    return each


def _optima(q: Array) -> Array:
    """θ^n*, the optimum of L^n [N]; 0 where no client participates, as L^n is 0."""
    pull = (q * CURVATURE).sum(1)
    optima: Array = (q * CURVATURE * np.array(CENTRES)).sum(1) / np.where(pull > 0, pull, 1)
    return optima


def _excess(q: Array, virtual: Array) -> Array:
    """L^n(θ^{n,k}) − min L^n [S, N, K]."""
    best = _losses(q, _optima(q))
    return np.stack([_losses(q, virtual[:, :, k]) - best for k in range(virtual.shape[2])], axis=2)


def _bound(q: Array, run: fraboni.FraboniSetting) -> float:
    """Theorem 1's bound for weights q [N, M] given, with the constants of this problem."""
    pull = q.mean(0) * CURVATURE
    centre = float(pull @ np.array(CENTRES) / pull.sum())  # θ̄
    optima, totals = _optima(q), q.sum(1)
    residual = float(np.mean(_losses(q, np.full(len(q), centre)) - _losses(q, optima)))
    share = q / np.where(totals > 0, totals, 1)[:, None]  # q̃
    square = (CURVATURE * (optima[:, None] - np.array(CENTRES))) ** 2 + NOISE**2
    sigma1, sigma2 = (float((share**power * square).sum(1).mean()) for power in (1, 2))
    return fraboni.theorem_1(run, FIRST - centre, residual, sigma1, sigma2).value
