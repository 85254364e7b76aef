"""Delay-adaptive asynchronous SGD: smaller steps for staler updates.

Koloskova, Stich, Jaggi: Sharper convergence guarantees for asynchronous SGD for distributed and federated
learning. NeurIPS 2022, eq. (11) as practised: η/τ beyond the concurrency τ_C. Mishchenko et al., NeurIPS
2022: η n / max(n, τ). The code of the ACE paper (arXiv 2511.19066): η min(1, τ_C/τ), which is not eq. (11)
but τ_C times larger. Several updates in one server iteration are averaged, each scaled for its own staleness.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch

from fl_core.strategies.toolkit import Server, Strategy, Update


class DelayAdaptive(Strategy):
    """Delay-adaptive ASGD, smaller steps for staler updates (Koloskova et al., NeurIPS 2022, eq. 11)."""

    name: ClassVar[str] = "delay_adaptive"
    title: ClassVar[str] = "Delay-adaptive ASGD"

    rule: Literal["koloskova", "mishchenko", "ace"] = "koloskova"  # how the step shrinks, by paper

    def receive(self, server: Server, update: Update) -> None:
        server.step(self.server_lr * self.scale(server, update.staleness) * update.delta)

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        scaled = [self.scale(server, update.staleness) * update.delta for update in updates]
        server.step(self.server_lr * torch.stack(scaled).mean(0))

    def scale(self, server: Server, staleness: int) -> float:
        """Return η_t / η."""
        concurrency = min(self.concurrency or server.n, server.n)  # τ_C
        if self.rule == "mishchenko":
            return server.n / max(server.n, staleness)
        if staleness <= concurrency:
            return 1.0
        return 1 / staleness if self.rule == "koloskova" else concurrency / staleness
