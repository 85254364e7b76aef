"""MIFA: rounds of the available clients, with the last gradients of all others.

Gu, Huang, Zhang, Huang: Fast federated learning in the presence of arbitrary device unavailability. NeurIPS
2021, Algorithm 1: G_i ← (w_t − w_K^i)/η_t for the available clients, w ← w − η_t (1/N) Σ_i G_i, with η_t =
η/(t+1) at both ends.

The authors' code makes no step before every client has been heard from (`start: when_all_heard`); its variant
`fdu_no_wait` begins with G_i = 0 and steps from the first round on (`start: zeros`).
"""

from typing import ClassVar, Literal

from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.tables.start import TableStrategy


class MIFA(TableStrategy):
    """MIFA, rounds that remember the absent clients (Gu et al., NeurIPS 2021, Algorithm 1)."""

    name: ClassVar[str] = "mifa"
    title: ClassVar[str] = "MIFA"

    # No step before all are heard, or a memory of zeros
    start: Literal["when_all_heard", "zeros"] = "when_all_heard"

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.cache = server.zeros(server.n)  # G_i

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.cache[update.client] = -update.delta / update.lr
        self.end_round(server, update)

    def lost(self, server: Server, client: int) -> None:
        self.end_round(server)

    def end_round(self, server: Server, *heard: Update) -> None:
        """Step if all clients of the round have answered."""
        if self.complete(server, *heard) and server.in_flight == 0:
            server.step(-self.server_lr * server.local_lr * server.memory.cache.mean(0))
            server.local_lr = self.local_lr / (server.version + 1)  # η_t

    def next(self, server: Server) -> list[int]:
        if server.in_flight:
            return []
        return list(server.idle) if server.memory.unheard else server.due
