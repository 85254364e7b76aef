"""Generalized AsyncSGD: m tasks in flight, routed at random to the clients' queues, unbiased by 1/(n p_i).

Alahyane, Comte, Jonckheere, Moulines: Optimizing asynchronous federated learning: a delicate trade-off
between model-parameter staleness and update frequency. arXiv 2502.08206, §2: w ← w − η/(n p_C) g_C, then A
~ p gets the new model, busy or not. The paper does not say where the initial tasks are. `routed`: each
is routed by p, and the queues settle in time. `stationary`, what its theory assumes: X ~ Buzen's law of the
m − 1 tasks that a departure leaves behind, and one more routed by p; so the mean numbers of tasks left by the
first and every later update are E[X_i], where service times are exponential.
"""

from functools import cache
from math import inf
from typing import ClassVar, Literal

import numpy as np

from fl_core.strategies.participation import Participation
from fl_core.strategies.toolkit import Count, Rate, Scenario, Server, Strategy, Update
from fl_core.text import miscounted
from fl_core.theory import optimum, routing
from fl_core.theory.jackson import Occupancy

Opening = Literal["routed", "stationary"]


class GeneralizedAsyncSGD(Strategy):
    """Generalized AsyncSGD, queues and routing probabilities (Alahyane et al., arXiv 2502.08206, 2025).

    Its sequel (Alahyane, Comte, Jonckheere, arXiv 2603.26231, 2026) adds a server that takes time and energy,
    `timing.server` and `timing.power`, and chooses routing and number of tasks together for the least of
    either: `asyncfl list theory cost` computes them, for `routing` and `concurrency`.
    """

    name: ClassVar[str] = "generalized_asyncsgd"
    title: ClassVar[str] = "Generalized AsyncSGD"
    routed_by: ClassVar[str | None] = "p"
    refuses_arrangement: ClassVar[str] = "its weights are those of its own routing"

    concurrency: Count = 100  # m, tasks in flight
    # p_i, to whom tasks go: alike, so that queues balance, minimising a bound, or as given
    routing: Literal["uniform", "balanced", "G", "H"] | tuple[Rate, ...] = "uniform"
    smoothness: Rate = 1.0  # L of the bounds G and H
    distance: Rate = 15.0  # A of the bounds, f(w⁰) − f*
    noise: Rate = 209.0  # B = 2M² + σ², here with M = 10 and σ = 3
    opening: Opening = "routed"  # where the initial tasks are

    def refuses(self, scenario: Scenario) -> str | None:
        if isinstance(self.routing, tuple) and len(self.routing) != scenario.problem.clients:
            return f"routing: {miscounted(self.routing, scenario.problem.clients)}"
        if self.opening == "stationary" and scenario.timing.server is not None:
            return "opening: stationary cannot place tasks at a server that takes time: choose routed"
        return None

    def participation(self, scenario: Scenario) -> Participation:
        return self.probabilities

    def begin(self, server: Server) -> None:
        server.memory.p = tuple(self.probabilities(server).tolist())

    def receive(self, server: Server, update: Update) -> None:
        server.step(self.server_lr / (server.n * server.memory.p[update.client]) * update.delta)

    def next(self, server: Server) -> list[int]:
        missing, p = self.concurrency - server.in_flight, server.memory.p
        remaining: list[int] = []
        if self.opening == "stationary" and not server.in_flight and not server.updates:
            remaining, missing = self.left_behind(server, np.array(p)), 1
        return remaining + server.draw(missing, p, busy=True, replace=True)

    def left_behind(self, server: Server, p: np.ndarray) -> list[int]:
        """Return the clients of the m − 1 remaining tasks after a departure in the stationary network."""
        mean_time = np.array([float(time) for time in server.mean_time])
        tasks = Occupancy(p * mean_time, self.concurrency - 1).draw(server.stream("opening"))
        return np.repeat(np.arange(server.n), tasks.astype(int)).tolist()

    def probabilities(self, server: Server) -> np.ndarray:
        """Return p [n] for the clients' mean service times."""
        speeds = np.array([float(1 / time) for time in server.mean_time])  # μ
        if isinstance(self.routing, tuple):
            return np.array(self.routing) / sum(self.routing)
        if self.routing == "uniform":
            return routing.uniform(server.n)
        if self.routing == "balanced":
            return routing.balanced(speeds)
        lr = self.server_lr * self.local_lr  # η
        if self.routing == "G":  # its minimiser depends on ηL, m and the speeds only: any A, B, T will do
            bound: routing.G | routing.H = routing.G(lr, self.distance, self.noise, 1, self.smoothness)
        else:
            bound = routing.H(lr, self.distance, self.noise, self.smoothness)
        server_speed = float(1 / server.service_time) if server.service_time else inf
        return _optimal(bound, tuple(speeds), self.concurrency, server_speed)


@cache
def _optimal(
    bound: routing.G | routing.H, speeds: tuple[float, ...], tasks: int, server: float
) -> np.ndarray:
    """Return the routing p [n] of least bound; searched once per process."""
    return optimum.optimise(bound, np.array(speeds), tasks, server=server)[0].p
