"""ACED: ACE without the updates that have become too old.

Mitigating participation imbalance bias in asynchronous federated learning. arXiv 2511.19066, Algorithm a.1:
A(t) = {i : t − t_i ≤ τ_algo}, and the step is the mean over A(t); nothing changes where it is empty. The
algorithm sets t_i to the present iteration at each arrival; its list of notation calls it the iteration of
the model that the cached update was made from. `stamp` selects one of the two readings.

It starts as ACE does (Algorithm 1), with a first pass at w^0; `start: when_all_heard` is that of IA²SGD
(`ace`). So A(t) never holds a client that has not been heard from.

Where several updates arrive in one server iteration, all of them enter the table before A(t) is formed.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import torch

from fl_core.strategies.author import Count, Server, Tune, Update
from fl_core.strategies.tables import caches
from fl_core.strategies.tables.start import TableStrategy


class ACED(TableStrategy):
    """ACED, ACE over clients heard within τ_algo iterations (arXiv 2511.19066, 2025, Algorithm a.1)."""

    name: ClassVar[str] = "aced"
    title: ClassVar[str] = "ACED"

    max_age: Annotated[Count, Tune(1, 100)] = 10  # τ_algo, server iterations
    # An update's age counts from its arrival, or from its model
    stamp: Literal["arrival", "model"] = "arrival"
    cache: caches.Precision = "full"  # precision of the updates that are kept
    # How it begins: a pass over all clients, or as IA²SGD, which steps once all were heard before
    start: Literal["first_pass", "when_all_heard"] = "first_pass"

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.cache = caches.empty(server, self.cache)  # U_i
        server.memory.stamp = torch.zeros(server.n, dtype=torch.long, device=server.model.device)  # t_i

    def receive(self, server: Server, update: Update) -> None:
        self.receive_together(server, [update])

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        memory = server.memory
        filled = self.first_pass or self.complete(server)  # before these updates
        for update in updates:
            caches.put(memory.cache, update.client, update.delta, server)
            memory.stamp[update.client] = server.version if self.stamp == "arrival" else update.version
        if not (self.complete(server, *updates) and filled):
            return
        active = server.version - memory.stamp <= self.max_age  # A(t)
        newest = caches.rows(memory.cache, active, server.model)
        server.step(self.server_lr * newest.mean(0) if len(newest) else None)
