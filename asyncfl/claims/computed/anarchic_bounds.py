"""Anarchic FL's Theorems 2 to 4 as bounds, and the speed-up of its corollaries (Yang et al., ICML 2022).

On quadratics f_i(x) = ½‖x − c_i‖² with normal gradient noise: every constant of the theorems is known, L = 1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from asyncfl.claims.computed.anarchic import BIASED, CENTRES, normal_optima
from asyncfl.claims.computed.slack import slack
from asyncfl.claims.theory import anarchic
from asyncfl.claims.theory.anarchic import AnarchicBound, AnarchicSetting
from fl_core.theory.jackson import Array

NOISE, FIRST = 0.5, 4.0
THEOREMS: dict[str, Callable[[AnarchicSetting], AnarchicBound]] = {
    "general": anarchic.general,  # Theorem 2: AFA-CD, any arrivals
    "uniform": anarchic.uniform,  # Theorem 3: AFA-CD, uniform arrivals
    "silo": anarchic.silo,  # Theorem 4: AFA-CS
}


def played(
    run: AnarchicSetting,
    centres: Array,
    first: Array,
    *,
    memory: bool = False,
    chances: Sequence[float] | None = None,
    seeds: int = 8,
) -> tuple[Array, Array]:
    """x_t [T, S, d] and G_t [T, S, d] of AFA-CD, or of AFA-CS with its memory.

    AFA-CD draws m workers by `chances` without replacement; each starts from a model up to τ rounds old and
    takes 1 to K steps. Under AFA-CS workers come in turn, m a round, after a first pass at x_0 without noise.
    """
    rng, size, d = np.random.default_rng(0), len(centres), centres.shape[1]
    logits = np.log(np.full(size, 1 / size) if chances is None else np.array(chances))
    deviation = math.sqrt(run.noise / d)  # of each coordinate: σ_L² is that of the whole gradient
    models, means = np.empty((run.rounds + 1, seeds, d)), np.empty((run.rounds, seeds, d))
    models[0] = first
    slots, rows = np.repeat((first - centres)[None], seeds, 0), np.arange(seeds)[:, None]
    for t in range(run.rounds):
        if memory:
            who = np.tile((t * run.arrivals + np.arange(run.arrivals)) % size, (seeds, 1))
            x = np.repeat(models[t][:, None], run.arrivals, 1)
        else:  # the m largest of log p + Gumbel noise are a draw without replacement
            keys = logits + rng.gumbel(size=(seeds, size))
            who = np.argpartition(keys, size - run.arrivals, 1)[:, size - run.arrivals :]
            x = models[np.maximum(0, t - rng.integers(run.delay + 1, size=who.shape)), rows]
        steps, total = rng.integers(1, run.steps + 1, size=(*who.shape, 1)), np.zeros_like(x)
        for k in range(run.steps):
            gradient = (k < steps) * (x - centres[who] + deviation * rng.normal(size=x.shape))
            x, total = x - run.lr * gradient, total + gradient
        slots[rows, who] = total / steps
        means[t] = slots.mean(1) if memory else (total / steps).mean(1)
        models[t + 1] = models[t] - run.server_lr * run.lr * means[t]
    return models[:-1], means


# -- bounds ---------------------------------------------------------------------------------------


def _setting(theorem: str, rounds: int, *, steps: int, delay: int, noise: float) -> AnarchicSetting:
    """The run with the largest η_L of a grid for which every condition of the theorem is met."""
    away = CENTRES - CENTRES.mean(0)
    run = AnarchicSetting(
        lr=1.0,
        server_lr=float(steps),
        rounds=rounds,
        gap=float((FIRST - CENTRES.mean()) ** 2 / 2),
        workers=len(CENTRES),
        arrivals=2,
        noise=noise,
        dissimilarity=float((away**2).max()),
        delay=delay,
        steps=steps,
    )
    rates = (replace(run, lr=lr) for lr in np.logspace(0, -5, 400))
    return next(rate for rate in rates if THEOREMS[theorem](rate).holds)


def bound_slack(
    *,
    theorem: str,
    steps: int,
    delay: int,
    arrivals: str = "uniform",
    noise: float = NOISE**2,
    rounds: int = 600,
) -> float:
    """The theorem's bound over the measured (1/T) Σ E‖∇f(x_t)‖², where it is tightest in T ≤ rounds."""
    run = _setting(theorem, rounds, steps=steps, delay=delay, noise=noise)
    models, _ = _of_theorem(theorem, run, arrivals)
    slopes = ((models - CENTRES.mean()) ** 2).sum(-1).mean(1)
    return slack(lambda t: THEOREMS[theorem](replace(run, rounds=t)).value, slopes)


def condition_7(*, first: int, last: int, rounds: int = 4000) -> float:
    """Share of rounds `first` to `last` that meet Theorem 4's condition (7), on the noisy quadratics."""
    run = _setting("silo", rounds, steps=1, delay=2, noise=NOISE**2)
    _, means = _of_theorem("silo", run, "in turn")
    return anarchic.loud(run, (means**2).sum(-1).mean(1)[first:last])


def _of_theorem(theorem: str, run: AnarchicSetting, arrivals: str) -> tuple[Array, Array]:
    chances = BIASED if arrivals == "biased" else None
    return played(run, CENTRES, np.array([FIRST]), memory=theorem == "silo", chances=chances)


# -- speed-up -------------------------------------------------------------------------------------


def speed_up(*, strategy: str, sizes: Sequence[int], horizons: Sequence[int], target: float) -> float:
    """Exponent of the rounds until (1/T) Σ E‖∇f(x_t)‖² is `target`, against m (AFA-CD) or M (AFA-CS).

    Rates are the corollaries', η_L = 1/√T and η = √m or √M; all step conditions of Theorem 3 or 4 are met at
    every horizon, or ValueError. AFA-CD draws m of 16 workers; of AFA-CS 2 of M workers arrive, in turn.
    """
    needed = []
    for size in sizes:
        slopes = [_mean_slope(strategy, size, rounds) for rounds in horizons]
        exponent, offset = np.polyfit(np.log(horizons), np.log(slopes), 1)
        needed.append((np.log(target) - offset) / exponent)
    return float(np.polyfit(np.log(sizes), needed, 1)[0])


def _mean_slope(strategy: str, size: int, rounds: int) -> float:
    """(1/T) Σ E‖∇f(x_t)‖²; optima and gradient noise are normal, in ten dimensions."""
    memory = strategy == "afa_cs"
    workers, arrivals = (size, 2) if memory else (16, size)
    centres = normal_optima(workers)
    lr, server_lr = anarchic.learning_rates(rounds, size)
    first = np.full(centres.shape[1], 2.0)
    run = AnarchicSetting(
        lr=lr,
        server_lr=server_lr,
        rounds=rounds,
        gap=float(first @ first) / 2,
        workers=workers,
        arrivals=arrivals,
        noise=float(len(first)),
        dissimilarity=float((centres**2).sum(1).max()),
        delay=math.ceil(workers / arrivals) - 1 if memory else 0,
    )
    conditions = THEOREMS["silo" if memory else "uniform"](run).conditions
    failed = [name for name, met in conditions.items() if not met]
    if failed:
        raise ValueError(f"outside the theorem's conditions at T = {rounds}: {', '.join(failed)}")
    models, _ = played(run, centres, first, memory=memory, seeds=4)
    return float((models**2).sum(-1).mean())
