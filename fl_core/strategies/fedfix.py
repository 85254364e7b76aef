"""FedFix: a server step every Δt of virtual time, with whatever has arrived since the last.

Fraboni, Vidal, Kameni, Lorenzi: A general theory for federated optimization with asynchronous and
heterogeneous clients updates. JMLR 2023, §4.2, weights d_i = ⌈τ_i/Δt⌉ p_i of eq. (14). A tick with no
arrival still counts as an iteration. Eq. (14) is unbiased for fixed times. The paper keeps it for exponential
times (§4.1), where the unbiased weights are p_i/(1 − e^{−Δt/τ_i}): `weights: exponential`.
"""

from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from fl_core.strategies.participation import Participation
from fl_core.strategies.toolkit import Length, Scenario, Server, Strategy, Time, TuneAmong, Update
from fl_core.theory import weights


class FedFix(Strategy):
    """FedFix, a server step every Δt with what has arrived (Fraboni et al., JMLR 2023, §4.2, eq. 14)."""

    name: ClassVar[str] = "fedfix"
    title: ClassVar[str] = "FedFix"

    # Δt, virtual time between two steps
    period: Annotated[Length, TuneAmong(0.1, 0.2, 0.5, 0.8, 1.0, 2.0)] = Fraction(1, 2)
    growth: Time = Fraction(0)  # the n-th window is (1 + growth n) Δt long
    weights: Literal["fixed", "exponential"] = "fixed"  # law of update times for which they are unbiased

    def times(self) -> tuple[Fraction, ...]:
        return (self.period, self.period * self.growth) if self.growth else (self.period,)

    def participation(self, scenario: Scenario) -> Participation | None:
        """Shares ∝ 1/⌈τ_i/Δt⌉ or, for exponential times, 1 − e^{−Δt/τ_i}; unknown if windows grow."""
        if self.concurrency is not None:
            return super().participation(scenario)
        durations = scenario.timing.durations
        if self.growth or not (durations.constant or durations.memoryless):
            return None
        unbiased = weights.fedfix if durations.constant else weights.fedfix_exponential
        return lambda server: [1 / d for d in unbiased([1.0] * server.n, server.mean_time, self.period)]

    def begin(self, server: Server) -> None:
        server.memory.total = server.zeros()
        server.wake(server.now + server.ticks(self.window(server)))

    def window(self, server: Server) -> Fraction:
        """Return the length of the present window."""
        return self.period * (1 + self.growth * server.version)

    def weight(self, server: Server, client: int) -> float:
        """Return d_i of the present window."""
        law = weights.fedfix if self.weights == "fixed" else weights.fedfix_exponential
        return law([float(server.p[client])], [server.mean_time[client]], self.window(server))[0]

    def receive(self, server: Server, update: Update) -> None:
        server.memory.total += self.weight(server, update.client) * update.delta

    def tick(self, server: Server) -> None:
        server.step(self.server_lr * server.memory.total)
        self.begin(server)
