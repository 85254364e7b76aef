"""Synchronous federated averaging.

McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-efficient learning of deep networks from
decentralized data. AISTATS 2017, Algorithm 1: θ ← θ + η_g Σ d_i Δ_i over the clients of a round. The
choice of clients and their weights d_i is a part of its own: `sampling`.

As deployed (Bonawitz et al.: Towards federated learning at scale: system design. MLSys 2019), the server asks
more clients than it needs, say 1.3 m, ends the round when m have answered or at a deadline, averages what has
arrived and tells the others to stop: `sample: 13` of the sampling with `take: 10`, and `deadline`. A round
without an answer is abandoned, and the next one is from the same model.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pydantic import SerializeAsAny
from torch import Tensor

from fl_core.strategies.participation import Participation
from fl_core.strategies.sampling import SEEDS, Full, Sampling
from fl_core.strategies.toolkit import Count, Length, Scenario, Server, Strategy, Update


class FedAvg(Strategy):
    """Synchronous FedAvg, a round waits for the slowest (McMahan et al., AISTATS 2017, Algorithm 1)."""

    name: ClassVar[str] = "fedavg"
    title: ClassVar[str] = "FedAvg"
    presets: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "diloco": (
            "DiLoCo, AdamW at clients and Nesterov at the server (Douillard et al., arXiv 2311.08105, 2023).",
            {"server": "nesterov", "local": {"name": "adamw", "keep_state": True}},
        )
    }

    concurrency: None = None  # the sampling says how many
    sampling: SerializeAsAny[Sampling] = Full()  # the clients of a round, and their weights
    take: Count | None = None  # m, answers that end a round, with later ones discarded; None: all
    deadline: Length | None = None  # virtual time after which a round ends, with later answers discarded

    @property
    def linear(self) -> Literal[True] | str:
        return self.sampling.linear

    @property
    def refuses_arrangement(self) -> str | None:
        return None if self.waits_for_all else "with take or deadline, rounds end early"

    @property
    def waits_for_all(self) -> bool:
        """True if a round ends when all clients of the round have answered."""
        return self.take is None and self.deadline is None

    def times(self) -> tuple[Fraction, ...]:
        return () if self.deadline is None else (self.deadline,)

    def refuses(self, scenario: Scenario) -> str | None:
        law = scenario.timing.durations
        if self.deadline is not None and law.constant and not law.per_step:
            fastest = min(min(law.means(scenario.problem.clients, seed)) for seed in SEEDS)
            if self.deadline < fastest:
                return f"deadline: no client is ready by then: the fastest needs {float(fastest):g}"
        return self.sampling.refuses(scenario)

    def participation(self, scenario: Scenario) -> Participation | None:
        return self.sampling.participation() if self.waits_for_all else None

    def begin(self, server: Server) -> None:
        self.sampling.begin(server)
        server.memory.round = {}  # d_i
        self.clear(server)

    def clear(self, server: Server) -> None:
        """Begin a round without answers."""
        server.memory.total, server.memory.share, server.memory.count = server.zeros(), 0.0, 0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        weight = memory.round.get(update.client, float(server.p[update.client]))
        memory.total += weight * update.delta
        memory.share += weight
        memory.count += 1
        self.end_round(server)

    def lost(self, server: Server, client: int) -> None:
        self.end_round(server)

    def end_round(self, server: Server) -> None:
        """End the round if all clients of the round have answered, or enough."""
        if server.in_flight == 0 or server.memory.count == self.take:
            self.tick(server)

    def tick(self, server: Server) -> None:
        if server.memory.count:
            server.step(self.delta(server))
            self.clear(server)
        for job in list(server.jobs):
            server.dismiss(job)

    def delta(self, server: Server) -> Tensor:
        """Return η_g Σ d_i Δ_i of the round [d]."""
        memory = server.memory
        # A sampled round's weights are unbiased; an arrangement's round, or one cut short, is averaged.
        unbiased = memory.round and self.waits_for_all
        return self.server_lr * memory.total / (1 if unbiased else memory.share or 1.0)

    def next(self, server: Server) -> Iterable[int]:
        if server.in_flight:
            return ()
        server.memory.round = self.sampling.weights(server)
        if self.deadline is not None and server.memory.round:
            server.wake(server.now + server.ticks(self.deadline))
        return server.memory.round
