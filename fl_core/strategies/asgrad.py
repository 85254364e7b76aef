"""AsGrad: asynchronous SGD, b gradients a step and then b jobs: pure, random or shuffled.

Islamov, Safaryan, Alistarh: AsGrad: a sharp unified analysis of asynchronous-SGD algorithms. AISTATS 2024
(arXiv 2310.20452). All clients start; x ← x − η (1/b) Σ of b gradients, each at the model its client was
sent, and the new x goes to the b clients that delivered (`pure`), to b drawn uniformly, busy or not
(`random`), or to the next b of a random permutation, a new one every n jobs (`shuffled`); jobs queue at busy
clients.

Based on abstract and published code, not the full paper. The code has b = 1; that b > 1 gradients are
averaged is our reading (a sum is η_g = b). In the code a queued job begins only when its client is assigned
another one; here it begins when the client is free.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, ClassVar, Literal

from fl_core.strategies.participation import Participation, alike, by_speed
from fl_core.strategies.toolkit import Count, Scenario, Server, Strategy, Tune, Update


class AsGrad(Strategy):
    """AsGrad, pure, random or shuffled asynchronous SGD with waiting (Islamov et al., AISTATS 2024)."""

    name: ClassVar[str] = "asgrad"
    title: ClassVar[str] = "AsGrad"

    concurrency: None = None  # the assignment says who works
    buffer: Annotated[Count, Tune(1, 32)] = 4  # b, gradients a step waits for
    assignment: Literal["pure", "random", "shuffled"] = "shuffled"  # who gets the next b jobs

    def participation(self, scenario: Scenario) -> Participation | None:
        """Equal shares if all get equally many jobs, or wait for all; unknown if clients wait for some."""
        if self.assignment != "pure" or self.buffer >= scenario.problem.clients:
            return alike
        return by_speed if self.buffer == 1 else None

    def begin(self, server: Server) -> None:
        server.memory.total, server.memory.count = server.zeros(), 0
        server.memory.free = 0  # jobs to assign
        server.memory.order, server.memory.turns = [], 0  # the present permutation, and how many there were
        server.memory.place = 0  # in it

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        memory.total += update.delta
        memory.count += 1
        self.step_if_full(server)

    def lost(self, server: Server, client: int) -> None:
        server.memory.free += server.version > 0  # before the first step the client itself is due
        if server.memory.count:
            self.step_if_full(server)

    def step_if_full(self, server: Server) -> None:
        """Step if b gradients are in, or no more can come."""
        memory = server.memory
        if memory.count == self.buffer or server.in_flight == 0:  # fewer than b are left
            server.step(self.server_lr * memory.total / memory.count)
            memory.free += memory.count
            memory.total, memory.count = server.zeros(), 0

    def next(self, server: Server) -> Iterable[int]:
        memory = server.memory
        if self.assignment == "pure" or server.version == 0:
            return server.due
        if self.assignment == "random":
            sends = server.draw(memory.free, busy=True, replace=True)
        else:
            sends = list(islice(self.shuffled(server), memory.free))
        memory.free -= len(sends)
        return sends

    def shuffled(self, server: Server) -> Iterator[int]:
        """Yield the present clients of successive permutations; nothing if all are absent."""
        memory = server.memory
        while any(server.present):
            if memory.place == len(memory.order):
                memory.order = server.stream("shuffle", memory.turns).permutation(server.n).tolist()
                memory.turns, memory.place = memory.turns + 1, 0
            client = memory.order[memory.place]
            memory.place += 1
            if server.present[client]:
                yield client
