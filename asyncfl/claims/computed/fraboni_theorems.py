"""Theorems 1, 2, 4, Corollaries 3, 5 of Fraboni et al. (JMLR 2023) as bounds; client sampling (C.2, C.3).

Four quadratics L_i = λ_i/2 (θ − θ_i*)² under F80, constants known. The step size is the largest of a grid
that meets the proof's conditions; means are over n < N, k < K and the seeds.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

import numpy as np

from asyncfl.claims.computed.fraboni_quadratics import CENTRES
from asyncfl.claims.computed.fraboni_schedules import Arrivals, equal, hardware, scheme_of
from asyncfl.claims.computed.slack import slack
from asyncfl.claims.theory import fraboni, schemes
from asyncfl.claims.theory.fraboni import FraboniBound, FraboniSetting
from fl_core.theory.jackson import Array

CURVATURE, NOISE, FIRST = np.array([1.0, 0.6, 0.8, 0.5]), 0.3, 4.0  # λ_i (L = 1), noise of a gradient, θ^0
CLIENTS = len(CENTRES)
OPTIMUM = float(CURVATURE @ np.array(CENTRES) / CURVATURE.sum())  # θ* of L, p_i = 1/4


@dataclass(frozen=True)
class Played:
    """A scheme's run on the quadratics."""

    q: Array  # [N, M], q_i(n)
    run: FraboniSetting
    models: Array  # θ^{n,k} [S, N, K]

    def bound(self, rounds: int) -> FraboniBound:
        """Theorem 1 for the first N aggregations, with the constants of this problem."""
        q = self.q[:rounds]
        pull = q.mean(0) * CURVATURE
        centre = float(pull @ np.array(CENTRES) / pull.sum())  # θ̄
        optima = _optima(q)
        residual = float(np.mean(_losses(q, np.full(len(q), centre)) - _losses(q, optima)))
        square = (CURVATURE * (optima[:, None] - np.array(CENTRES))) ** 2 + NOISE**2
        sigma1, sigma2 = (float((_shares(q) ** power * square).sum(1).mean()) for power in (1, 2))
        return fraboni.theorem_1(replace(self.run, rounds=rounds), FIRST - centre, residual, sigma1, sigma2)

    def wanted(self) -> Array:
        """L(θ^{n,k}) − min L of every aggregation [N]."""
        excess: Array = _client_losses(self.models).mean(-1) - _client_losses(np.array(OPTIMUM)).mean()
        return excess.mean((0, 2))


def played(scheme: str, steps: int, period: str, rounds: int, seeds: int = 10) -> Played:
    """Of a scheme with fixed times; the delays of its schedule are exact."""
    column, endless = scheme_of(scheme, hardware(CLIENTS, 80), period)
    schedule = list(islice(endless, rounds))
    d = np.array(column.weights, float)
    q = np.array([[d[i] * (i in here) for i in range(CLIENTS)] for here in schedule])
    run = _largest_step(column, steps, rounds, weight=max(1.0, q.sum(1).max()))
    models = virtual_models(schedule, d, lr=run.lr, steps=steps, noise=NOISE, seeds=seeds)
    return Played(q, run, models)


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


# -- the theorems ---------------------------------------------------------------------------------


def theorem_1_slack(*, scheme: str, steps: int, period: str = "1/2", rounds: int = 1000) -> float:
    """The bound of Theorem 1 over the measured mean excess of L^n, where it is tightest in N ≤ rounds."""
    here = played(scheme, steps, period, rounds)
    best = _losses(here.q, _optima(here.q))
    each = [_losses(here.q, here.models[:, :, k]) - best for k in range(steps)]
    return slack(lambda n: here.bound(n).value, np.mean(each, axis=(0, 1)))


def theorem_2_slack(*, scheme: str, steps: int, period: str = "1/2", rounds: int = 500) -> float:
    """The bound of Theorem 2 over the measured mean of ‖∇L‖², where it is tightest in N ≤ rounds.

    Every client is a data type of its own, r_j = 1/4. Asynchronous FedAvg has one of four in an aggregation.
    """
    here = played(scheme, steps, period, rounds)
    given, totals = _shares(here.q), here.q.sum(1)
    if not totals.all():
        raise ValueError("Theorem 2 divides by q(n): no aggregation may be empty")
    chi2 = fraboni.chi_square(np.full(CLIENTS, 1 / CLIENTS), given)
    unfair = (given * _client_losses(_optima(here.q))).sum(1)
    unseen = (np.where(given > 0, 0.0, 1 / CLIENTS) * _client_losses(here.models).mean((0, 2))).sum(1)
    slopes = (CURVATURE * (here.models[..., None] - np.array(CENTRES))).mean(-1) ** 2

    def bound(n: int) -> float:
        first = here.bound(n).value
        return fraboni.theorem_2(
            1.0, first, chi2=chi2[:n], totals=totals[:n], unfair=unfair[:n], unseen=unseen[:n]
        )

    return slack(bound, slopes.mean((0, 2)))


