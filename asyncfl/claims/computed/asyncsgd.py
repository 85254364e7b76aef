"""Closed forms of Alahyane et al. (arXiv 2502.08206, 2025): numbers of rounds, optima, shapes.

Networks are named after the section that describes them: `5.1` (n = 20, m = 100, μ_i = e^{i/100}), `5.2` (3 ×
10 clients of mean service 100, 10 and 1, m = 30) and `small` (three clients, for a simulation that ends
soon). η = .01, L = 1, A = 15, B = σ² + 2M² = 209 throughout, as in §5.2.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from fl_core.schema import Name
from fl_core.theory import optimum
from fl_core.theory.jackson import Array
from fl_core.theory.routing import G, H, Network, balanced, uniform

PER_ROUND = G(lr=0.01, gap=15, noise=209, rounds=3000)
PER_TIME = H(lr=0.01, gap=15, noise=209)
NETWORKS = {  # speeds μ_i [n] and tasks m
    "5.1": (np.exp(np.arange(1, 21) / 100), 100),
    "5.2": (np.repeat([0.01, 0.1, 1.0], 10), 30),
    "small": (np.array([1.0, 2.0, 0.7]), 6),
}
Routing = str | Sequence[float]  # uniform, balanced, G, H, or parts of a whole [n]


@cache
def _optimal(bound: str, network: str, tasks: int) -> optimum.Optimum:
    """Where Adam ends from uniform routing, the paper's only start (§5)."""
    objective: G | H = PER_ROUND if bound == "G" else PER_TIME
    return optimum.optimise(objective, NETWORKS[network][0], tasks, restarts=False)[0]


