"""FedStale: rounds of FedAvg, corrected by each client's last update; FedVARP for β = 1.

Rodio, Neglia: FedStale: leveraging stale client updates in federated learning. arXiv 2405.04171, 2024: θ ← θ
+ η_g [Σ_S d_i (Δ_i − β h_i) + β Σ_i p_i h_i] over the clients S of a round, then h_i ← Δ_i for i in S, from
h_i = 0. β = 0 is FedAvg, β = 1 FedVARP (Jhunjhunwala, Sharma, Nagarkatti, Joshi: FedVARP: tackling the
variance due to partial client participation in federated learning. UAI 2022).

In the authors' code d_i is p_i over the client's chance to take part. So it is with uniform sampling. Where
all who are available take part, that chance is not known here: d_i is p_i over the sum of p of the round.
"""

from dataclasses import replace
from typing import Annotated, ClassVar

from torch import Tensor

from fl_core.strategies import caches
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.toolkit import Server, Share, TuneAmong, Update


class FedStale(FedAvg):
    """FedStale, rounds with a share of the absent clients' last updates (Rodio & Neglia, arXiv, 2024)."""

    name: ClassVar[str] = "fedstale"
    title: ClassVar[str] = "FedStale"

    beta: Annotated[Share, TuneAmong(0.0, 0.2, 0.5, 0.8, 1.0)] = 0.5  # β, of old updates; 1: FedVARP

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.cache = caches.empty(server)  # h_i, the last update of each client
        server.memory.stale = server.zeros()  # Σ p_i h_i, constant between two steps
        server.memory.change = server.zeros()

    def receive(self, server: Server, update: Update) -> None:
        memory, client = server.memory, update.client
        old = caches.row(memory.cache, client, memory.stale).clone()
        caches.put(memory.cache, client, update.delta, server)
        memory.change += float(server.p[client]) * (update.delta - old)
        super().receive(server, replace(update, delta=update.delta - self.beta * old))

    def delta(self, server: Server) -> Tensor:
        memory = server.memory
        delta = super().delta(server) + self.server_lr * self.beta * memory.stale
        memory.stale += memory.change
        memory.change = server.zeros()
        return delta
