"""MIFA: rounds with whoever is available, and the last gradient of everyone else.

Gu, Huang, Zhang, Huang: Fast federated learning in the presence of arbitrary device unavailability. NeurIPS
2021, Algorithm 1: G_i ← (w_t − w_K^i)/η_t for the available clients, w ← w − η_t (1/N) Σ_i G_i, with η_t =
η/(t+1) at both ends.
"""

from typing import ClassVar

from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy


class MIFA(Strategy):
    """MIFA, rounds that remember the absent clients (Gu et al., NeurIPS 2021, Algorithm 1)."""

    name: ClassVar[str] = "mifa"
    title: ClassVar[str] = "MIFA"

    def start(self, server: Server) -> None:
        server.memory.cache = server.zeros(server.n)  # G_i
        server.memory.heard = [False] * server.n

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.cache[update.client] = -update.delta / update.lr
        memory.heard[update.client] = True
        if server.in_flight == 0 and all(memory.heard):  # the first step waits for everyone
            server.step(-self.server_lr * server.local_lr * memory.cache.mean(0))
            server.local_lr = self.local_lr / (server.version + 1)  # η_t

    def next(self, server: Server) -> list[int]:
        if server.in_flight:
            return []
        return server.due if all(server.memory.heard) else list(server.idle)
