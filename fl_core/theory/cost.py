"""Time and energy to an accuracy of Generalized AsyncSGD, and their gradients in the routing.

`asyncfl list theory` and `asyncfl advise` use them. Alahyane, Comte, Jonckheere (arXiv 2603.26231,
2026) choose routing and number of tasks for least time and least energy. Their formulas are derived here
anew, from the bound G and the product form:

- *Updates*. 8G bounds the mean of E‖∇f‖² over T rounds (`routing`). With G = A/(ηT) + aη + bη², a = (LB/n²)
  Σ 1/p_i and b = (L²Bm/n²) Σ N̄_i/p_i², accuracy ε is reached after T = A/(η(ε/8 − aη − bη²)) rounds. The
  step size with the fewest is η* = (ε/8)/(a + √(a² + 3bε/8)). As η* ≤ ε/(16a) and η*² ≤ ε/(24b), it is
  within the limit of the bound (B/(4a), and B/(8b) for its square) if ε ≤ 3B.
- *Time* is T/λ: updates over throughput.
- *Energy*. Client i is busy for a share λp_i/μ_i of the time, so that an update costs Σ I_i/λ + Σ (C_i − I_i)
  p_i/μ_i joules, with C_i watts at work and I_i watts idle.

Free: no stored result depends on it, only the output of both commands.
"""

from dataclasses import dataclass

import numpy as np

from fl_core.theory.jackson import Array
from fl_core.theory.routing import BoundTerms, QueueingNetwork

MAX_ACCURACY = 3.0  # times B, beyond which the bound does not hold for the best step size


@dataclass(frozen=True, eq=False)
class Cost:
    """The cost of training to an accuracy, time^(1−w) · energy^w, as a function of the routing.

    That is time for w = 0, energy for w = 1, and else their weighted mean. The mean is geometric, so that
    units do not matter.
    """

    accuracy: float  # ε, of the mean of E‖∇f‖²
    gap: float  # A = f(w⁰) − f*
    noise: float  # B = σ² + 2M²
    computation: Array  # C_i [n], watts of a client at work
    idle: Array  # I_i [n], watts of a client without a task
    smoothness: float = 1.0  # L
    weight: float = 0.0  # w, of energy

    def __post_init__(self) -> None:
        if not 0 < self.accuracy <= MAX_ACCURACY * self.noise:
            raise ValueError(
                f"must be above 0 and at most {MAX_ACCURACY * self.noise:g}, which is "
                f"{MAX_ACCURACY:g} times the noise, not {self.accuracy:g}"
            )

    def rounds(self, network: QueueingNetwork) -> float:
        """Return T, updates to the accuracy with the best step size."""
        step, slack = self._best_step(network)
        return self.gap / (step * slack)

    def step(self, network: QueueingNetwork) -> float:
        """Return η*, the step size with the fewest updates."""
        return self._best_step(network)[0]

    def time(self, network: QueueingNetwork) -> float:
        """Return T/λ, the time to the accuracy."""
        return self.rounds(network) / network.throughput

    def energy(self, network: QueueingNetwork) -> float:
        """Return the joules of all clients to the accuracy; times are in seconds."""
        return self.rounds(network) * self._joules(network)

    def value(self, network: QueueingNetwork) -> float:
        """Return the weighted mean of time and energy."""
        step, slack = self._best_step(network)
        return self.gap / (step * slack) * self._per_round(network)

    def gradient(self, network: QueueingNetwork) -> Array:
        """Return the derivatives of `value` in p [n]; uses ∂(1/λ)/∂p_j = (E[ξ_j] − E[X_j])/(λp_j)."""
        n, p = len(network.p), network.p
        step, slack = self._best_step(network)
        spread, delay = self._terms.gradients(network, network.left)
        rounds = (step * spread + step**2 * delay) / slack  # of log T: η* is where its own share vanishes
        slower = (network.present.mean - network.left.mean)[:n] / p  # of log 1/λ
        joules = self._joules(network)
        above = (self.computation - self.idle) / network.speeds
        energy = (self.idle.sum() / network.throughput * slower + above) / joules
        log = rounds + (1 - self.weight) * slower + self.weight * energy
        return np.asarray(self.gap / (step * slack) * self._per_round(network) * log)

    def _per_round(self, network: QueueingNetwork) -> float:
        """Return the weighted mean of time and energy of an update."""
        return float((1 / network.throughput) ** (1 - self.weight) * self._joules(network) ** self.weight)

    def _joules(self, network: QueueingNetwork) -> float:
        """Return the energy of an update."""
        at_work = (self.computation - self.idle) * network.p / network.speeds
        return float(self.idle.sum() / network.throughput + at_work.sum())

    @property
    def _terms(self) -> BoundTerms:
        """The terms a and b of the bound, as for a step size of 1."""
        return BoundTerms(self.smoothness, self.noise)

    def _best_step(self, network: QueueingNetwork) -> tuple[float, float]:
        """Return η*, and ε/8 − aη* − bη*²."""
        a, b = self._terms.values(network, network.left)
        epsilon = self.accuracy / 8
        step = epsilon / (a + float(np.sqrt(a**2 + 3 * b * epsilon)))
        return step, epsilon - a * step - b * step**2
