"""CA²FL: buffered aggregation, calibrated by each client's last update.

Wang, Cao, Wu, Chen, Chen: Tackling the data heterogeneity in asynchronous federated learning with cached
update calibration. ICLR 2024, Algorithm 2, which starts from h_i = 0 and h = 0 and waits for no client. The
code of the ACE paper (arXiv 2511.19066) starves clients: `selection: starved`. Where several updates arrive
in one server iteration, all of them enter the buffer, which may then hold more than M.
"""

from collections.abc import Sequence
from typing import ClassVar

from fl_core.strategies import caches
from fl_core.strategies.buffered_strategy import BufferedStrategy
from fl_core.strategies.toolkit import Server, Update


class CA2FL(BufferedStrategy):
    """CA²FL, cached update calibration (Wang et al., ICLR 2024, Algorithm 2)."""

    name: ClassVar[str] = "ca2fl"
    title: ClassVar[str] = "CA²FL"

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.cache = caches.empty(server)  # h_i, the last update of each client
        server.memory.mean = server.zeros()  # h = (1/N) Σ h_i, constant between two steps
        server.memory.change, server.memory.count = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        self.receive_together(server, [update])

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        memory = server.memory
        for update in updates:
            memory.change += update.delta - caches.row(memory.cache, update.client, memory.change)
            caches.put(memory.cache, update.client, update.delta, server)
            memory.count += 1
        if memory.count >= self.buffer:
            server.step(self.server_lr * (memory.mean + memory.change / memory.count))
            memory.mean += memory.change / server.n
            memory.change, memory.count = server.zeros(), 0
