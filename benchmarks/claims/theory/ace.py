"""Errors of an asynchronous update and what they do to convergence: vanilla ASGD, FedBuff, CA²FL, ACE, ACED.

Mitigating participation imbalance bias in asynchronous federated learning (arXiv 2511.19066), §3.3, §4,
Theorems 1 and a.1 to a.6, D.4.1. The text at hand lacks its formulas: everything here is derived anew under
the paper's assumptions (L-smooth losses F_i, unbiased gradients of variance σ², ‖∇F_i − ∇F‖ ≤ ζ where a
method needs it), and differs where the paper's argument does not hold. Lemma a.6 treats the noise of two
server iterations as uncorrelated. But a cached gradient is averaged again and again until its client's next
one comes. Its noise enters the model with the *number of its uses* /n as weight, about 1 where clients take
turns: so the first-order noise of ACE is Lησ², as for vanilla ASGD, not Lησ²/n. The sampling noise of one
update, term A, is still σ²/n. Arrivals do not depend on the gradients, as in the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fl_core.theory.jackson import Array


def sampling_noise(
    noise: float, participants: int, *, local_steps: int = 1, local_lr: float = 0.0, smoothness: float = 0.0
) -> float:
    """E‖A‖² ≤ σ²/(mK) (1 + η_l L)^{2(K−1)} for the mean of m participants (Theorem a.3).

    m is 1 for vanilla ASGD, the buffer's size for FedBuff and CA²FL (whose caches are given), n for ACE.
    The factor bounds how far K local steps can amplify the noise.
    """
    growth = (1 + local_lr * smoothness) ** (2 * (local_steps - 1))
    return noise / (participants * local_steps) * growth


def participation_bias(participants: int, clients: int, dissimilarity: float, spread: float = 0.0) -> float:
    """‖B‖² ≤ 2(1−m/n)² (4ζ² + L²D²) for the mean of m of n clients, K = 1 (Theorem a.4); 0 for ACE.

    B is (1 − m/n) times the difference between the means over participants and over the others.
    `dissimilarity` is ζ², `spread` L²D², D being the largest distance between two stale models in use.
    """
    return 2 * (1 - participants / clients) ** 2 * (4 * dissimilarity + spread)


def delay_error(smoothness: float, drifts: Array) -> float:
    """‖C‖² ≤ (L²/n) Σ ‖w^t − w^{t−τ_i}‖² from drifts ‖w^t − w^{t−τ_i}‖ [n] (Theorem a.5)."""
    return float(smoothness**2 * np.mean(np.square(drifts)))


def drift(lr: float, delay: int, noise: float, expected: float, *, reused: bool) -> float:
    """E‖w^t − w^{t−τ}‖² ≤ 2η² (τ a + τ² E‖ū‖²), or with τ² a where noise is reused (Theorem a.5).

    `noise` a bounds E‖A‖², `expected` the mean of E‖ū‖² over the τ iterations, ū = E[u | stale models].
    With fresh samples in every update (vanilla, FedBuff) their noises are uncorrelated; with cached ones
    (ACE, ACED) they are not.
    """
    return 2 * lr**2 * (delay ** (2 if reused else 1) * noise + delay**2 * expected)


def mse_bound(gap: float, lr: float, rounds: int, mse: float, smoothness: float) -> float:
    """(1/T) Σ E‖∇F(w^t)‖² ≤ 4Δ/(ηT) + 3 mean_t E‖u^t − ∇F(w^t)‖² for η ≤ 1/(4L) (Theorem a.1, eq. 2).

    Holds for any update rule; the mean squared error is at most 3 (E‖A‖² + E‖B‖² + E‖C‖²).
    """
    if lr > 1 / (4 * smoothness):
        raise ValueError(f"the step size {lr} is above 1/(4L) = {1 / (4 * smoothness)}")
    return 4 * gap / (lr * rounds) + 3 * mse


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
    """The same for ACED (Theorem a.6); `fewest` ≥ 1 is n_min, and `bias` is ζ² mean_t min(1, (n−a_t)/a_t)².

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


def expected_active(clients: int, threshold: int) -> float:
    """E|A(t)| = n (1 − (1−1/n)^{τ_algo+1}) for ACED, arrivals uniform over n clients and one an iteration."""
    return clients * (1 - (1 - 1 / clients) ** (threshold + 1))


def learning_rate(run: Caching) -> float:
    """η = √(2Δ/(ρLσ²T)), where the two leading terms of the bounds balance (Theorem a.2).

    The paper has √(n/T) up to a constant: that is ρ = 1/n, noise that is never reused.
    """
    return math.sqrt(2 * run.gap / (run.reuse * run.smoothness * run.noise * run.rounds))


def claimed_rates(uploads: int, clients: int, local_steps: int = 1) -> dict[str, float]:
    """Leading terms of Table a.1 in the number C of uploads, up to constants, as the paper claims them.

    1/√C one by one (with a floor of ζ² that remains), 1/√(KC) buffered, 1/√(nC) for ACE: a speed-up of √(n/K)
    at equal uploads. ACE's rests on Lemma a.6; with reuse ρ it is √(ρ/C).
    """
    return {
        "asgd": uploads**-0.5,
        "fedbuff": (local_steps * uploads) ** -0.5,
        "ca2fl": (local_steps * uploads) ** -0.5,
        "ace": (clients * uploads) ** -0.5,
    }


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
