"""ACE: every step uses the newest update of all clients.

Mitigating participation imbalance bias in asynchronous federated learning. arXiv 2511.19066. `direct` is
Algorithm 1: the server keeps a table of all updates U_i and takes its mean. `incremental` is Algorithm a.5:
the clients keep their own U_i and send the change, the server keeps the mean u. The 8-bit table is that of
appendix F.3.3.

Both algorithms start with a first pass: every client computes U_i at w^0, then w^1 = w^0 − η u^0. The code of
Maranjyan and Richtárik (arXiv 2509.22860) has the same algorithm as IA²SGD: `start: when_all_heard`. It sends
as usual, so that early clients compute at w^0 again, and makes its first step at the arrival after the one
that fills the table. DuDe-ASGD (Wang, Sun, Wai, Zhang, arXiv 2405.16966, 2024) is the incremental form, a
year and a half earlier, as far as its abstract tells.

Where several updates arrive in one server iteration, all of them enter the table before its mean is taken.
With many clients the mean of `direct` is corrected by the change of each new row, too; both are equal to
rounding.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from fl_core.strategies import caches
from fl_core.strategies.table_start import MAX_FULL_MEAN_CLIENTS, TableStrategy
from fl_core.strategies.toolkit import Server, Update


class ACE(TableStrategy):
    """ACE, the mean of all clients' newest updates at every arrival (arXiv 2511.19066, 2025, Algorithm 1)."""

    name: ClassVar[str] = "ace"
    title: ClassVar[str] = "ACE"

    # Who keeps the updates: the server, or each client its own
    form: Literal["direct", "incremental"] = "incremental"
    cache: caches.Precision = "full"  # precision of the updates that are kept
    # How it begins: a pass over all clients, or as IA²SGD, which steps once all were heard before
    start: Literal["first_pass", "when_all_heard"] = "first_pass"

    @property
    def kept_by_clients(self) -> tuple[str, ...]:
        return ("cache",) if self.form == "incremental" else ()

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.cache = caches.empty(server, self.cache)  # U_i
        server.memory.mean = server.zeros()  # u = (1/N) Σ U_i

    def receive(self, server: Server, update: Update) -> None:
        self.receive_together(server, [update])

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        memory, model = server.memory, server.model
        filled = self.first_pass or self.complete(server)  # before these updates
        incremental = self.form == "incremental" or server.n > MAX_FULL_MEAN_CLIENTS
        for update in updates:
            old = caches.row(memory.cache, update.client, model).clone()
            caches.put(memory.cache, update.client, update.delta, server)
            if incremental:
                memory.mean += (caches.row(memory.cache, update.client, model) - old) / server.n
        if not (self.complete(server, *updates) and filled):
            return
        if not incremental:
            memory.mean = caches.rows(memory.cache, range(server.n), model).mean(0)
        server.step(self.server_lr * memory.mean)
