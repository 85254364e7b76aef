"""Yang, Zhang, Khanduri, Liu: Anarchic federated learning (ICML 2022): bounds, floors, quadratics."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import Record, run
from fl_core.server.server import Server
from fl_core.strategies.afa_cs import AFACS
from fl_core.streams import stream
from fl_core.theory.jackson import Array
from tests.papers.slack import slack

# Anarchic federated learning: lower bound, step conditions and rates of AFA-CD and AFA-CS.
#
# Yang, Zhang, Khanduri, Liu: Anarchic federated learning, ICML 2022 (arXiv 2108.09875), Theorems 1 to 4 and
# Corollaries 1 to 3. The server steps by ηη_L times a mean of returned gradients.
#
# Printed conditions from which the proofs do not follow are replaced by those from which they do:
#
# - where a proof counts how often an iterate may serve as base model, at most τ + 1 times, the paper has τ,
#   and a condition that is empty at τ = 0 (Theorems 2 and 3);
# - Theorem 3 completes a square (below eq. b12) that needs Lηη_L + L²η²η_L²τ² ≤ m(M−1)/(2M(m−1)) without
#   saying so;
# - the last number of Theorem 4's condition (4) comes out as 360 where 320 is printed.


@dataclass(frozen=True)
class AnarchicSetting:
    """The quantities in the bounds."""

    lr: float  # η_L
    server_lr: float  # η
    rounds: int  # T
    gap: float  # f(x_0) − min f
    workers: int  # M
    arrivals: int  # m, updates a round
    noise: float  # σ_L², variance of a stochastic gradient
    dissimilarity: float  # σ_G² ≥ ‖∇f_i − ∇f‖²
    delay: int = 0  # τ, the largest
    steps: int = 1  # K, the most local steps
    smoothness: float = 1.0  # L

    @property
    def step(self) -> float:
        """Lηη_L."""
        return self.smoothness * self.server_lr * self.lr

    @property
    def local(self) -> float:
        """L²η_L²: a local step, squared."""
        return (self.smoothness * self.lr) ** 2


@dataclass(frozen=True)
class AnarchicBound:
    """(1/T) Σ E‖∇f(x_t)‖² ≤ 4 gap/(ηη_L T) + 4(α_L σ_L² + α_G σ_G²), where every condition is met."""

    start: float  # 4 gap/(ηη_L T)
    noise: float  # 4 α_L σ_L²
    dissimilarity: float  # 4 α_G σ_G²
    conditions: dict[str, bool]

    @property
    def value(self) -> float:
        """The bound."""
        return self.start + self.noise + self.dissimilarity

    @property
    def holds(self) -> bool:
        """Whether the theorem applies to these step sizes."""
        return all(self.conditions.values())


def general(run: AnarchicSetting) -> AnarchicBound:
    """Theorem 2: AFA-CD, arbitrary arrivals. The term 6σ_G² of its bound does not vanish."""
    m, K, tau, step, local = run.arrivals, run.steps, run.delay, run.step, run.local
    alpha_noise = step / m + 3 * tau**2 * step**2 / (2 * m) + 15 / 2 * K * local
    alpha_dissimilarity = 3 / 2 + 45 * K**2 * local
    conditions = {
        "180 K²L²η_L² (τ+1) < 1": 180 * K**2 * local * (tau + 1) < 1,
        "2Lηη_L + 3τ²L²η²η_L² ≤ 1": 2 * step + 3 * tau**2 * step**2 <= 1,
    }
    return _bound(run, alpha_noise, alpha_dissimilarity, conditions)


def uniform(run: AnarchicSetting) -> AnarchicBound:
    """Theorem 3: AFA-CD, the m workers of a round drawn uniformly without replacement."""
    m, M, K, tau, local = run.arrivals, run.workers, run.steps, run.delay, run.local
    path = run.step + (tau * run.step) ** 2
    missing = (M - m) / (m * (M - 1)) if M > 1 else 0.0
    square = 1 / 2 if m == M else m * (M - 1) / (2 * M * (m - 1)) if m > 1 else np.inf
    alpha_noise = (run.step + (tau * run.step) ** 2) / m + 5 * K * local + path * missing * 15 * K * local
    alpha_dissimilarity = 30 * K**2 * local + path * missing * (90 * K**2 * local + 3)
    spread = 120 * K**2 * local * (tau + 1)
    spread += 4 * path * missing * (90 * K**2 * local + 3) * (tau + 1)
    conditions = {
        "6(2K²−3K+1)L²η_L² ≤ 1": 6 * (2 * K**2 - 3 * K + 1) * local <= 1,
        "the second, with τ+1": spread < 1,
        "Lηη_L + L²η²η_L²τ² ≤ m(M−1)/(2M(m−1))": bool(path <= square),
    }
    return _bound(run, alpha_noise, alpha_dissimilarity, conditions)


def silo(run: AnarchicSetting) -> AnarchicBound:
    """Theorem 4: AFA-CS, arbitrary arrivals; none of the M slots is taken to be without delay.

    Its series β is taken as small as (5) and (6) allow, β_u = (τ−u) β. Condition (7) is on the iterates,
    not on the step sizes: see `loud`. Checked here is its part independent of them, β_0 ηη_L < 1/2.
    """
    M, K, tau, step, local = run.workers, run.steps, run.delay, run.step, run.local
    stale = 9 * (1 + step)
    spread = stale + 3 / 2 + 3 * step
    alpha_noise = 3 * step / (2 * M) + 5 * K * local * spread
    alpha_dissimilarity = 30 * K**2 * local * spread
    slack = 12 * step + 60 * stale * K**2 * local * (1 + tau) + (180 + 360 * step) * K**2 * local
    conditions = {
        "(4)": slack < 1,
        "(7): β_0 ηη_L < 1/2": _first_beta(run) < 1 / 2,
    }
    return _bound(run, alpha_noise, alpha_dissimilarity, conditions)


def loud(run: AnarchicSetting, updates: Array) -> float:
    """Share of rounds that meet (7), 3σ_L²/(2M) ≤ (1/2 − β_0 ηη_L) E‖G_t‖², from E‖G_t‖² [T].

    Near a stationary point G_t is small and noise is not: a bound that requires 1 there says little.
    """
    needed = 3 * run.noise / (2 * run.workers)
    return float(np.mean(needed <= (1 / 2 - _first_beta(run)) * updates))


def learning_rates(rounds: int, clients: int) -> tuple[float, float]:
    """(η_L, η) = (1/√T, √clients) of the corollaries: clients is m for AFA-CD (1, 2) and M for AFA-CS (3)."""
    return rounds**-0.5, clients**0.5


def _first_beta(run: AnarchicSetting) -> float:
    """ηη_L β_0, with the smallest series that meets (5) and (6)."""
    return 27 * (1 + run.step) * (run.delay * run.step) ** 2 / 2


def _bound(
    run: AnarchicSetting, alpha_noise: float, alpha_dissimilarity: float, conditions: dict[str, bool]
) -> AnarchicBound:
    start = 4 * run.gap / (run.server_lr * run.lr * run.rounds)
    return AnarchicBound(
        start, 4 * alpha_noise * run.noise, 4 * alpha_dissimilarity * run.dissimilarity, conditions
    )


# Anarchic FL on quadratics: the lower bound, the floor, delay and local steps (Yang et al., ICML 2022).

BIASED = (0.9, 0.04, 0.03, 0.02, 0.01)  # arrival probabilities of five workers
CENTRES = np.array([[1.0], [-2.0], [3.0], [-1.0], [0.5]])  # their optima


class FirstPassThenOne(AFACS):
    """AFA-CS after a first pass in which every worker arrives once; then only worker 0 arrives."""

    def next(self, server: Server) -> list[int]:
        return [client for client in server.idle if client == 0 or server.updates == 0]


def lower_bound(strategy: str, g: float, arrivals: Sequence[float]) -> dict[str, float]:
    """Final x from 0 for f₁ = (x+G)², f₂ = (x−G)², and ‖∇f‖² = 4x² there; `arrivals` are probabilities."""
    scenario = _pair(g) | {"budget": {"updates": 3000}}
    scenario["arrangement"] = {"name": "rounds", "workers": 1, "history": 1, "arrivals": tuple(arrivals)}
    rates = {"local_lr": 0.1, "server_lr": 0.1}
    x = _end(Experiment(scenario=scenario, strategy={"name": strategy, "buffer": 1, **rates}, seed=0))
    return {"x": x, "slope": 4 * x**2}


def lower_bound_slope(**how: Any) -> float:
    """‖∇f‖² there."""
    return lower_bound(**how)["slope"]


def first_pass(g: float, start: float) -> float:
    """Where AFA-CS ends when worker 2 arrives once, at the start x₀, and never again: −x₀."""
    scenario = _pair(g, start) | {"budget": {"updates": 4000}}
    strategy = FirstPassThenOne(buffer=1, local_lr=0.1, server_lr=0.1)
    return _end(Experiment(scenario=scenario, strategy=strategy, seed=0))


def floor(strategy: str, spread: float, lr: float, steps: int = 1, rounds: int = 6000) -> float:
    """Mean ‖∇f‖² over the last third, in units of σ_G²; five workers, biased arrivals, no noise."""
    centres = spread * CENTRES
    record = _run(strategy, centres, 2, rounds, lr=lr, arrivals=BIASED, steps=steps)
    late = record.curve[-len(record.curve) // 3 :]
    off = float(np.mean([row["excess_loss"] for row in late]))
    return 2 * off / float(((centres - centres.mean()) ** 2).max())


def floor_exponent(strategy: str, lr: float = 0.005) -> float:
    """Return d log floor / d log σ_G²."""
    spreads = np.array([1.0, 2.0, 4.0])
    floors = [floor(strategy, spread, lr) * spread**2 for spread in spreads]
    return float(np.polyfit(2 * np.log(spreads), np.log(floors), 1)[0])


def floor_ratio(strategy: str, one: dict[str, Any], other: dict[str, Any]) -> float:
    """Ratio of the floors at two choices of rate, K and T."""
    return floor(strategy, 1.0, **one) / floor(strategy, 1.0, **other)


def delay_ratio(strategy: str, rounds: int, history: int, steps: int) -> float:
    """Mean ‖∇f‖² with stale models or more local steps relative to without, at the corollaries' rates."""
    size = 4 if strategy == "afa_cd" else 16
    rates = {"server_lr": size**0.5, "lr": rounds**-0.5}
    late = _mean_slope(strategy, 16, 4, rounds, history=history, steps=steps, **rates)
    return late / _mean_slope(strategy, 16, 4, rounds, **rates)


