"""AFA-CS: anarchic federated averaging across silos, with a memory of every worker's last gradient.

Yang, Zhang, Khanduri, Liu: Anarchic federated learning. ICML 2022, Algorithm 3: once m updates have
replaced their workers' slots, x ← x − η η_L (1/M) Σ_i G_i over all M slots. The algorithm box prints η, all
proofs use η η_L.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from fl_core.parts import Count
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Candidates, Range, Strategy


class AFACS(Strategy):
    """AFA-CS, anarchic averaging over a memory of all workers (Yang et al., ICML 2022, Algorithm 3)."""

    name: ClassVar[str] = "afa_cs"
    title: ClassVar[str] = "AFA-CS"
    follows: ClassVar[Literal["delta", "gradient"]] = "gradient"
    tunable: ClassVar[Mapping[str, Candidates]] = {**Strategy.tunable, "buffer": Range(1, 32)}

    buffer: Count = 5  # m

    def start(self, server: Server) -> None:
        server.memory.slots = server.zeros(server.n)  # G_i, zero until heard
        server.memory.mean = server.zeros()  # (1/M) Σ G_i
        server.memory.count = 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.mean += (update.gradient - memory.slots[update.client]) / server.n
        memory.slots[update.client] = update.gradient
        memory.count += 1
        if memory.count % self.buffer == 0:
            server.step(-self.server_lr * self.local_lr * memory.mean)

    def next(self, server: Server) -> list[int]:
        return list(server.idle)  # workers pull the newest model whenever they are free