def theorem_4_slack(*, scheme: str, steps: int, windows: int, period: str = "1/2") -> float:
    """The bound of Theorem 4 over the measured mean of L − min L, where it is tightest in N = W, 2W, ….

    B² of Assumption 5 is the largest E‖g_i‖² along the run.
    """
    window = scheme_of(scheme, hardware(CLIENTS, 80), period)[0].window
    here = played(scheme, steps, period, windows * window)
    slopes = np.abs(CURVATURE * (here.models[..., None] - np.array(CENTRES)))
    largest = float(np.sqrt(slopes.max() ** 2 + NOISE**2))
    return slack(
        lambda n: fraboni.theorem_4(here.run, here.bound(n), window, largest), here.wanted(), every=window
    )


def bound_vanishes(*, window: float, delay: float, lr: float) -> bool:
    """Whether Theorem 4's bound tends to 0 for W = N^a, τ = N^b and η_l ∝ N^−c.

    It is taken to do so if it falls at least threefold from N = 1e60 to 1e70 and again to 1e80: late enough
    for the slowest of its terms to have its say. Step sizes outside the conditions do not count.
    """
    values = []
    for rounds in (1e60, 1e70, 1e80):
        run = FraboniSetting(1e-3 * rounds**-lr, int(rounds), 1.0, 1.0, int(rounds**delay))
        if not all(run.conditions().values()):
            return False
        first = fraboni.theorem_1(run, 1.0, 0.1, 1.0, 1.0)
        values.append(fraboni.theorem_4(run, first, int(rounds**window), 1.0))
    return values[0] > 3 * values[1] > 9 * values[2]


def any_rate_vanishes(*, window: float, delay: float) -> bool:
    """Whether it does for any c = 0.1, 0.2, …, 1.5."""
    return any(bound_vanishes(window=window, delay=delay, lr=c / 10) for c in range(1, 16))


# -- client sampling (C.2, C.3) -------------------------------------------------------------------


def sampled(name: str, size: int, clients: int = CLIENTS) -> schemes.Scheme:
    """Rounds of `size` clients, drawn uniformly or by MD sampling."""
    scheme = {"uniform": schemes.uniform_sampling, "MD": schemes.md_sampling}[name]
    return scheme(equal(clients), hardware(clients, 80), size)


def property_1_holds(*, sampling: str, clients: int, size: int) -> bool:
    """Whether E[ω_i] = p_i and E[ω_i ω_j] = α p_i p_j for i ≠ j, by enumeration of all draws."""
    scheme = sampled(sampling, size, clients)
    draws = _draws(sampling, clients, size)
    chance = Fraction(1, len(draws))
    omega = [[scheme.weights[i] * draw.count(i) for i in range(clients)] for draw in draws]
    mean = [chance * sum(each[i] for each in omega) for i in range(clients)]
    joint = {
        chance * sum(each[i] * each[j] for each in omega)
        for i, j in itertools.permutations(range(clients), 2)
    }
    return mean == equal(clients) and joint == {scheme.alpha / clients**2}


def sampling_trends(*, sampling: str, clients: int) -> bool:
    """Whether, with more clients in a round, α < 1 grows and 0 < β < 1 falls (of m = 2, …, M − 1)."""
    columns = [sampled(sampling, size, clients) for size in range(2, clients)]
    alphas, betas = [column.alpha for column in columns], [column.beta for column in columns]
    inside = all(0 < alpha < 1 for alpha in alphas) and all(0 < beta < 1 for beta in betas)
    return inside and alphas == sorted(set(alphas)) and betas == sorted(set(betas), reverse=True)


def faster_rounds(*, sampling: str, clients: int) -> bool:
    """Whether E max_{i∈S_n} T_i is below max T_i for every m < M, so that there are more rounds in a time."""
    slowest = max(hardware(clients, 80))
    return all(sampled(sampling, size, clients).periods[0] < slowest for size in range(1, clients))


