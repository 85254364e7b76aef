"""ACE (arXiv 2511.19066, 2025): bounds derived anew, limits under dropouts, noisy quadratics."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.strategies import caches
from fl_core.theory.jackson import Array

# Errors of an asynchronous update and what they do to convergence: vanilla ASGD, FedBuff, CA²FL, ACE, ACED.
#
# Mitigating participation imbalance bias in asynchronous federated learning (arXiv 2511.19066), §3.3, §4,
# Theorems 1 and a.1 to a.6, D.4.1. The text at hand lacks its formulas: everything here is derived anew under
# the paper's assumptions (L-smooth losses F_i, unbiased gradients of variance σ², ‖∇F_i − ∇F‖ ≤ ζ where a
# method needs it), and differs where the paper's argument does not hold. Lemma a.6 treats the noise of two
# server iterations as uncorrelated. But a cached gradient is averaged again and again until its client's next
# one comes. Its noise enters the model with the *number of its uses* /n as weight, about 1 where clients take
# turns: so the first-order noise of ACE is Lησ², as for vanilla ASGD, not Lησ²/n. The sampling noise of one
# update, term A, is still σ²/n. Arrivals do not depend on the gradients, as in the paper.


@dataclass(frozen=True)
class Caching:
    """The quantities in the bounds of ACE and ACED."""

    lr: float  # η
    rounds: int  # T
    gap: float  # Δ = F(w^0) − min F
    noise: float  # σ²
    delay: int  # τ: greatest age of a model behind a gradient that is averaged
    reuse: float  # ρ = (1/T) Σ (Σ of its weights in the T updates)², over all gradients ever cached
    smoothness: float = 1.0  # L


def ace(run: Caching, clients: int) -> float:
    """Bounds (1/T) Σ E‖∇F(w^t)‖² for ACE, whatever the heterogeneity (Theorem 1).

    4Δ/(ηT) + 2ρLησ² + 14L²η²τ²σ²/n for η ≤ min(1/(2L), 1/(√8 Lτ)). Proof: let w̃ be w, but with the noise
    of each gradient applied in full, including all its later uses, at its first use. Then noise enters w̃
    once and fresh; E‖w̃ − w‖² ≤ η²τ²σ²/n; descend on F(w̃), bound ‖∇F(w̃) − ū‖² by 2L²‖w̃ − w‖² + 2‖C‖²,
    and return to w.
    """
    _check(run, 1 / max(2, math.sqrt(8) * run.delay))
    return _bound(run, 14 / clients)


def aced(run: Caching, clients: int, fewest: int, bias: float) -> float:
    """Return the bound of ACED on the mean squared gradient norm (Theorem a.6).

    `fewest` ≥ 1 is n_min, and `bias` is ζ² mean_t min(1, (n−a_t)/a_t)².
    4Δ/(ηT) + 2ρLησ² + (16/n_min + 6n/n_min²) L²η²τ²σ² + 8 bias for η ≤ min(1/(2L), 1/(4Lτ)), with a_t clients
    active in iteration t: only iterations with some clients inactive contribute to the bias.
    """
    _check(run, 1 / max(2, 4 * run.delay))
    return _bound(run, 16 / fewest + 6 * clients / fewest**2) + 8 * bias


def partial_bias(active: Array, clients: int, dissimilarity: float) -> float:
    """ζ² mean_t min(1, (n−a_t)/a_t)² from the numbers of active clients a_t [T], ζ² ≥ ‖∇F_i − ∇F‖².

    The deviations ∇F_i − ∇F add up to 0, so that those of a_t clients weigh no more than those of the others.
    """
    return float(dissimilarity * np.mean(np.minimum(1, (clients - active) / active) ** 2))


def learning_rate(run: Caching) -> float:
    """η = √(2Δ/(ρLσ²T)), where the two leading terms of the bounds balance (Theorem a.2).

    The paper has √(n/T) up to a constant: that is ρ = 1/n, noise that is never reused.
    """
    return math.sqrt(2 * run.gap / (run.reuse * run.smoothness * run.noise * run.rounds))


def dropout_limit(curvature: Array, centres: Array, dropped: Array, last: Array) -> Array:
    """The limit of ACE after drop-outs [d]: Σ_active ∇F_i(w) + Σ_dropped U_i = 0, for F_i = λ_i/2 ‖w − c_i‖².

    curvature λ [n], centres c [n, d], dropped [n] true for those that left, last gradients U [n, d] (D.4.1).
    """
    active = ~np.asarray(dropped, bool)
    limit: Array = (curvature[active] @ centres[active] - last[~active].sum(0)) / curvature[active].sum()
    return limit


def _check(run: Caching, limit: float) -> None:
    if run.lr * run.smoothness > limit:
        raise ValueError(f"the step size {run.lr} is above the theorem's {limit / run.smoothness}")


def _bound(run: Caching, memory: float) -> float:
    step = run.lr * run.smoothness
    start = 4 * run.gap / (run.lr * run.rounds)
    return start + (2 * run.reuse * step + memory * (step * run.delay) ** 2) * run.noise


# ACE's exact statements: limits under dropouts (arXiv 2511.19066, 2025).

CENTRES = ((1.0, 0.0), (0.0, 2.0), (-1.0, 1.0), (2.0, -1.0), (0.5, 0.5))
SPEEDS = (1, "3/2", 2, "5/2", 3)  # time of a job


def after_dropouts(strategy: str) -> float:
    """Shift of `strategy` from the optimum of the other clients after two of five leave, in units of ACE's.

    ACE's shift is that of its fixed point Σ_active ∇F_i(w) + Σ_dropped U_i = 0, with U_i from its table.
    """
    ace = _played("ace")
    kept = caches.rows(ace.server.memory.cache, range(5), ace.server.model)
    gradients = -kept.numpy() / ace.server.local_lr  # U_i; the table holds updates
    dropped = ~np.array(ace.server.present)
    centres = np.array(CENTRES)
    pulled = dropout_limit(np.ones(5), centres, dropped, gradients)
    others = centres[~dropped].mean(0)
    end = ace if strategy == "ace" else _played(strategy)
    pull = end.server.model.numpy() - others
    return float(pull @ (pulled - others) / ((pulled - others) ** 2).sum())


def _played(strategy: str) -> Simulation:
    """Return a run in which two of five clients leave."""
    experiment = Experiment(
        scenario={
            "problem": {"name": "quadratic", "centres": CENTRES, "noise": 0.0},
            "timing": {
                "durations": {"name": "fixed", "times": SPEEDS},
                "availability": {"name": "dropouts", "share": 0.4, "at": 30},
            },
            "budget": {"updates": 4000},
            "evaluations": 1,
        },
        strategy={"name": strategy, "local_lr": 0.02, "server_lr": 1.0},
        seed=0,
    )
    simulation = Simulation(experiment)
    for _ in simulate(simulation, OneByOne()):
        pass
    return simulation


# What ACE's theorems say, measured on noisy quadratics (arXiv 2511.19066, 2025, Theorems 1, a.2, a.6).
#
# The text at hand lacks the formulas; the bounds are those above, derived anew. They count how
# often a cached gradient is used, where Lemma a.6 takes the noise of two iterations as uncorrelated.

RUNS = 40  # independent runs, computed at once
FIRST = 4.0  # w^0
CLIENTS = 8
ROUNDS = 3000

Order = Literal["turns", "uniform", "by-speed"]


@dataclass(frozen=True)
class Cached:
    """A run of ACE, or ACED, on F_i = λ_i/2 (w − c_i)², one arrival an iteration after a first pass."""

    slope: float  # mean of ‖∇F(w^t)‖² over iterations and runs
    tail: float  # the same over the last three quarters
    active: Array  # |A(t)| [T]
    bound: Caching  # the quantities of the theorems, as measured


def cached(
    order: NDArray[np.int64],
    curvature: Array,
    centres: Array,
    *,
    lr: float,
    noise: float,
    threshold: int = 10**9,
) -> Cached:
    """Runs with gradients of standard deviation `noise`; the client that arrives gets the new model.

    `order` [T − 1] names the client that arrives; `threshold` is τ_algo, by arrivals.
    """
    rng, n = np.random.default_rng(0), len(centres)
    w = np.full(RUNS, FIRST)
    models = [w]

    def gradient(client: int, model: Array) -> Array:
        return curvature[client] * (model - centres[client]) + noise * rng.normal(size=RUNS)

    table = np.array([gradient(client, w) for client in range(n)])
    held, arrived, behind = np.zeros((3, n), int)  # version at work on; iteration of arrival; version cached
    used, retired, active, delay = np.zeros(n), [], [], 0  # weight of a cached gradient, summed over its uses
    for t, client in enumerate([None, *order.tolist()]):
        if client is not None:
            table[client] = gradient(client, models[held[client]])
            retired.append(used[client])
            used[client], arrived[client], behind[client] = 0, t, held[client]
        here = t - arrived <= threshold
        used[here] += 1 / here.sum()
        active.append(here.sum())
        delay = max(delay, int((t - behind[here]).max()))
        w = w - lr * table[here].mean(0)
        models.append(w)
        held[slice(None) if client is None else client] = t + 1
    rounds = len(active)
    squares = (curvature.mean() * np.array(models[:-1]) - (curvature * centres).mean()) ** 2
    best = curvature @ centres / curvature.sum()
    return Cached(
        slope=float(squares.mean()),
        tail=float(squares[rounds // 4 :].mean()),
        active=np.array(active),
        bound=Caching(
            lr=lr,
            rounds=rounds,
            gap=float(np.mean(curvature / 2 * ((FIRST - centres) ** 2 - (best - centres) ** 2))),
            noise=noise**2,
            delay=delay,
            reuse=float((np.square(retired).sum() + np.square(used).sum()) / rounds),
            smoothness=float(curvature.max()),
        ),
    )


def arrivals(order: Order, clients: int, rounds: int) -> NDArray[np.int64]:
    """Which client arrives in each iteration [rounds]; by speed, client i comes i + 1 times as often as 0."""
    rng, speed = np.random.default_rng(1), np.arange(1, clients + 1)
    if order == "turns":
        return np.arange(rounds) % clients
    return rng.choice(clients, rounds, p=None if order == "uniform" else speed / speed.sum())


def bound_slack(order: Order, spread: float, threshold: int | None = None) -> float:
    """The bound of Theorem 1, or of Theorem a.6 where a threshold is given, over the mean of ‖∇F‖².

    At the largest rate that the theorem allows for the delay that this order of arrivals brings about.
    """
    came, centres = arrivals(order, CLIENTS, ROUNDS), spread * np.linspace(-1, 1, CLIENTS)
    curvature = np.linspace(0.5, 1, CLIENTS) if threshold is None else np.ones(CLIENTS)
    limit = 10**9 if threshold is None else threshold
    first = cached(came, curvature, centres, lr=1e-3, noise=1.0, threshold=limit)  # to learn the delay
    most = 1 / ((8**0.5 if threshold is None else 4) * first.bound.delay)
    run = cached(came, curvature, centres, lr=most, noise=1.0, threshold=limit)
    if threshold is None:
        return ace(run.bound, CLIENTS) / run.slope
    dissimilarity = float(np.max((centres - centres.mean()) ** 2))
    bias = partial_bias(run.active, CLIENTS, dissimilarity)
    return aced(run.bound, CLIENTS, int(run.active.min()), bias) / run.slope


def noise_exponent() -> float:
    """The power of n in ACE's stationary E‖∇F‖² at one rate: clients alike, taking turns, ητ ≤ 0.1."""
    several, floors = [5, 10, 20, 40], []
    for n in several:
        order = arrivals("turns", n, 12_000)
        floors.append(cached(order, np.ones(n), np.full(n, FIRST), lr=2.5e-3, noise=1.0).tail)
    return float(np.polyfit(np.log(several), np.log(floors), 1)[0])


