"""Ringmaster ASGD: asynchronous SGD that stops and restarts whoever has fallen R versions behind.

Maranjyan, Tyurin, Richtárik: Ringmaster ASGD: the first asynchronous SGD with optimal time complexity. ICML
2025 (arXiv 2501.16168), the variant that interrupts computations.
"""

from collections.abc import Mapping
from typing import ClassVar

from fl_core.parts import Count
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Candidates, Range, Strategy


class Ringmaster(Strategy):
    """Ringmaster ASGD, jobs R versions old are restarted (Maranjyan et al., ICML 2025)."""

    name: ClassVar[str] = "ringmaster"
    title: ClassVar[str] = "Ringmaster ASGD"
    tunable: ClassVar[Mapping[str, Candidates]] = {**Strategy.tunable, "max_delay": Range(1, 100)}

    max_delay: Count = 10  # R

    def receive(self, server: Server, update: Update) -> None:
        server.step(self.server_lr * update.delta)
        for job in list(server.jobs):
            if server.version - job.version >= self.max_delay:
                server.dismiss(job)
