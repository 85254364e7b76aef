"""Routing of Generalized AsyncSGD: the bounds G (per round) and H (per unit of time), and their gradients.

`optimum` minimises them; predictions of staleness use the network alone. Alahyane, Comte, Jonckheere,
Moulines: Optimizing asynchronous federated learning, 2025 (arXiv 2502.08206), eq. (5) and (12), Propositions
E.2 and F.2. n clients of speeds μ_i (updates per unit of time when busy), m tasks always in flight, each sent
to client i with probability p_i. Gradients take the p_i as free, not constrained to sum to 1.

With a server that takes Exp(μ_s) for an update, tasks of client i are in flight at the client and at the
server, where each is client i's with probability p_i, independently of its place. Their mean number N̄_i is
E[N_i] + p_i E[N_s], and takes the place of E[N_i] in both bounds, since these follow from the numbers in
flight (derived here from the product form; Alahyane, Comte, Jonckheere, arXiv 2603.26231, 2026, add the
server to the model).

Fixed: the values: routings of stored runs minimise these bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Protocol

import numpy as np

from fl_core.theory.jackson import Array, Occupancy


@dataclass(frozen=True, eq=False)
class QueueingNetwork:
    """The stationary network of a routing; delays in rounds (server iterations), times in units of 1/μ."""

    p: Array  # [n], probability that a task goes to client i
    speeds: Array  # [n], μ_i
    tasks: int  # m
    server: float = inf  # μ_s, updates that the server takes per unit of time when busy; infinite: no queue

    @cached_property
    def left(self) -> Occupancy:
        """X: the network just after an update, with the other m − 1 tasks; the server's queue is last."""
        return Occupancy(self._load, self.tasks - 1)

    @cached_property
    def present(self) -> Occupancy:
        """ξ: the network at an arbitrary time, m tasks; the server's queue is last."""
        return Occupancy(self._load, self.tasks)

    @property
    def _load(self) -> Array:
        """The loads of all queues: ρ_i = p_i/μ_i of clients [n], and 1/μ_s if the server has a queue."""
        load = self.p / self.speeds
        return load if self.server == inf else np.append(load, 1 / self.server)

    def in_flight(self, occupancy: Occupancy) -> Array:
        """Return N̄_i = E[N_i] + p_i E[N_s] [n]: the mean numbers of tasks at clients and on their behalf."""
        n = len(self.p)
        return occupancy.mean[:n] + self.p * occupancy.mean[n:].sum()

    @property
    def throughput(self) -> float:
        """λ = Z_{m−1}/Z_m: rounds per unit of time (eq. 13)."""
        return self.present.throughput

    @property
    def relative_delay(self) -> Array:
        """E[D_i] = E[X_i] [n]: expected delay of a round's task, 0 unless sent to client i (eq. 6)."""
        return self.in_flight(self.left)

    @property
    def staleness(self) -> Array:
        """E[X_i]/p_i [n]: mean staleness of an update of client i; the mean weighted by p is m − 1."""
        return self.relative_delay / self.p

    @property
    def sojourn(self) -> Array:
        """E[ξ_i]/(λ p_i) [n]: mean time of a task at client i (Lemma D.3) and at the server."""
        return self.in_flight(self.present) / (self.throughput * self.p)


def uniform(n: int) -> Array:
    """Return p_i = 1/n [n]."""
    return np.full(n, 1 / n)


def balanced(speeds: Array) -> Array:
    """Return p_i ∝ μ_i [n]: equal loads, the highest throughput."""
    return np.asarray(speeds) / np.sum(speeds)


class RoutingObjective(Protocol):
    """A bound to minimise over routings."""

    def value(self, network: QueueingNetwork) -> float:
        """Return the bound."""

    def gradient(self, network: QueueingNetwork) -> Array:
        """Return the derivatives of the bound with respect to p [n]."""