def best_rate_exponent() -> float:
    """The power of n in the rate that balances the leading terms of ACE's bound (Theorem a.2).

    The number of uses of a cached gradient is measured where clients take turns.
    """
    several, rates = [5, 10, 20, 40], []
    for n in several:
        run = cached(arrivals("turns", n, 2000), np.ones(n), np.zeros(n), lr=1e-3, noise=1.0).bound
        rates.append(learning_rate(run))
    return float(np.polyfit(np.log(several), np.log(rates), 1)[0])


def vanilla_floor(speeds: Sequence[str | int]) -> float:
    """‖∇F‖² of vanilla ASGD after 32 T iterations over that after T, with η = c/√T; five clients at work.

    A job takes its client's speed, on average: jobs are exponential. Without noise but that of who arrives;
    each is the mean over the last tenth of a run, and over four seeds.
    """
    few, many = 500, 16_000
    short, long = (
        np.mean([_late_slope(speeds, rounds, 1 / rounds**0.5, seed) for seed in range(4)])
        for rounds in (few, many)
    )
    return float(long / short)


def _late_slope(speeds: Sequence[str | int], rounds: int, lr: float, seed: int) -> float:
    centres = ((4.0, 0.0), (0.0, 2.0), (-1.0, 1.0), (2.0, -1.0), (-5.0, 0.5))
    times = [str(Fraction(time)) for time in speeds]
    simulation = Simulation(
        Experiment.model_validate(
            {
                "scenario": {
                    "problem": {"name": "quadratic", "centres": centres},
                    "timing": {"durations": {"name": "exponential", "times": times}},
                    "budget": {"updates": rounds},
                },
                "strategy": {"name": "asgd", "local_lr": lr},
                "seed": seed,
            }
        )
    )
    optimum, server = np.mean(centres, axis=0), simulation.server
    late = (event for event in simulate(simulation) if event.version > 0.9 * rounds)
    return float(np.mean([np.square(server.model.numpy() - optimum).sum() for _ in late]))
