"""AsyncFedED: the step shrinks with the distance of the model from the update's start.

Wang, Xu, Zhang, Song, Wang: AsyncFedED: asynchronous federated learning with Euclidean distance based
adaptive weight aggregation. arXiv 2205.13797 (2022): γ = ‖x_t − x_{t−τ}‖ / ‖Δ_i‖, x ← x + λ/(γ+ε) Δ_i, K_i
← K_i + ⌊κ(γ̄ − γ)⌋. Its published repository holds results only; the rule for K_i is kept at one step at
least.
"""

from collections.abc import Iterable
from math import floor
from typing import Annotated, ClassVar, cast

from fl_core.strategies.participation import Participation
from fl_core.strategies.toolkit import Rate, Scenario, Send, Server, Strategy, Tune, Update


class AsyncFedED(Strategy):
    """AsyncFedED, steps scaled by the distance moved meanwhile (Wang et al., arXiv 2205.13797, 2022)."""

    name: ClassVar[str] = "asyncfeded"
    title: ClassVar[str] = "AsyncFedED"
    refuses_arrangement: ClassVar[str] = "it determines the number of steps of each client"
    linear: ClassVar[str] = "AsyncFedED scales each update by its own length: its step is not linear in them"

    server_lr: Annotated[Rate, Tune(0.1, 10)] = 1.0  # λ, the server's learning rate
    epsilon: Rate = 1.0  # ε, added to the distance γ
    wanted: Rate = 1.0  # γ̄, the distance aimed at
    gain: Rate = 0.1  # κ, by which K follows the distance

    def participation(self, scenario: Scenario) -> Participation | None:
        """Shares as of any strategy, unknown if jobs take longer for more steps."""
        return None if scenario.timing.durations.per_step else super().participation(scenario)

    def begin(self, server: Server) -> None:
        server.memory.steps = [self.local.count(server, i, 0) for i in range(server.n)]  # K_i

    def receive(self, server: Server, update: Update) -> None:
        moved, size = float((server.model - update.start).norm()), float(update.delta.norm())
        gamma = moved / size if size else 0.0
        server.step(self.server_lr / (gamma + self.epsilon) * update.delta)
        steps = server.memory.steps
        steps[update.client] = max(1, steps[update.client] + floor(self.gain * (self.wanted - gamma)))

    def next(self, server: Server) -> list[Send]:
        clients = cast(Iterable[int], super().next(server))
        return [Send(client, steps=server.memory.steps[client]) for client in clients]
