"""Closed Jackson networks: `tasks` tasks circulate for ever between FIFO queues, a queue per client.

`routing` computes its bounds from them; Generalized AsyncSGD draws its first jobs from the stationary law. A
task that leaves any queue joins queue i with probability p_i, where service takes Exp(μ_i). The numbers of
tasks N [n] in the stationary state have the product form P(N = x) = Π_i ρ_i^{x_i} / Z with loads ρ_i =
p_i/μ_i (Alahyane, Comte, Jonckheere, Moulines: Optimizing asynchronous federated learning, 2025, Proposition
2.1). Z follows from the recursion of Buzen (Computational algorithms for closed queueing networks, CACM
1973). A server that takes Exp(μ_s) for an update is one more queue, which every task joins after its
client's: its load is 1/μ_s.

Fixed: the values, and the random numbers that `draw` takes: stored runs begin with such a state.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def buzen(load: Array, tasks: int) -> Array:
    """Return Z_{k,j}/Z_{n,j} [tasks + 1, n], and in a last column Z_{n,j}/Z_{n,j−1} (1 for j = 0).

    Z_{k,j} = Z_{k−1,j} + ρ_k Z_{k,j−1} is a running sum over k, so that a whole row comes at once. Rows are
    rescaled as they come: with loads of at most 1, nothing overflows, and underflow is harmless.
    """
    rows = np.ones((tasks + 1, len(load) + 1))
    for j in range(1, tasks + 1):
        sums = np.cumsum(load * rows[j - 1, :-1])
        rows[j, :-1], rows[j, -1] = sums / sums[-1], sums[-1]
    return rows


class Occupancy:
    """The stationary law of the numbers of tasks N [n] at the clients, under loads ρ [n].

    At an arbitrary time, with m tasks in the network, it is the law of ξ; as seen just after a departure,
    with the departed task left out (m − 1), it is the law of X.
    """

    def __init__(self, load: Array, tasks: int) -> None:
        load = np.asarray(load, float)
        if tasks < 0 or not np.all(np.isfinite(load) & (load > 0)):
            raise ValueError("a network needs positive, finite loads ρ = p/μ and tasks ≥ 0")
        self.tasks = tasks
        self._scale = load.max()
        self._load = load / self._scale

    @cached_property
    def _buzen(self) -> Array:
        """Buzen's table [K + 1, n + 1] for loads scaled to at most 1."""
        return buzen(self._load, self.tasks)

    @cached_property
    def _share(self) -> Array:
        """Z_{K−k}/Z_K [K] for k = 1, …, K."""
        return np.cumprod(1 / self._buzen[:0:-1, -1])

    @cached_property
    def _powers(self) -> Array:
        """ρ_i^k [n, K] for k = 1, …, K."""
        return np.cumprod(np.broadcast_to(self._load[:, None], (len(self._load), self.tasks)), axis=1)

    @property
    def throughput(self) -> float:
        """Z_{K−1}/Z_K: tasks completed per unit of time by the whole network (eq. 13)."""
        return float(1 / (self._buzen[-1, -1] * self._scale)) if self.tasks else 0.0

    @cached_property
    def tail(self) -> Array:
        """P(N_i ≥ k) [n, K] for k = 1, …, K."""
        return self._powers * self._share

    @cached_property
    def mean(self) -> Array:
        """E[N_i] [n] (eq. 8)."""
        return self.tail @ np.ones(self.tasks)

    @cached_property
    def _own(self) -> Array:
        """The excess of E[N_i²] over the mixed formula at j = i [n]: Σ_k k P(N_i ≥ k)."""
        return self.tail @ np.arange(1.0, self.tasks + 1)

    @cached_property
    def _mixed(self) -> Array:
        """Hankel matrix Z_{K−k−l}/Z_K [K, K], zero where k + l > K."""
        if self.tasks == 0:
            return np.zeros((0, 0))
        padded = np.concatenate([self._share[1:], np.zeros(self.tasks)])
        return np.lib.stride_tricks.sliding_window_view(padded, self.tasks)

    def covariance_with(self, weight: Array) -> Array:
        """Return Cov(N_j, Σ_i w_i N_i) [n], without the matrix: O(K (n + K)).

        E[N_i N_j] = Σ_{k,l} ρ_i^k ρ_j^l Z_{K−k−l}/Z_K for i ≠ j (eq. 9). The paper prints it for all i and j,
        but E[N_i²] = Σ_k (2k − 1) P(N_i ≥ k).
        """
        mixed = self._powers @ (self._mixed @ (weight @ self._powers))
        return mixed + self._own * weight - self.mean * (self.mean @ weight)

    def draw(self, stream: np.random.Generator) -> Array:
        """Return a state N [n] drawn from the stationary law, by a walk back through Buzen's table."""
        state = np.zeros(len(self._load), int)
        client, tasks_left = len(self._load) - 1, self.tasks
        while tasks_left:
            with_one = self._load[client] * self._buzen[tasks_left - 1, client]
            if (
                client == 0
                or stream.random() * self._buzen[tasks_left, client] * self._buzen[tasks_left, -1] < with_one
            ):
                state[client] += 1
                tasks_left -= 1
            else:
                client -= 1
        return state
