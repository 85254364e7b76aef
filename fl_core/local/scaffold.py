"""SCAFFOLD (Karimireddy et al., "Stochastic controlled averaging for federated learning", ICML 2020)."""

from typing import ClassVar

from torch import Tensor

from fl_core.local.work import LocalWork, Work
from fl_core.server.jobs import Update
from fl_core.server.server import Server


class Scaffold(LocalWork):
    """SCAFFOLD, option II: y ← y − η_l (g − c_i + c) (Karimireddy et al., ICML 2020, Algorithm 1).

    A client uses the c of its model version, even if a buffering server sends that version later.
    """

    name: ClassVar[str] = "scaffold"
    kept_by_clients: ClassVar[tuple[str, ...]] = ("clients",)

    def begin(self, server: Server) -> None:
        server.local.c, server.local.clients = server.zeros(), {}

    def broadcast(self, server: Server) -> dict[str, Tensor]:
        return {"c": server.local.c}

    def client_state(self, server: Server, client: int) -> dict[str, Tensor]:
        return {"c": server.local.clients.get(client, server.zeros())}

    def correct(self, g: Tensor, y: Tensor, job: Work) -> Tensor:
        return g - job.client_state["c"] + job.broadcast["c"]

    def receive(self, server: Server, update: Update) -> None:
        local, old = server.local, self.client_state(server, update.client)["c"]
        new = old - update.broadcast["c"] - update.delta / (update.steps * update.lr)
        local.c = local.c + (new - old) / server.n
        local.clients[update.client] = new
