"""CA²FL: buffered aggregation, calibrated by each client's last update.

Wang, Cao, Wu, Chen, Chen: Tackling the data heterogeneity in asynchronous federated learning with cached
update calibration. ICLR 2024, Algorithm 2, which starts from h_i = 0 and h = 0 and waits for no client. Where
several updates arrive in one server iteration, all of them enter the buffer, which may then hold more than M.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from fl_core.strategies.author import Count, Scenario, Server, Strategy, Tune, Update
from fl_core.strategies.participation import Participation, buffered
from fl_core.strategies.tables import caches


class CA2FL(Strategy):
    """CA²FL, cached update calibration (Wang et al., ICLR 2024, Algorithm 2)."""

    name: ClassVar[str] = "ca2fl"
    title: ClassVar[str] = "CA²FL"

    buffer: Annotated[Count, Tune(1, 32)] = 10  # M, updates a step waits for
    concurrency: Count | None = 20  # M_c, jobs kept in flight

    def participation(self, scenario: Scenario) -> Participation | None:
        return buffered(self.concurrency, self.buffer, scenario)

    def begin(self, server: Server) -> None:
        server.memory.cache = caches.empty(server)  # h_i, the last update of each client
        server.memory.mean = server.zeros()  # h = (1/N) Σ h_i, constant between two steps
        server.memory.change, server.memory.count = server.zeros(), 0

    def receive(self, server: Server, update: Update) -> None:
        self.receive_together(server, [update])

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        memory = server.memory
        for update in updates:
            memory.change += update.delta - caches.row(memory.cache, update.client, memory.change)
            caches.put(memory.cache, update.client, update.delta, server)
            memory.count += 1
        if memory.count >= self.buffer:
            server.step(self.server_lr * (memory.mean + memory.change / memory.count))
            memory.mean += memory.change / server.n
            memory.change, memory.count = server.zeros(), 0
