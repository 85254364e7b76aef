"""FedFa: the model is the mean of the K newest client models, renewed at every arrival.

Xu, Zhang, Liu, et al.: FedFa: a fully asynchronous training paradigm for federated learning. IJCAI 2024.
The window starts filled with the first model.
"""

from collections.abc import Mapping
from typing import ClassVar

from fl_core.parts import Count
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Candidates, Range, Strategy


class FedFa(Strategy):
    """FedFa, the mean of a sliding window of client models (Xu et al., IJCAI 2024)."""

    name: ClassVar[str] = "fedfa"
    title: ClassVar[str] = "FedFa"
    tunable: ClassVar[Mapping[str, Candidates]] = {**Strategy.tunable, "window": Range(1, 32)}

    window: Count = 5  # K

    def begin(self, server: Server) -> None:
        server.memory.window = server.model.repeat(self.window, 1)  # [K, d]
        server.memory.oldest = 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        old = memory.window[memory.oldest].clone()
        memory.window[memory.oldest] = update.model
        memory.oldest = (memory.oldest + 1) % self.window
        server.step(self.server_lr * (update.model - old) / self.window)
