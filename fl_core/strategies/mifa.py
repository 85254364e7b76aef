"""MIFA: rounds of the available clients, with the last gradients of all others.

Gu, Huang, Zhang, Huang: Fast federated learning in the presence of arbitrary device unavailability. NeurIPS
2021, Algorithm 1: G_i ← (w_t − w_K^i)/η_t for the available clients, w ← w − η_t (1/N) Σ_i G_i, with η_t =
η/(t+1) at both ends.

`start: when_all_heard` makes the first step at the end of the round in which the last client is heard from.
The authors' code makes it a round later (`next_round`): once every client was available, all of them fill
the table at w_0, those that are away as well, and rounds begin. Its variant `fdu_no_wait` begins with
G_i = 0 and steps from the first round on (`zeros`).
"""

from typing import ClassVar, Literal

from fl_core.strategies import caches
from fl_core.strategies.participation import Participation, alike
from fl_core.strategies.table_start import TableStrategy
from fl_core.strategies.toolkit import Scenario, Server, Update


class MIFA(TableStrategy):
    """MIFA, rounds that remember the absent clients (Gu et al., NeurIPS 2021, Algorithm 1)."""

    name: ClassVar[str] = "mifa"
    title: ClassVar[str] = "MIFA"

    concurrency: None = None  # a round has all who are available
    # First step in the round in which all are heard, in the next one, or in the first with a memory of zeros
    start: Literal["when_all_heard", "next_round", "zeros"] = "when_all_heard"

    def participation(self, scenario: Scenario) -> Participation:
        return alike  # all are in every round

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.cache = caches.empty(server)  # G_i
        server.memory.waits = self.start == "next_round"  # for a round after the one in which all arrived

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        caches.put(memory.cache, update.client, -update.delta / update.lr, server)
        self.end_round(server, update)

    def lost(self, server: Server, client: int) -> None:
        self.end_round(server)

    def end_round(self, server: Server, *updates: Update) -> None:
        """Step if all clients of the round have answered."""
        if not self.complete(server, *updates) or server.in_flight:
            return
        if server.memory.waits:
            server.memory.waits = False
        else:
            gradients = caches.rows(server.memory.cache, range(server.n), server.model)
            server.step(-self.server_lr * server.local_lr * gradients.mean(0))
            server.local_lr = self.local_lr / (server.version + 1)  # η_t

    def next(self, server: Server) -> list[int]:
        return [] if server.in_flight else list(server.idle)
