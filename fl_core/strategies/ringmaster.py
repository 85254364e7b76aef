"""Ringmaster ASGD: asynchronous SGD without gradients R or more versions old.

Maranjyan, Tyurin, Richtárik: Ringmaster ASGD: the first asynchronous SGD with optimal time complexity. ICML
2025 (arXiv 2501.16168). `late: restart`: with calculation stops, a client that has fallen R versions behind
is interrupted and restarted (Algorithm 5). `late: ignore`: without them, an update with delay ≥ R is
discarded when it arrives, and its client gets the newest model (Algorithm 4).
"""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from fl_core.strategies.participation import Participation, begun_anew
from fl_core.strategies.toolkit import Count, Job, Scenario, Send, Server, Strategy, Tune, Update


class Ringmaster(Strategy):
    """Ringmaster ASGD, jobs R versions old are restarted or ignored (Maranjyan et al., ICML 2025)."""

    name: ClassVar[str] = "ringmaster"
    title: ClassVar[str] = "Ringmaster ASGD"

    max_delay: Annotated[Count, Tune(1, 100)] = 10  # R, versions behind from which a job is late
    late: Literal["restart", "ignore"] = "restart"  # what happens to late jobs

    def participation(self, scenario: Scenario) -> Participation | None:
        """Return the shares as for restarted jobs; unknown where any are ignored."""
        return begun_anew(self.concurrency, scenario) if self.late == "restart" else None

    def begin(self, server: Server) -> None:
        server.memory.sent = None  # version → the clients that it was sent to

    def receive(self, server: Server, update: Update) -> None:
        if self.late == "ignore":
            if update.staleness < self.max_delay:
                server.step(self.server_lr * update.delta)
            return
        server.step(self.server_lr * update.delta)
        for job in self.late_jobs(server):
            server.dismiss(job)

    def late_jobs(self, server: Server) -> list[Job]:
        """Return the jobs in flight R versions old; older jobs are dismissed already."""
        oldest, sent = server.version - self.max_delay, server.memory.sent
        if sent is None:  # an arrangement sends
            return [job for job in server.jobs if job.version <= oldest]
        clients = sent.pop(oldest, ())
        return [job for client in clients for job in server.jobs_of(client) if job.version == oldest]

    def next(self, server: Server) -> Iterable[int | Send]:
        if self.late == "ignore" and self.concurrency is None:
            return list(server.idle)  # also a client whose update was ignored
        clients = list(super().next(server))
        if self.late == "restart":
            server.memory.sent = server.memory.sent or {}
            server.memory.sent.setdefault(server.version, []).extend(clients)
        return clients
