"""FedBuff as read by Fraboni et al.: the first c clients to return are aggregated, and restart together.

Fraboni, Vidal, Kameni, Lorenzi: A general theory for federated optimization with asynchronous and
heterogeneous clients updates. JMLR 2023, §5.2.2. Weights 1/c, or p_i over the client's share of
aggregations. The published code counts that share over the whole run, which it knows beforehand; here it is
that of the fixed mean times over `HORIZON` aggregations, so that a run does not depend on its own length.
"""

from typing import Annotated, ClassVar, Literal

from fl_core.strategies.participation import Participation
from fl_core.strategies.toolkit import Count, Scenario, Server, Strategy, Tune, Update
from fl_core.theory import weights

HORIZON = 10_000


class FedBuffC(Strategy):
    """FedBuff-c, the first c to return restart together (Fraboni et al., JMLR 2023, §5.2.2)."""

    name: ClassVar[str] = "fedbuff_c"
    title: ClassVar[str] = "FedBuff-c"

    buffer: Annotated[Count, Tune(1, 32)] = 10  # c, updates a step waits for
    weights: Literal["identical", "participation"] = "identical"  # 1/c, or by participation

    def participation(self, scenario: Scenario) -> Participation | None:
        """Return the law of each client's share of aggregations, as in the published code."""
        if self.concurrency is not None:
            return super().participation(scenario)
        return self.participations if scenario.timing.durations.constant else None

    def participations(self, server: Server) -> list[int]:
        """Return how often each client takes part in `HORIZON` aggregations, for fixed mean times [n]."""
        size = min(self.buffer, server.n)
        return weights.fedbuff_participations(server.mean_time, size, HORIZON)

    def begin(self, server: Server) -> None:
        size = min(self.buffer, server.n)
        server.memory.size = size
        server.memory.weights = [1 / size] * server.n
        if self.weights == "participation":
            counts = self.participations(server)
            server.memory.weights = weights.by_participation(server.p, counts, HORIZON)
        server.memory.total, server.memory.count = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.total += memory.weights[update.client] * update.delta
        memory.count += 1
        self.step_if_full(server)

    def lost(self, server: Server, client: int) -> None:
        self.step_if_full(server)

    def step_if_full(self, server: Server) -> None:
        """Step if c updates are in, or no more can come before the next step."""
        memory = server.memory
        last = self.concurrency is None and server.in_flight == 0 and memory.count > 0
        if memory.count == memory.size or last:
            server.step(self.server_lr * memory.total)
            memory.total, memory.count = server.zeros(), 0
