"""Cosine-Gated Adam-Decay: older updates enter the server's Adam with less weight.

Shah, Sun: Cosine-gated Adam-decay: drop-in staleness-aware outer optimization for decoupled DiLoCo. arXiv
2605.09126, 2026: an update of age τ is scaled by σ(τ) = γ(τ) e^(−ατ) before it enters Adam's moments, and the
gate γ falls to zero at a cutoff.

Read in the abstract. Ours are the gate, γ(τ) = ½ (1 + cos(π τ/τ_c)) below the cutoff τ_c, and the values of α
and τ_c; Adam is the server's, without corrections of bias.
"""

from math import cos, exp, pi
from typing import Annotated, ClassVar

from pydantic import SerializeAsAny

from fl_core.server.optimizers import Adam, ServerOptimizer
from fl_core.strategies.toolkit import Count, Rate, Server, Strategy, Tune, Update


class CGAD(Strategy):
    """Cosine-Gated Adam-Decay, old updates fade from Adam (Shah and Sun, arXiv 2605.09126, 2026)."""

    name: ClassVar[str] = "cgad"
    title: ClassVar[str] = "CGAD"

    server_lr: Annotated[Rate, Tune(1e-3, 1)] = 0.01  # η, of the adaptive server
    server: SerializeAsAny[ServerOptimizer] = Adam()  # what the server makes of the scaled updates
    decay: Annotated[Rate, Tune(0.01, 1)] = 0.1  # α, by which weights fall with every version of age
    cutoff: Annotated[Count, Tune(4, 256)] = 16  # τ_c, the age from which an update has no weight

    def receive(self, server: Server, update: Update) -> None:
        server.step(self.server_lr * self.scale(update.staleness) * update.delta)

    def scale(self, staleness: int) -> float:
        """Return σ(τ)."""
        gate = (1 + cos(pi * staleness / self.cutoff)) / 2 if staleness < self.cutoff else 0.0
        return gate * exp(-self.decay * staleness)
