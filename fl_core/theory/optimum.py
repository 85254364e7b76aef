"""The routing with the least bound, and the best number of tasks in flight.

`asyncfl list theory` and Generalized AsyncSGD call it. Alahyane et al., 2025, §5 and Appendix E: p =
softmax(θ), Adam on θ with the gradient in closed form. G and, mildly, H are not convex and break the symmetry
between clients of equal speed, so that the start matters:

1. *uniform*: θ normal of standard deviation 1e-6. From exactly 0, clients of equal speed stay equal until
   rounding errors part them: the result would depend on the machine.
2. *slowest* and 3. *fastest*: one such client favoured, θ = 2 (e² = 7.4 times the others).

With `tied`, clients of equal speed share one θ, and the uniform start is exact.

Fixed: the routing found, to the last digit: runs with an optimised routing draw their clients by it.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fl_core.streams import stream
from fl_core.theory.jackson import Array
from fl_core.theory.routing import QueueingNetwork, RoutingObjective, uniform

FAVOUR = 2.0  # θ of the client that a restart favours
SETTLED = 1e-7  # slopes in θ this small, relative to the terms that they are the difference of, count as 0
LR, BETA1, BETA2, EPSILON = 0.05, 0.9, 0.999, 1e-8  # Adam's
MAX_JOINT_STEPS = 400  # of Adam, for each number of tasks


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best routing from a start."""

    p: Array  # [n]
    tasks: int  # m
    value: float
    start: str  # uniform, slowest or fastest
    steps: int
    settled: bool  # the gradient had vanished before the steps ran out


def optimise(
    objective: RoutingObjective,
    speeds: Array,
    tasks: int,
    *,
    tied: bool = False,
    restarts: bool = True,
    server: float = inf,
    seed: int = 0,
    lr: float = LR,
    steps: int = 5000,
) -> list[Optimum]:
    """Return the result of each start, the best first (Alahyane et al., 2025, §5 and Appendix E).

    Args:
        objective: The bound to minimise.
        speeds: μ_i [n].
        tasks: m, in flight.
        tied: Clients of equal speed share one θ.
        restarts: Also start with the slowest and the fastest client favoured.
        server: μ_s, updates that the server takes per unit of time; infinite for a server without a queue.
        seed: Of the first θ.
        lr: Adam's rate.
        steps: Adam's steps at most.
    """
    speeds = np.asarray(speeds, float)
    levels, group = np.unique(speeds, return_inverse=True) if tied else (speeds, np.arange(len(speeds)))
    near = np.zeros(len(levels)) if tied else 1e-6 * stream(seed, "routing").normal(size=len(levels))
    starts = {"uniform": near}
    if restarts:
        starts["slowest"] = near + FAVOUR * (np.arange(len(levels)) == np.argmin(levels))
        starts["fastest"] = near + FAVOUR * (np.arange(len(levels)) == np.argmax(levels))
    ends = [
        _adam(
            objective,
            QueueingNetwork(uniform(len(speeds)), speeds, tasks, server),
            theta,
            group,
            lr=lr,
            steps=steps,
            start=start,
        )
        for start, theta in starts.items()
    ]
    return sorted(ends, key=lambda end: float(f"{end.value:.9e}"))  # not by rounding errors


def optimise_jointly(
    objective: RoutingObjective,
    speeds: Array,
    limit: int,
    *,
    groups: NDArray[Any] | None = None,
    server: float = inf,
) -> Optimum:
    """Return the routing and the number of tasks of least value together.

    For each number of tasks the routing is found by gradient, from the routing of the best number so far. The
    numbers are 1, 2, 4, … until the value rises or `limit` is reached, and then those around the best, at
    half the distance each time. This finds the least value where values fall and then rise with the number.

    Args:
        objective: The cost to minimise.
        speeds: μ_i [n].
        limit: m at most.
        groups: Clients of equal numbers [n] share one θ; None: nobody.
        server: μ_s, updates that the server takes per unit of time; infinite for a server without a queue.
    """
    speeds = np.asarray(speeds, float)
    labels = np.arange(len(speeds)) if groups is None else groups
    _, firsts, group = np.unique(labels, return_index=True, return_inverse=True)
    optima: dict[int, Optimum] = {}

    def at(tasks: int, near: Array) -> Optimum:
        if tasks not in optima:
            network, theta = QueueingNetwork(near, speeds, tasks, server), np.log(near[firsts])
            optima[tasks] = _adam(
                objective, network, theta, group, lr=LR, steps=MAX_JOINT_STEPS, start="uniform"
            )
        return optima[tasks]

    best = at(1, uniform(len(speeds)))
    for tasks in sorted({*(2**k for k in range(1, limit.bit_length())), limit} - {1}):
        if (end := at(tasks, best.p)).value > best.value:
            break
        best = end
    distance = best.tasks
    while distance := distance // 2:
        for tasks in (best.tasks - distance, best.tasks + distance):
            if 1 <= tasks <= limit:
                best = min(best, at(tasks, best.p), key=lambda end: end.value)
    return best


def _adam(
    objective: RoutingObjective,
    network: QueueingNetwork,
    theta: Array,
    group: NDArray[np.integer],
    *,
    lr: float,
    steps: int,
    start: str,
) -> Optimum:
    """Return the routing at the end of Adam (Kingma & Ba, 2015) on θ, with a component per group of clients.

    Adam ends where the slopes in θ cancel, or after all steps.
    """
    first = second = np.zeros_like(theta)
    for step in range(1, steps + 1):
        shares = np.exp(theta - theta.max())[group]
        network = replace(network, p=shares / shares.sum())
        value, slope = objective.value(network), objective.gradient(network)
        parts = network.p * slope
        slope = np.bincount(group, parts - network.p * parts.sum()).astype(float)  # through the softmax
        if np.abs(slope).max() < SETTLED * np.abs(parts).max():
            return Optimum(network.p, network.tasks, value, start, step, settled=True)
        first = BETA1 * first + (1 - BETA1) * slope
        second = BETA2 * second + (1 - BETA2) * slope**2
        corrected = np.sqrt(second / (1 - BETA2**step)) + EPSILON
        theta = theta - lr * first / (1 - BETA1**step) / corrected
    return Optimum(network.p, network.tasks, value, start, steps, settled=False)
