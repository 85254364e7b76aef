"""Malenia SGD: Rennala for heterogeneous data; every client's mean has equal weight.

Tyurin, Richtárik: Optimal time complexities of parallel stochastic optimization methods under a fixed
computation model. NeurIPS 2023: gather while ((1/n) Σ_i 1/B_i)^{-1} ≤ S/n, so that every B_i ≥ 1, then x ←
x − γ (1/n) Σ_i (1/B_i) Σ_j g_ij. Every step, including the first, begins with an empty table and waits for
all clients.
"""

from collections.abc import Collection
from typing import Annotated, ClassVar

from fl_core.strategies import caches
from fl_core.strategies.participation import Participation, begun_anew
from fl_core.strategies.table_start import shared
from fl_core.strategies.toolkit import Count, Scenario, Server, Strategy, Tune, Update

MARGIN = 1.01  # of the sum of 1/B_i, far above the rounding of a sum of float32


class Malenia(Strategy):
    """Malenia SGD, the mean of every client's mean at the newest model (Tyurin & Richtárik, NeurIPS 2023)."""

    name: ClassVar[str] = "malenia"
    title: ClassVar[str] = "Malenia SGD"
    pulls: ClassVar[bool] = True

    batch: Annotated[Count, Tune(1, 32)] = 5  # S, gradients a step waits for

    def participation(self, scenario: Scenario) -> Participation | None:
        return begun_anew(self.concurrency, scenario)

    def stalled_by(self, server: Server, gone: Collection[int]) -> list[int]:
        memory = server.memory
        if missing := shared(memory.unheard, server.newly_gone):
            return missing
        # Counts of lost clients do not change, and the bound below is n/|gone| at least.
        if not server.newly_gone or self.batch * len(gone) < server.n**2:
            return []
        counts = memory.count[list(gone)]
        bound = server.n / float((1 / counts).sum())  # of the harmonic mean, without them
        if bound > self.batch / server.n:
            return []
        return [client for client, count in zip(gone, counts, strict=True) if count == counts.min()]

    def begin(self, server: Server) -> None:
        memory = server.memory
        memory.total = caches.empty(server)  # Σ_j g_ij
        memory.count = server.model.new_zeros(server.n)  # B_i
        memory.unheard = dict.fromkeys(range(server.n))  # clients with B_i = 0
        memory.received = 0  # Σ B_i
        memory.inverse = 0.0  # Σ 1/B_i over clients heard from

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        caches.add(memory.total, update.client, update.delta)
        count = float(memory.count[update.client])
        memory.count[update.client] += 1
        memory.inverse += 1 / (count + 1) - (1 / count if count else 0)
        memory.unheard.pop(update.client, None)
        memory.received += 1
        if memory.unheard or memory.received <= self.batch:  # the harmonic mean is at most the mean
            return
        if self.batch * memory.inverse > MARGIN * server.n**2:  # clearly not enough
            return
        harmonic = server.n / (1 / memory.count).sum()
        if harmonic > self.batch / server.n:
            total = caches.rows(memory.total, range(server.n), server.model)
            server.step(self.server_lr * (total / memory.count[:, None]).mean(0))
            self.begin(server)
            for job in list(server.jobs):
                server.dismiss(job)
