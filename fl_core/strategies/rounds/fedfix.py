"""FedFix: a server step every Δt of virtual time, with whatever has arrived since the last.

Fraboni, Vidal, Kameni, Lorenzi: A general theory for federated optimization with asynchronous and
heterogeneous clients updates. JMLR 2023, §4.2, weights d_i = ⌈τ_i/Δt⌉ p_i of eq. (14). A tick with no
arrival still counts as an iteration.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from fl_core.parts import Length, Time
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Candidates, Strategy
from fl_core.theory import weights


class FedFix(Strategy):
    """FedFix, a server step every Δt with what has arrived (Fraboni et al., JMLR 2023, §4.2, eq. 14)."""

    name: ClassVar[str] = "fedfix"
    title: ClassVar[str] = "FedFix"
    tunable: ClassVar[Mapping[str, Candidates]] = {
        **Strategy.tunable,
        "period": (0.1, 0.2, 0.5, 0.8, 1.0, 2.0),
    }

    period: Length = Fraction(1, 2)  # Δt
    growth: Time = Fraction(0)  # the n-th window is (1 + growth n) Δt long

    def times(self) -> tuple[Fraction, ...]:
        return (self.period, self.period * self.growth) if self.growth else (self.period,)

    def start(self, server: Server) -> None:
        server.memory.total = server.zeros()
        window = self.period * (1 + self.growth * server.version)
        server.memory.weights = weights.fedfix(server.p, server.mean_time, window)
        server.wake(server.now + server.ticks(window))

    def receive(self, server: Server, update: Update) -> None:
        server.memory.total += server.memory.weights[update.client] * update.delta

    def tick(self, server: Server) -> None:
        server.step(self.server_lr * server.memory.total)
        self.start(server)
