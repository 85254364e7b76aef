"""Ringleader ASGD: rounds of n steps on a table that all clients have filled.

Maranjyan, Richtárik: Ringleader ASGD: the first asynchronous SGD with optimal time complexity under data
heterogeneity. ICLR 2026 (arXiv 2509.22860). Phase 1 gathers without stepping until every client has a
gradient in the table. Phase 2 makes n steps of the table's mean: the first at once, then one at the next
arrival of each other client, which is added to the table; further updates of clients that had their step
fill the table of the next round. So the start is phase 1, in which early clients compute at x^0 again.
"""

from collections.abc import Collection
from typing import ClassVar

import torch

from fl_core.strategies.author import Server, Strategy, Update


class Ringleader(Strategy):
    """Ringleader ASGD, n steps a round on a table of all clients (Maranjyan & Richtárik, ICLR 2026)."""

    name: ClassVar[str] = "ringleader"
    title: ClassVar[str] = "Ringleader ASGD"
    pulls: ClassVar[bool] = True

    def stalled_by(self, server: Server, gone: Collection[int]) -> list[int]:
        memory = server.memory
        if not memory.stepped:  # phase 1
            return [client for client in gone if memory.count[client] == 0]
        left = [client for client in range(server.n) if client not in memory.stepped]
        return left if all(client in gone for client in left) else []

    def begin(self, server: Server) -> None:
        memory = server.memory
        memory.total, memory.count = self.table(server)  # G_i, b_i
        memory.next_total, memory.next_count = self.table(server)  # G_i^+, b_i^+
        memory.stepped = []  # clients that had a step in phase 2; empty in phase 1

    def receive(self, server: Server, update: Update) -> None:
        memory, client = server.memory, update.client
        if client in memory.stepped:
            memory.next_total[client] += update.delta
            memory.next_count[client] += 1
            return
        memory.total[client] += update.delta
        memory.count[client] += 1
        if memory.count.min() == 0:  # phase 1
            return
        server.step(self.server_lr * (memory.total / memory.count[:, None]).mean(0))
        memory.stepped.append(client)
        if len(memory.stepped) == server.n:
            memory.total, memory.count = memory.next_total, memory.next_count
            memory.next_total, memory.next_count = self.table(server)
            memory.stepped = []

    @staticmethod
    def table(server: Server) -> tuple[torch.Tensor, torch.Tensor]:
        """Return empty sums [n, d] and counts [n]."""
        total = server.zeros(server.n)
        return total, torch.zeros_like(total[:, 0])
