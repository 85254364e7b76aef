"""ACED: ACE without the updates that have become too old.

Mitigating participation imbalance bias in asynchronous federated learning. arXiv 2511.19066, Algorithm a.1:
A(t) = {i : t − t_i ≤ τ_algo}, and the step is the mean over A(t); nothing changes where it is empty. The
algorithm sets t_i to the present iteration at each arrival; its list of notation calls it the iteration of
the model that the cached update was made from. Both readings are here, by the name of `stamp`.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import torch

from fl_core.parts import Count
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Candidates, Range, Strategy
from fl_core.strategies.tables import caches


class ACED(Strategy):
    """ACED, ACE over clients heard within τ_algo iterations (arXiv 2511.19066, 2025, Algorithm a.1)."""

    name: ClassVar[str] = "aced"
    title: ClassVar[str] = "ACED"
    tunable: ClassVar[Mapping[str, Candidates]] = {**Strategy.tunable, "max_age": Range(1, 100)}

    max_age: Count = 10  # τ_algo
    stamp: Literal["arrival", "model"] = "arrival"
    cache: caches.Precision = "full"

    def expected(self) -> Self:
        return self.model_copy(update={"cache": "full"})  # what rounding does is noise

    def start(self, server: Server) -> None:
        server.memory.cache = caches.empty(server, self.cache)  # U_i
        server.memory.stamp = torch.zeros(server.n, dtype=torch.long, device=server.model.device)  # t_i
        server.memory.heard = 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        caches.put(memory.cache, update.client, update.delta, server)
        memory.stamp[update.client] = server.version if self.stamp == "arrival" else update.version
        memory.heard += 1
        if memory.heard < server.n:  # the first step waits for as many updates as there are clients
            return
        active = server.version - memory.stamp <= self.max_age  # A(t)
        newest = caches.rows(memory.cache, active, server.model)
        server.step(self.server_lr * newest.mean(0) if len(newest) else None)