def normal_optima(workers: int) -> Array:
    """Normal optima [workers, 10] around 0, which are as far from a start whatever M is."""
    centres = stream(0, "centres", workers).normal(size=(workers, 10)) / 10**0.5
    return centres - centres.mean(0)


def _pair(g: float, start: float = 0.0) -> dict[str, Any]:
    return {
        "problem": {"name": "quadratic", "centres": ((-g,), (g,)), "curvature": (2, 2), "start": (start,)},
        "evaluations": 1,
    }


def _end(experiment: Experiment) -> float:
    simulation = Simulation(experiment)
    for _ in simulate(simulation, OneByOne()):
        pass
    return float(simulation.server.model[0])


@cache
def _mean_slope(
    strategy: str, workers: int, arrivals: int, rounds: int, *, lr: float, server_lr: float, **how: int
) -> float:
    """(1/T) Σ E‖∇f(x_t)‖² over four seeds; optima and gradient noise are normal, in ten dimensions."""
    centres, means = normal_optima(workers), []
    for seed in range(4):
        record = _run(
            strategy, centres, arrivals, rounds, lr=lr, server_lr=server_lr, seed=seed, noise=1.0, **how
        )
        means.append(np.mean([2 * row["excess_loss"] for row in record.curve]))
    return float(np.mean(means))


