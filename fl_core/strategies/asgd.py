"""Vanilla asynchronous SGD: every arrival is added immediately, however stale.

Mishchenko, Bach, Even, Woodworth: Asynchronous SGD beats minibatch SGD under arbitrary delays. NeurIPS
2022, Algorithm 1 with a constant step; the baseline of the ACE paper (arXiv 2511.19066). That paper calls
it FedBuff with M = 1 (F.1): so several updates in one server iteration are averaged, as in a buffer.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from fl_core.strategies.toolkit import Server, Strategy, Update


class ASGD(Strategy):
    """Vanilla asynchronous SGD, every arrival is a step (Mishchenko et al., NeurIPS 2022, Algorithm 1)."""

    name: ClassVar[str] = "asgd"
    title: ClassVar[str] = "ASGD"
    presets: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "async_diloco": (
            "Asynchronous DiLoCo, Nesterov's momentum at every arrival (Liu et al., arXiv 2401.09135, 2024).",
            {"server": "nesterov", "local": {"name": "adamw", "keep_state": True}},
        ),
        "momentum_look_ahead": (
            "Momentum look-ahead in asynchronous DiLoCo (Ajanthan et al., MCDC at ICLR 2025).",
            {"server": "look_ahead", "local": {"name": "adamw", "keep_state": True}},
        ),
    }

    def receive(self, server: Server, update: Update) -> None:
        server.step(self.server_lr * update.delta)

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        server.step(self.server_lr * torch.stack([update.delta for update in updates]).mean(0))