def routed(network: str, routing: Routing, tasks: int | None = None) -> Network:
    """A network under a routing, with its usual number of tasks or another."""
    speeds, usual = NETWORKS[network]
    m = tasks or usual
    if not isinstance(routing, str):
        p = np.repeat(routing, len(speeds) // len(routing))
        p = p / p.sum()
    elif routing in {"G", "H"}:
        p = _optimal(routing, network, m).p
    else:
        p = uniform(len(speeds)) if routing == "uniform" else balanced(speeds)
    return Network(p, speeds, m)


# -- numbers of §5 --------------------------------------------------------------------------------


def rounds(*, network: str, routing: Routing, time: float) -> float:
    """λ · time: rounds that a routing completes on average; a value may stand for a cluster of clients."""
    return time * routed(network, routing).throughput


def share(*, network: str, routing: Routing, client: int, tasks: int | None = None) -> float:
    """p_i of a client, counted from 0, the slowest."""
    return float(routed(network, routing, tasks).p[client])


def furthest(*, network: str, routing: Routing, printed: Sequence[float]) -> float:
    """The largest |p_i − printed|; a printed value stands for a cluster of clients."""
    p = routed(network, routing).p
    return float(np.abs(p - np.repeat(printed, len(p) // len(printed))).max())


def slowdown(*, network: str, routing: Routing, against: Routing) -> float:
    """How many times longer a number of rounds takes under one routing than under another."""
    return routed(network, against).throughput / routed(network, routing).throughput


def best_concurrency(*, lr: float, clients: int, divisor: float, limit: int) -> int:
    """m* ≤ limit, which minimises H under uniform routing for speeds μ_i = e^{i/divisor}."""
    speeds = np.exp(np.arange(1, clients + 1) / divisor)
    return optimum.best_concurrency(H(lr=lr, gap=15, noise=209), speeds, limit)


def best_concurrency_falls(*, lrs: list[float], clients: int, divisor: float, limit: int) -> bool:
    """Whether m* falls from each learning rate to the next larger one (Fig. 2)."""
    best = [best_concurrency(lr=lr, clients=clients, divisor=divisor, limit=limit) for lr in sorted(lrs)]
    return bool(np.all(np.diff(best) < 0))


# -- shapes ---------------------------------------------------------------------------------------


def third_term(*, ratio: float, tasks: int, share: float) -> float:
    """Σ E[D_i]/p_i² for two clients, the other `ratio` times as fast as the one with this share (Fig. 1)."""
    network = Network(np.array([share, 1 - share]), np.array([1.0, ratio]), tasks)
    return float(np.sum(network.relative_delay / network.p**2))


def _figure_1(ratio: float, tasks: int) -> tuple[Array, Array]:
    shares = np.linspace(0.01, 0.99, 99)
    return shares, np.array([third_term(ratio=ratio, tasks=tasks, share=weight) for weight in shares])


def third_term_turns(*, ratio: float, tasks: int) -> bool:
    """Whether the curve of Fig. 1 both rises and falls."""
    steps = np.diff(_figure_1(ratio, tasks)[1])
    return bool(np.any(steps > 0) and np.any(steps < 0))


def best_slow_share(*, ratio: float, tasks: int) -> float:
    """The share of the slow client, in hundredths, where the third term is least."""
    shares, terms = _figure_1(ratio, tasks)
    return float(shares[np.argmin(terms)])


def skew_grows(*, network: str, tasks: Sequence[int]) -> bool:
    """Whether the slowest client's share under G-optimised routing grows with the number of tasks."""
    return bool(np.all(np.diff([share(network=network, routing="G", client=0, tasks=m) for m in tasks]) > 0))


def falls_with_speed(*, network: str) -> bool:
    """Whether G-optimised routing sends fewer tasks to faster clients, the slowest client aside."""
    return bool(np.all(np.diff(routed(network, "G").p[1:]) < 0))


def grows_with_tasks(*, bound: str, network: str, routing: str, limit: int) -> bool:
    """Whether a bound grows with every additional task, from m = 1 to `limit`."""
    return bool(np.all(np.diff(_by_tasks(bound, network, routing, limit)) > 0))


def best_tasks(*, bound: str, network: str, routing: str, limit: int) -> int:
    """The number of tasks m ≤ limit of least bound."""
    return int(np.argmin(_by_tasks(bound, network, routing, limit))) + 1


def has_interior_optimum(*, bound: str, network: str, routing: str, limit: int) -> bool:
    """Whether a bound is least at some 1 < m < limit."""
    return 1 < best_tasks(bound=bound, network=network, routing=routing, limit=limit) < limit


def _by_tasks(bound: str, network: str, routing: str, limit: int) -> list[float]:
    objective: G | H = PER_ROUND if bound == "G" else PER_TIME
    return [objective.value(routed(network, routing, m)) for m in range(1, limit + 1)]


# -- closed forms ---------------------------------------------------------------------------------


def closed_form(*, network: str, routing: str) -> float:
    """G of a simple routing by its closed form over G by Buzen's recursion."""
    speeds, m = NETWORKS[network]
    simple = PER_ROUND.uniform(len(speeds), m) if routing == "uniform" else PER_ROUND.balanced(speeds, m)
    return simple / PER_ROUND.value(routed(network, routing))


def balanced_throughput(*, network: str) -> float:
    """λ = Σμ · m/(n + m − 1) of balanced routing over λ by Buzen's recursion."""
    speeds, m = NETWORKS[network]
    return float(speeds.sum() * m / (len(speeds) + m - 1) / routed(network, "balanced").throughput)


# -- of runs --------------------------------------------------------------------------------------


def slowest_accuracy(runs: Sequence[Any]) -> float:
    """Accuracy of a recorded run's last model on the data of the slowest client."""
    clients = runs[0].files.clients
    return float(clients["accuracy"][clients[Name.MEAN_TIME].argmax()])


def other_accuracy(runs: Sequence[Any]) -> float:
    """Mean of that accuracy over all other clients."""
    clients = runs[0].files.clients
    return float(np.nanmean(np.delete(clients["accuracy"], clients[Name.MEAN_TIME].argmax())))
