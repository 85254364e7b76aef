"""FedBuff: buffered asynchronous aggregation.

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba: Federated learning with buffered asynchronous
aggregation. AISTATS 2022, Algorithm 1, with the staleness scaling 1/√(1+τ) of its §5. The code of the ACE
paper (arXiv 2511.19066) takes the plain mean of the buffer, `scaling: none`, and starves clients, `selection:
starved`. Where several updates arrive in one server iteration, all of them enter the buffer, and a step is
the mean of the K or more that it holds. The other options are readings of other frameworks, see
docs/explanation/frameworks.md.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from fl_core.strategies import staleness
from fl_core.strategies.buffered_strategy import BufferedStrategy
from fl_core.strategies.participation import Participation
from fl_core.strategies.toolkit import Count, Scenario, Server, Update


class FedBuff(BufferedStrategy):
    """FedBuff, buffered asynchronous aggregation (Nguyen et al., AISTATS 2022, Algorithm 1)."""

    name: ClassVar[str] = "fedbuff"
    title: ClassVar[str] = "FedBuff"

    # s(τ) by staleness: 1/√(1+τ), 1/(1+√(1+τ)), or 1
    scaling: Literal["inverse_root", "one_plus_root", "none"] = "inverse_root"
    # What a client's model is compared to: the model that it started from, or the newest
    base: Literal["start", "current"] = "start"
    # What a step makes of the buffer: (1/K) Σ s(τ) Δ, Σ s(τ) Δ, or Σ s(τ) Δ / Σ s(τ)
    reduction: Literal["mean", "sum", "weighted_mean"] = "mean"
    # From where τ counts: the dispatch of the job, or the client's previous upload
    staleness_since: staleness.StalenessOrigin = "dispatch"
    max_staleness: Count | None = None  # staler updates are discarded; None: all are used
    # Arrivals after which a buffer that is not full is applied, too; None: never
    flush_every: Count | None = None

    def participation(self, scenario: Scenario) -> Participation | None:
        """Return the shares as for every buffer; unknown if updates are discarded or buffers differ."""
        regular = self.max_staleness is None and self.flush_every is None
        return super().participation(scenario) if regular else None

    def begin(self, server: Server) -> None:
        super().begin(server)
        staleness.begin(server)
        memory = server.memory
        memory.total, memory.weight, memory.count = server.zeros(), 0.0, 0
        if self.flush_every is not None:
            memory.arrivals = 0

    def receive(self, server: Server, update: Update) -> None:
        self.receive_together(server, [update])

    def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
        memory, since_dispatch = server.memory, self.staleness_since == "dispatch"
        for update in updates:
            age = update.staleness if since_dispatch else staleness.since_upload(server, update)
            if self.max_staleness is not None and age > self.max_staleness:
                continue
            divisor = 1 if self.scaling == "none" else (1 + age) ** 0.5  # 1/s(τ)
            if self.scaling == "one_plus_root":
                divisor += 1
            memory.total += (update.delta if self.base == "start" else update.model - server.model) / divisor
            memory.weight += 1 / divisor
            memory.count += 1
        flush = self._flushes(server, len(updates))
        if memory.count >= self.buffer or (flush and memory.count):
            weight = {"mean": memory.count, "sum": 1, "weighted_mean": memory.weight}[self.reduction]
            server.step(self.server_lr * (memory.total / weight))
            memory.total, memory.weight, memory.count = server.zeros(), 0.0, 0
        if not since_dispatch:
            staleness.note_uploads(server, updates)

    def _flushes(self, server: Server, arrivals: int) -> bool:
        """Count arrivals; return whether a buffer that is not full is applied."""
        if self.flush_every is None:
            return False
        earlier = server.memory.arrivals
        server.memory.arrivals += arrivals
        return bool(server.memory.arrivals // self.flush_every > earlier // self.flush_every)
