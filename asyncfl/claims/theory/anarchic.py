"""Anarchic federated learning: lower bound, step conditions and rates of AFA-CD and AFA-CS.

Yang, Zhang, Khanduri, Liu: Anarchic federated learning, ICML 2022 (arXiv 2108.09875), Theorems 1 to 4 and
Corollaries 1 to 3. The server steps by ηη_L times a mean of returned gradients.

Printed conditions from which the proofs do not follow are replaced by those from which they do:

- where a proof counts how often an iterate may serve as base model, at most τ + 1 times, the paper has τ,
  and a condition that is empty at τ = 0 (Theorems 2 and 3);
- Theorem 3 completes a square (below eq. b12) that needs Lηη_L + L²η²η_L²τ² ≤ m(M−1)/(2M(m−1)) without
  saying so;
- the last number of Theorem 4's condition (4) comes out as 360 where 320 is printed.
"""

from dataclasses import dataclass

import numpy as np

from fl_core.theory.jackson import Array


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
