"""Rennala SGD: all clients work at the newest model until a batch of gradients is in.

Tyurin, Richtárik: Optimal time complexities of parallel stochastic optimization methods under a fixed
computation model. NeurIPS 2023: x ← x − γ (1/S) Σ of the first S gradients at x. Of the two readings, clients
that are interrupted at a step and clients that finish and are ignored, this is the first: at a step all
unfinished work is abandoned and all clients begin at the new x.
"""

from typing import Annotated, ClassVar

from fl_core.strategies.participation import Participation, begun_anew
from fl_core.strategies.toolkit import Count, Scenario, Server, Strategy, Tune, Update


class Rennala(Strategy):
    """Rennala SGD, the first S gradients at the newest model (Tyurin & Richtárik, NeurIPS 2023)."""

    name: ClassVar[str] = "rennala"
    title: ClassVar[str] = "Rennala SGD"
    pulls: ClassVar[bool] = True

    batch: Annotated[Count, Tune(1, 32)] = 5  # S, gradients a step waits for

    def participation(self, scenario: Scenario) -> Participation | None:
        return begun_anew(self.concurrency, scenario)

    def begin(self, server: Server) -> None:
        server.memory.total, server.memory.count = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.total += update.delta
        memory.count += 1
        if memory.count == self.batch:
            server.step(self.server_lr * memory.total / self.batch)
            self.begin(server)
            for job in list(server.jobs):
                server.dismiss(job)