def corollary_3_slack(*, sampling: str, size: int, steps: int, rounds: int = 1000, seeds: int = 100) -> float:
    """ε_F + ε_K + ε_α + ε_β over the measured mean of L − min L, where it is tightest in N ≤ rounds.

    Clients are sampled without bias, so that q_i(n) = p_i in every round.
    """
    column = sampled(sampling, size)
    q = np.full((rounds, CLIENTS), 1 / CLIENTS)
    run = _largest_step(column, steps, rounds, weight=1.0)
    rng = np.random.default_rng(0)
    weight, model = float(column.weights[0]), np.full(seeds, FIRST)
    models = np.empty((seeds, rounds, steps))
    for n in range(rounds):
        counts = np.array([_counts(sampling, size, rng) for _ in range(seeds)])  # [S, M]
        local, now = np.repeat(model[:, None], CLIENTS, 1), model.copy()
        for k in range(steps):
            models[:, n, k] = now
            noise = NOISE * rng.normal(size=local.shape)
            gradient = CURVATURE * (local - np.array(CENTRES)) + noise
            local -= run.lr * gradient
            now = now - run.lr * weight * (counts * gradient).sum(1)
        model = now
    here = Played(q, run, models)
    return slack(lambda n: here.bound(n).vanishing, here.wanted())


def biased_sampling_ends(
    *, criterion: str, size: int, reserved: bool = False, lr: float = 0.002, rounds: int = 20_000
) -> float:
    """|θ − θ*| in the end, over the mean distance of clients' optima from θ*, under biased client sampling.

    A round takes the `size` clients that are fastest (Nishio & Yonetani), or of highest loss (Cho et al.).
    `reserved`: every second round takes the others, so that Σ q_i = W p_i in every window of two.
    """
    model, centres, path = FIRST, np.array(CENTRES), []
    for n in range(rounds):
        losses = CURVATURE / 2 * (model - centres) ** 2
        order = np.argsort(losses) if criterion == "loss" else np.arange(CLIENTS)  # client 0 is the slowest
        who = order[:-size] if reserved and n % 2 else order[-size:]
        model -= lr * float((CURVATURE[who] * (model - centres[who])).mean())
        path.append(model)
    return abs(float(np.mean(path[-100:])) - OPTIMUM) / float(np.abs(centres - OPTIMUM).mean())


def _draws(sampling: str, clients: int, size: int) -> list[tuple[int, ...]]:
    """All equally likely draws of a round."""
    if sampling == "uniform":
        return list(itertools.combinations(range(clients), size))
    return list(itertools.product(range(clients), repeat=size))


def _counts(sampling: str, size: int, rng: np.random.Generator) -> Array:
    """How often each client is in a round's draw [M]."""
    who = rng.choice(CLIENTS, size, replace=sampling == "MD")
    return np.bincount(who, minlength=CLIENTS).astype(float)


# -- the quadratics -------------------------------------------------------------------------------


def _largest_step(column: schemes.Scheme, steps: int, rounds: int, weight: float) -> FraboniSetting:
    alpha, beta = float(column.alpha), float(column.beta)
    run = FraboniSetting(1.0, rounds, alpha, beta, column.delay, steps=steps, weight=weight)
    smaller = (replace(run, lr=lr) for lr in np.logspace(0, -6, 300))
    return next(run for run in smaller if all(run.conditions().values()))


def _client_losses(models: Array) -> Array:
    """L_i of models [...], [..., M]."""
    each: Array = CURVATURE / 2 * (models[..., None] - np.array(CENTRES)) ** 2
    return each


def _losses(q: Array, models: Array) -> Array:
    """L^n = Σ q_i(n) L_i of models [..., N], q [N, M]."""
    each: Array = (q * _client_losses(models)).sum(-1)
    return each


def _optima(q: Array) -> Array:
    """θ^n*, the optimum of L^n [N]; 0 where no client participates, as L^n is 0."""
    pull = (q * CURVATURE).sum(1)
    optima: Array = (q * CURVATURE * np.array(CENTRES)).sum(1) / np.where(pull > 0, pull, 1)
    return optima


def _shares(q: Array) -> Array:
    """s̃(n) = q_i(n)/q(n) [N, M], 0 where no client participates."""
    totals = q.sum(1)
    shares: Array = q / np.where(totals > 0, totals, 1)[:, None]
    return shares
