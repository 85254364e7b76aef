"""AFA-CD: anarchic federated averaging across devices.

Yang, Zhang, Khanduri, Liu: Anarchic federated learning. ICML 2022, Algorithm 2: once m updates are in, x ←
x − η η_L (1/m) Σ G_i, where G_i is the mean of the worker's stochastic gradients over its own number of
steps. The algorithm box prints η, all proofs use η η_L.
"""

from typing import Annotated, ClassVar, Literal

from fl_core.strategies.toolkit import Count, Server, Strategy, Tune, Update


class AFACD(Strategy):
    """AFA-CD, anarchic averaging of m workers' mean gradients (Yang et al., ICML 2022, Algorithm 2)."""

    name: ClassVar[str] = "afa_cd"
    title: ClassVar[str] = "AFA-CD"
    pulls: ClassVar[bool] = True
    sends: ClassVar[Literal["delta", "gradient"]] = "gradient"

    buffer: Annotated[Count, Tune(1, 32)] = 5  # m, updates a step waits for

    def begin(self, server: Server) -> None:
        server.memory.total, server.memory.count = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.total += update.gradient
        memory.count += 1
        if memory.count == self.buffer:
            server.step(-self.server_lr * self.local_lr * memory.total / self.buffer)
            self.begin(server)
