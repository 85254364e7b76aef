"""FedBuff: buffered asynchronous aggregation.

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba: Federated learning with buffered asynchronous
aggregation. AISTATS 2022, Algorithm 1, with the staleness scaling 1/√(1+τ) of its §5. The code of the ACE
paper (arXiv 2511.19066) takes the plain mean of the buffer, `scaling: none`, and starves clients, `selection:
starved`. Where several updates arrive in one server iteration, all of them enter the buffer, and a step is
the mean of the K or more that it holds.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from fl_core.strategies.author import Server, Update
from fl_core.strategies.buffered.selection import BufferedStrategy


class FedBuff(BufferedStrategy):
    """FedBuff, buffered asynchronous aggregation (Nguyen et al., AISTATS 2022, Algorithm 1)."""

    name: ClassVar[str] = "fedbuff"
    title: ClassVar[str] = "FedBuff"

    scaling: Literal["inverse_root", "none"] = "inverse_root"  # by staleness: 1/√(1+τ), or not

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.total, server.memory.count = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        self.receive_together(server, [update])

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        memory = server.memory
        for update in updates:
            scale = (1 + update.staleness) ** 0.5 if self.scaling == "inverse_root" else 1
            memory.total += update.delta / scale
            memory.count += 1
        if memory.count >= self.buffer:
            server.step(self.server_lr * (memory.total / memory.count))
            memory.total, memory.count = server.zeros(), 0