@dataclass(frozen=True)
class G:
    """The bound G: 8G bounds the mean of E‖∇f‖² over T + 1 rounds (eq. 5), for small steps (Lemmas D.1, D.2).

    G = A/(η(T+1)) + (ηLB/n²) Σ 1/p_i + (η²L²Bm/n²) Σ E[X_i]/p_i². Its minimiser depends on ηL, m and the
    speeds only.
    """

    lr: float  # η
    gap: float  # A = f(w⁰) − f*
    noise: float  # B = σ² + 2M²: gradient noise, and dissimilarity of the clients
    rounds: int  # T
    smoothness: float = 1.0  # L

    def value(self, network: QueueingNetwork) -> float:
        """Return G."""
        return self.gap / (self.lr * (self.rounds + 1)) + self._terms.value(network, network.left)

    def gradient(self, network: QueueingNetwork) -> Array:
        """Return ∂G/∂p_j [n]."""
        return self._terms.gradient(network, network.left)

    @property
    def _terms(self) -> BoundTerms:
        return BoundTerms(self.lr * self.smoothness, self.noise)


@dataclass(frozen=True)
class H:
    """The bound H: 8H bounds the mean of 𝔱_t E‖∇f‖², rounds weighted by length 𝔱_t (eq. 12).

    H = (1/λ) [A/η + (ηLB/n²) Σ 1/p_i + (η²L²Bm/n²) Σ E[ξ_i]/p_i²]. The paper's A, a stationary mean of the
    decrease of f in a round, is held constant, as in its experiments.
    """

    lr: float  # η
    gap: float  # A
    noise: float  # B = σ² + 2M²
    smoothness: float = 1.0  # L

    def value(self, network: QueueingNetwork) -> float:
        """Return H."""
        return (self.gap / self.lr + self._terms.value(network, network.present)) / network.throughput

    def gradient(self, network: QueueingNetwork) -> Array:
        """Return ∂H/∂p_j [n]; uses ∂(1/λ)/∂p_j = (E[ξ_j] − E[X_j])/(λ p_j)."""
        n = len(network.p)
        slower = (network.present.mean - network.left.mean)[:n] / network.p
        bracket = self.gap / self.lr + self._terms.value(network, network.present)
        return (bracket * slower + self._terms.gradient(network, network.present)) / network.throughput

    @property
    def _terms(self) -> BoundTerms:
        return BoundTerms(self.lr * self.smoothness, self.noise)


@dataclass(frozen=True)
class BoundTerms:
    """(ηLB/n²) Σ 1/p_i + (η²L²Bm/n²) Σ N̄_i/p_i²: shared by G and H, with N = X and N = ξ."""

    step: float  # ηL
    noise: float  # B

    def factors(self, network: QueueingNetwork) -> tuple[float, float]:
        """Return the factors of both sums."""
        spread = self.step * self.noise / len(network.p) ** 2
        return spread, spread * self.step * network.tasks

    def values(self, network: QueueingNetwork, occupancy: Occupancy) -> tuple[float, float]:
        """Return both terms."""
        spread, delay = self.factors(network)
        numbers = network.in_flight(occupancy)
        return float(spread * np.sum(1 / network.p)), float(delay * np.sum(numbers / network.p**2))

    def value(self, network: QueueingNetwork, occupancy: Occupancy) -> float:
        """Return the sum of the terms."""
        return sum(self.values(network, occupancy))

    def gradient(self, network: QueueingNetwork, occupancy: Occupancy) -> Array:
        """Return the derivatives of the sum [n]."""
        spread, delay = self.gradients(network, occupancy)
        return spread + delay

    def gradients(self, network: QueueingNetwork, occupancy: Occupancy) -> tuple[Array, Array]:
        """Return the derivatives of both terms [n]; uses ∂E[N_i]/∂p_j = Cov(N_i, N_j)/p_j (eq. 7)."""
        p, n, (spread, delay) = network.p, len(network.p), self.factors(network)
        at_server = occupancy.mean[n:]  # Σ N̄_i/p_i² = Σ E[N_i]/p_i² + E[N_s] Σ 1/p_i
        weight = np.append(1 / p**2, np.repeat(np.sum(1 / p), len(at_server)))
        through = occupancy.covariance_with(weight)[:n] / p
        direct = 2 * occupancy.mean[:n] / p**3 + at_server.sum() / p**2
        return -spread / p**2, delay * (through - direct)
