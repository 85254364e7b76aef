"""Asynchronous FedAvg: a server step for each arrival.

Fraboni, Vidal, Kameni, Lorenzi: A general theory for federated optimization with asynchronous and
heterogeneous clients updates. JMLR 2023, Algorithm 1 with the weights of eq. (12) (TIME-BASED) or d_i = 1
(IDENTICAL, §5.2.1).
"""

from fractions import Fraction
from typing import Any, ClassVar, Literal

from fl_core.strategies.toolkit import Scenario, Server, Strategy, Update
from fl_core.text import miscounted
from fl_core.theory import weights

PRECISION = 2**256  # rates are integers, in units of 1/PRECISION jobs a tick


class AsyncFedAvg(Strategy):
    """Asynchronous FedAvg, time-based or identical weights (Fraboni et al., JMLR 2023, eq. 12)."""

    name: ClassVar[str] = "async_fedavg"
    title: ClassVar[str] = "Async FedAvg"
    presets: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "rescaled_asgd": (
            "Rescaled ASGD, steps in proportion to clients' times (Mahran et al., arXiv 2605.13434, 2026).",
            {"weights": "time_based"},
        )
    }

    # d_i, by client: from known times, 1, from measured times, or as given
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
        memory.heard, memory.all_spent, memory.all_jobs = 0, 0, 0  # clients with an update, sums over them
        memory.rate = 0  # Σ 1/τ_j over clients with an update, each rounded down to 1/PRECISION

    def receive(self, server: Server, update: Update) -> None:
        if self.weights == "estimated":
            self.update_weight(server, update)
        server.step(self.server_lr * server.memory.weights[update.client] * update.delta)

    def update_weight(self, server: Server, update: Update) -> None:
        """Set the client's weight of eq. (12) from the mean times up to now.

        Σ 1/τ_j is kept as a running integer, so that an event does not cost O(n). Rounding down loses less
        than n/PRECISION. If both bounds round to the same float, this is the weight; else the sum is computed
        exactly.
        """
        memory, client, ticks = server.memory, update.client, update.time - update.began
        if memory.jobs[client]:
            memory.rate -= rounded_rate(memory.jobs[client], memory.spent[client])
        memory.heard += not memory.jobs[client]
        memory.spent[client] += ticks
        memory.jobs[client] += 1
        memory.all_spent, memory.all_jobs = memory.all_spent + ticks, memory.all_jobs + 1
        spent, jobs = memory.spent[client], memory.jobs[client]
        memory.rate += rounded_rate(jobs, spent)
        lowest = memory.rate + (server.n - memory.heard) * rounded_rate(memory.all_jobs, memory.all_spent)
        factor, highest = ((rate * spent) / (PRECISION * jobs) for rate in (lowest, lowest + server.n))
        if factor == highest:
            memory.weights[client] = factor * float(server.p[client])
        else:
            memory.weights[client] = weights.time_based(server.p, self.mean_times(server))[client]

    def mean_times(self, server: Server) -> list[Fraction]:
        """Return each client's mean time up to now [n], the overall mean for clients without updates."""
        memory = server.memory
        mean = Fraction(memory.all_spent, memory.all_jobs)
        pairs = zip(memory.spent, memory.jobs, strict=True)
        return [Fraction(spent, jobs) if jobs else mean for spent, jobs in pairs]


def rounded_rate(jobs: int, spent: int) -> int:
    """Return jobs over ticks, rounded down, in units of 1/PRECISION."""
    return PRECISION * jobs // spent
