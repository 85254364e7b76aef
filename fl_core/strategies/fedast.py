"""FedAST with a single task: a buffer, and requests queued at uniformly drawn clients.

Askin, Sharma, Joe-Wong, Joshi: FedAST: federated asynchronous simultaneous training. UAI 2024 (arXiv
2406.00302). R requests are under way; each goes to a client drawn uniformly from all, where it queues
behind others. x ← x + (η_g/b) Σ Δ of every b updates, unscaled by staleness; every arrival is replaced by a
request with the newest model. Based on abstract and published code, not the full paper. With one task there
is nothing to reallocate: R is constant.
"""

from typing import Annotated, ClassVar

from fl_core.strategies.participation import Participation, alike
from fl_core.strategies.toolkit import Count, Scenario, Server, Strategy, Tune, Update


class FedAST(Strategy):
    """FedAST with one task, R requests queue at random clients (Askin et al., UAI 2024)."""

    name: ClassVar[str] = "fedast"
    title: ClassVar[str] = "FedAST"

    buffer: Annotated[Count, Tune(1, 32)] = 5  # b, updates a step waits for
    concurrency: Count | None = 20  # R, requests under way

    def participation(self, scenario: Scenario) -> Participation:
        return alike  # each gets equally many requests

    def begin(self, server: Server) -> None:
        server.memory.total, server.memory.count = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.total += update.delta
        memory.count += 1
        if memory.count == self.buffer:
            server.step(self.server_lr * memory.total / self.buffer)
            self.begin(server)

    def next(self, server: Server) -> list[int]:
        requests = server.n if self.concurrency is None else self.concurrency
        return server.draw(requests - server.in_flight, busy=True, replace=True)
