"""Delayed Nesterov and DyLU: every arrival is a step, every N-th also a step of momentum.

Liu, Chhaparia, Douillard, Kale, Rusu, Shen, Szlam, Ranzato: Asynchronous Local-SGD training for language
modeling. arXiv 2401.09135, 2024: an arrival g is a step θ ← θ − ε g/N; every N-th ends a sum Δ of N arrivals,
m ← β m + Δ/N, and its step is θ ← θ − ε (β m + g/N). The general form spreads the momentum over the arrivals
by c ∈ [0, 1/N]; this is its default, c = 0. With `dylu` a client makes K_i ≤ K steps, in proportion to its
speed, so that all are done in the time of the fastest.

Read in the abstract and in two implementations that others published; the default N is ours.
"""

from collections.abc import Iterable
from math import floor
from typing import Annotated, ClassVar, cast

from fl_core.strategies.participation import Participation
from fl_core.strategies.toolkit import Count, Rate, Scenario, Send, Server, Share, Strategy, Tune, Update


class DelayedNesterov(Strategy):
    """Delayed Nesterov and DyLU, momentum at every N-th arrival (Liu et al., arXiv 2401.09135, 2024)."""

    name: ClassVar[str] = "delayed_nesterov"
    title: ClassVar[str] = "Delayed Nesterov"
    refuses_optimizer: ClassVar[str] = "it has a momentum of its own"

    server_lr: Annotated[Rate, Tune(0.1, 10)] = 0.7  # ε, the server's learning rate
    buffer: Annotated[Count, Tune(1, 32)] = 4  # N, arrivals from one step of momentum to the next
    momentum: Share = 0.9  # β, of the server
    dylu: bool = False  # K_i in proportion to the client's speed, the fastest client's K at most

    @property
    def refuses_arrangement(self) -> str | None:
        return "with dylu it determines the number of steps of each client" if self.dylu else None

    def refuses(self, scenario: Scenario) -> str | None:
        if self.dylu and not scenario.timing.durations.per_step:
            return "dylu: fewer steps save no time unless durations have per_step: true"
        return None

    def participation(self, scenario: Scenario) -> Participation | None:
        return None if self.dylu else super().participation(scenario)  # jobs are shorter than τ_i

    def begin(self, server: Server) -> None:
        memory = server.memory
        memory.m, memory.total, memory.count = server.zeros(), server.zeros(), 0
        if self.dylu:
            usual = [self.local.usual(client, int(size)) for client, size in enumerate(server.sizes)]  # K
            speed = [k / time for k, time in zip(usual, server.mean_time, strict=True)]
            fastest = max(speed)
            memory.steps = [max(1, floor(k * v / fastest)) for k, v in zip(usual, speed, strict=True)]  # K_i

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.total += update.delta
        memory.count += 1
        step = update.delta / self.buffer
        if memory.count == self.buffer:
            memory.m = self.momentum * memory.m + memory.total / self.buffer
            step = self.momentum * memory.m + step
            memory.total, memory.count = server.zeros(), 0
        server.step(self.server_lr * step)

    def next(self, server: Server) -> Iterable[int | Send]:
        clients = cast(Iterable[int], super().next(server))
        return (
            [Send(client, steps=server.memory.steps[client]) for client in clients] if self.dylu else clients
        )
