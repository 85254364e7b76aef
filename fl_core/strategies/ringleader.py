"""Ringleader ASGD: rounds of n steps on a table filled by all clients.

Maranjyan, Richtárik: Ringleader ASGD: the first asynchronous SGD with optimal time complexity under data
heterogeneity. ICLR 2026 (arXiv 2509.22860). Phase 1 gathers without stepping until every client has a
gradient in the table. Phase 2 makes n steps of the table's mean: the first at once, then one at the next
arrival of each other client, which is added to the table; further updates of clients that had their step
fill the table of the next round. So the start is phase 1, in which early clients compute at x^0 again.

With many clients the mean is corrected, within a round, by the change of the one row that is new; both are
equal to rounding.
"""

from collections.abc import Collection
from typing import ClassVar

import torch

from fl_core.strategies import caches
from fl_core.strategies.table_start import MAX_FULL_MEAN_CLIENTS, shared
from fl_core.strategies.toolkit import Server, Strategy, Update


class Ringleader(Strategy):
    """Ringleader ASGD, n steps a round on a table of all clients (Maranjyan & Richtárik, ICLR 2026)."""

    name: ClassVar[str] = "ringleader"
    title: ClassVar[str] = "Ringleader ASGD"
    pulls: ClassVar[bool] = True

    def stalled_by(self, server: Server, gone: Collection[int]) -> list[int]:
        memory = server.memory
        if memory.waiting is None:  # phase 1
            return shared(memory.unheard, server.newly_gone)
        if len(memory.waiting) > len(gone) or any(client not in gone for client in memory.waiting):
            return []
        return list(memory.waiting)

    def begin(self, server: Server) -> None:
        memory = server.memory
        memory.total, memory.count = self.table(server)  # G_i, b_i
        memory.next_total, memory.next_count = self.table(server)  # G_i^+, b_i^+
        memory.unheard = dict.fromkeys(range(server.n))  # clients with b_i = 0
        memory.waiting = None  # clients that wait for their step in phase 2; None in phase 1
        memory.mean = server.zeros()  # (1/n) Σ G_i / b_i

    def receive(self, server: Server, update: Update) -> None:
        memory, client = server.memory, update.client
        if memory.waiting is not None and client not in memory.waiting:
            caches.add(memory.next_total, client, update.delta)
            memory.next_count[client] += 1
            return
        previous = caches.row(memory.total, client, memory.mean) / max(1, memory.count[client])
        caches.add(memory.total, client, update.delta)
        memory.count[client] += 1
        memory.unheard.pop(client, None)
        if memory.unheard:  # phase 1
            return
        if memory.waiting is not None and server.n > MAX_FULL_MEAN_CLIENTS:
            after = caches.row(memory.total, client, memory.mean) / memory.count[client]
            memory.mean += (after - previous) / server.n
        else:
            total = caches.rows(memory.total, range(server.n), memory.mean)
            memory.mean = (
                total / torch.tensor(memory.count, dtype=total.dtype, device=total.device)[:, None]
            ).mean(0)
        server.step(self.server_lr * memory.mean)
        if memory.waiting is None:
            memory.waiting = dict.fromkeys(range(server.n))
        del memory.waiting[client]
        if not memory.waiting:
            memory.total, memory.count = memory.next_total, memory.next_count
            memory.next_total, memory.next_count = self.table(server)
            memory.unheard = {i: None for i in range(server.n) if not memory.count[i]}
            memory.waiting = None

    @staticmethod
    def table(server: Server) -> tuple[caches.Table, list[int]]:
        """Return empty sums [n, d] and counts [n]."""
        return caches.empty(server), [0] * server.n
