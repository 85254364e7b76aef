"""AFA-CS: anarchic federated averaging across silos, with a memory of every worker's last gradient.

Yang, Zhang, Khanduri, Liu: Anarchic federated learning. ICML 2022, Algorithm 3: once m updates have
replaced their workers' slots, x ← x − η η_L (1/M) Σ_i G_i over all M slots. The algorithm box prints η, all
proofs use η η_L.

The paper leaves the initial memory open. `start: zeros` takes G_i = 0 until worker i is heard from;
`first_pass` makes the first round one of all M workers, at x_0, and every later one of m.
"""

from typing import Annotated, ClassVar, Literal

from fl_core.strategies import caches
from fl_core.strategies.table_start import TableStrategy
from fl_core.strategies.toolkit import Count, Server, Tune, Update


class AFACS(TableStrategy):
    """AFA-CS, anarchic averaging over a memory of all workers (Yang et al., ICML 2022, Algorithm 3)."""

    name: ClassVar[str] = "afa_cs"
    title: ClassVar[str] = "AFA-CS"
    pulls: ClassVar[bool] = True
    sends: ClassVar[Literal["delta", "gradient"]] = "gradient"

    buffer: Annotated[Count, Tune(1, 32)] = 5  # m, updates a step waits for
    start: Literal["zeros", "first_pass"] = "zeros"  # how the memory begins

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.slots = caches.empty(server)  # G_i
        server.memory.mean = server.zeros()  # (1/M) Σ G_i
        server.memory.count = 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.mean += (update.gradient - caches.row(memory.slots, update.client, memory.mean)) / server.n
        caches.put(memory.slots, update.client, update.gradient, server)
        memory.count += not memory.unheard  # the first pass is a round of its own
        if self.complete(server, update) and memory.count % self.buffer == 0:
            server.step(-self.server_lr * self.local_lr * memory.mean)
