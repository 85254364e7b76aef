"""Malenia SGD: Rennala for heterogeneous data; every client's mean has the same weight.

Tyurin, Richtárik: Optimal time complexities of parallel stochastic optimization methods under a fixed
computation model. NeurIPS 2023: gather while ((1/n) Σ_i 1/B_i)^{-1} ≤ S/n, so that every B_i ≥ 1, then x ←
x − γ (1/n) Σ_i (1/B_i) Σ_j g_ij. Every step, including the first, begins with an empty table and waits for
all clients.
"""

from collections.abc import Collection
from math import inf
from typing import Annotated, ClassVar

import torch

from fl_core.strategies.author import Count, Scenario, Server, Strategy, Tune, Update
from fl_core.strategies.participation import Participation, begun_anew


class Malenia(Strategy):
    """Malenia SGD, the mean of every client's mean at the newest model (Tyurin & Richtárik, NeurIPS 2023)."""

    name: ClassVar[str] = "malenia"
    title: ClassVar[str] = "Malenia SGD"
    pulls: ClassVar[bool] = True

    batch: Annotated[Count, Tune(1, 32)] = 5  # S, gradients a step waits for

    def participation(self, scenario: Scenario) -> Participation | None:
        return begun_anew(self.concurrency, scenario)

    def stalled_by(self, server: Server, gone: Collection[int]) -> list[int]:
        counts = server.memory.count[list(gone)]
        bound = server.n / float((1 / counts).sum()) if gone else inf  # of the harmonic mean, without them
        if bound > self.batch / server.n:
            return []
        return [client for client, count in zip(gone, counts, strict=True) if count == counts.min()]

    def begin(self, server: Server) -> None:
        server.memory.total = server.zeros(server.n)  # Σ_j g_ij
        server.memory.count = torch.zeros_like(server.memory.total[:, 0])  # B_i

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.total[update.client] += update.delta
        memory.count[update.client] += 1
        harmonic = server.n / (1 / memory.count).sum()  # 0 while a client is missing
        if harmonic > self.batch / server.n:
            server.step(self.server_lr * (memory.total / memory.count[:, None]).mean(0))
            self.begin(server)
            for job in list(server.jobs):
                server.dismiss(job)
