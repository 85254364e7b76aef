"""ACE: every step uses the newest update of all clients.

Mitigating participation imbalance bias in asynchronous federated learning. arXiv 2511.19066. `direct` is
Algorithm 1: the server keeps a table of all updates U_i and takes its mean. `incremental` is Algorithm a.5:
the clients keep their own U_i and send the change, the server keeps the mean u. The 8-bit table is that of
appendix F.3.3.
"""

from typing import ClassVar, Literal, Self

import torch

from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy
from fl_core.strategies.tables import caches


class ACE(Strategy):
    """ACE, the mean of all clients' newest updates at every arrival (arXiv 2511.19066, 2025, Algorithm 1)."""

    name: ClassVar[str] = "ace"
    title: ClassVar[str] = "ACE"

    form: Literal["direct", "incremental"] = "incremental"
    cache: caches.Precision = "full"

    def expected(self) -> Self:
        return self.model_copy(update={"cache": "full"})  # what rounding does is noise

    def at_clients(self) -> tuple[str, ...]:
        return ("cache",) if self.form == "incremental" else ()

    def start(self, server: Server) -> None:
        server.memory.cache = caches.empty(server, self.cache)  # U_i
        server.memory.mean = server.zeros()  # u = (1/N) Σ U_i
        server.memory.heard = 0

    def receive(self, server: Server, update: Update) -> None:
        memory, client, model = server.memory, update.client, server.model
        old = caches.rows(memory.cache, client, model).clone()
        caches.put(memory.cache, client, update.delta, server)
        if self.form == "incremental":
            memory.mean += (caches.rows(memory.cache, client, model) - old) / server.n
        else:
            everyone = torch.ones(server.n, dtype=torch.bool, device=model.device)
            memory.mean = caches.rows(memory.cache, everyone, model).mean(0)
        memory.heard += 1
        if memory.heard >= server.n:  # the first step waits for as many updates as there are clients
            server.step(self.server_lr * memory.mean)
