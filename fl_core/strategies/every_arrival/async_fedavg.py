"""Asynchronous FedAvg: one server step per arrival.

Fraboni, Vidal, Kameni, Lorenzi: A general theory for federated optimization with asynchronous and
heterogeneous clients updates. JMLR 2023, Algorithm 1 with the weights of eq. (12) (TIME-BASED) or d_i = 1
(IDENTICAL, §5.2.1).
"""

from fractions import Fraction
from typing import ClassVar, Literal

from fl_core.strategies.author import Scenario, Server, Strategy, Update
from fl_core.text import miscounted
from fl_core.theory import weights


class AsyncFedAvg(Strategy):
    """Asynchronous FedAvg, time-based or identical weights (Fraboni et al., JMLR 2023, eq. 12)."""

    name: ClassVar[str] = "async_fedavg"
    title: ClassVar[str] = "Async FedAvg"

    # d_i, by client: from times known or measured, 1, or as given
    weights: Literal["time_based", "identical", "estimated"] | tuple[float, ...] = "time_based"

    def refuses(self, scenario: Scenario) -> str | None:
        if isinstance(self.weights, tuple) and len(self.weights) != scenario.problem.clients:
            return f"weights: {miscounted(self.weights, scenario.problem.clients)}"
        return None

    def begin(self, server: Server) -> None:
        memory = server.memory
        if self.weights == "time_based":
            memory.weights = weights.time_based(server.p, server.mean_time)
        elif isinstance(self.weights, tuple):
            memory.weights = list(self.weights)
        else:
            memory.weights = [1.0] * server.n
        memory.spent, memory.jobs = [0] * server.n, [0] * server.n  # ticks and jobs of each client so far

    def receive(self, server: Server, update: Update) -> None:
        if self.weights == "estimated":
            self.estimate(server, update)
        server.step(self.server_lr * server.memory.weights[update.client] * update.delta)

    def estimate(self, server: Server, update: Update) -> None:
        """Set the weights of eq. (12) from the mean times seen so far."""
        memory = server.memory
        memory.spent[update.client] += update.time - update.began
        memory.jobs[update.client] += 1
        mean = Fraction(sum(memory.spent), sum(memory.jobs))
        pairs = zip(memory.spent, memory.jobs, strict=True)
        times = [Fraction(spent, jobs) if jobs else mean for spent, jobs in pairs]
        memory.weights = weights.time_based(server.p, times)