def _run(
    strategy: str,
    centres: Array,
    workers: int,
    rounds: int,
    *,
    lr: float,
    server_lr: float = 1.0,
    arrivals: Any = "uniform",
    history: int = 1,
    steps: int = 1,
    noise: float = 0.0,
    seed: int = 0,
) -> Record:
    problem = {"name": "quadratic", "centres": centres.tolist(), "noise": noise}
    scenario = {
        "problem": problem | {"start": [2.0] * centres.shape[1]},
        "arrangement": {"name": "rounds", "workers": workers, "history": history, "arrivals": arrivals},
        "budget": {"updates": rounds * workers},
        "evaluations": min(rounds, 200),
    }
    local = {"name": "sgd", "steps": steps}
    rule = {"name": strategy, "buffer": workers, "local_lr": lr, "server_lr": server_lr, "local": local}
    return run(Experiment(scenario=scenario, strategy=rule, seed=seed))


# Anarchic FL's Theorems 2 to 4 as bounds, and the speed-up of its corollaries (Yang et al., ICML 2022).
#
# On quadratics f_i(x) = ½‖x − c_i‖² with normal gradient noise: all constants are known, L = 1.

NOISE, FIRST = 0.5, 4.0
THEOREMS: dict[str, Callable[[AnarchicSetting], AnarchicBound]] = {
    "general": general,  # Theorem 2: AFA-CD, any arrivals
    "uniform": uniform,  # Theorem 3: AFA-CD, uniform arrivals
    "silo": silo,  # Theorem 4: AFA-CS
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
    return loud(run, (means**2).sum(-1).mean(1)[first:last])


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
        slopes = [_speed_up_slope(strategy, size, rounds) for rounds in horizons]
        exponent, offset = np.polyfit(np.log(horizons), np.log(slopes), 1)
        needed.append((np.log(target) - offset) / exponent)
    return float(np.polyfit(np.log(sizes), needed, 1)[0])


def _speed_up_slope(strategy: str, size: int, rounds: int) -> float:
    """(1/T) Σ E‖∇f(x_t)‖²; optima and gradient noise are normal, in ten dimensions."""
    memory = strategy == "afa_cs"
    workers, arrivals = (size, 2) if memory else (16, size)
    centres = normal_optima(workers)
    lr, server_lr = learning_rates(rounds, size)
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
