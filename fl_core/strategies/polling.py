"""Rounds of polling: the server asks some clients for their work at any point, finished or not.

FAVAS and QuAFL derive from `Polling`, and say what a polled client answers and where it goes on.

Fixed: as in the package: FAVAS and QuAFL inherit the fields, and the order of draws and sums.
"""

from fractions import Fraction
from typing import Annotated, ClassVar

from torch import Tensor

from fl_core.strategies.participation import Participation, alike
from fl_core.strategies.toolkit import (
    Count,
    Length,
    Scenario,
    Send,
    Server,
    Strategy,
    Tune,
    TuneAmong,
    Update,
)


class Polling(Strategy):
    """Base of strategies that poll s uniform clients every Δt: w ← (w + Σ of their models)/(s + 1).

    From one poll to the next a client makes at most K steps and then waits. The client sends `answer` and
    continues from `start`. While answers are on their way the next poll is put off, by Δt at a time.
    """

    collects: ClassVar[bool] = True
    refuses_optimizer: ClassVar[str] = "its step is a mean of models, no direction"
    refuses_arrangement: ClassVar[str] = "it polls the clients that it sent to"

    concurrency: None = None  # all work all the time
    sample: Annotated[Count, Tune(1, 32)] = 2  # s, clients polled at a time
    # Δt, virtual time from poll to poll
    period: Annotated[Length, TuneAmong(0.2, 0.5, 1.0, 2.0, 5.0)] = Fraction(1)

    def answer(self, server: Server, update: Update) -> Tensor:
        """Return the model [d] sent by a polled client."""
        return update.model

    def start(self, server: Server, client: int) -> Tensor | None:
        """Return the model [d] from which a client continues; None: the server's."""
        return None

    def participation(self, scenario: Scenario) -> Participation:
        return alike  # all are polled equally often

    def times(self) -> tuple[Fraction, ...]:
        return (self.period,)

    def begin(self, server: Server) -> None:
        server.memory.total, server.memory.polled, server.memory.missing = server.zeros(), 0, 0
        server.wake(server.now + server.ticks(self.period))

    def tick(self, server: Server) -> None:
        server.wake(server.now + server.ticks(self.period))
        if server.memory.missing:  # answers to the last poll are on their way: no new poll
            return
        polled = server.draw(self.sample, busy=True)
        for client in polled:
            for job in server.jobs_of(client):
                server.collect(job)
        server.memory.polled = server.memory.missing = len(polled)
        if not polled:  # all clients are away: the round is over without an answer
            server.step()

    def receive(self, server: Server, update: Update) -> None:
        self.take(server, self.answer(server, update))

    def lost(self, server: Server, client: int) -> None:
        self.take(server, server.model)  # for the lost answer, so that the mean still has s + 1 models

    def take(self, server: Server, answer: Tensor) -> None:
        """Add a polled client's model [d]; step after the last."""
        memory = server.memory
        memory.total += answer
        memory.missing -= 1
        if memory.missing == 0:
            mean = (server.model + memory.total) / (memory.polled + 1)
            server.step(self.server_lr * (mean - server.model))
            memory.total = server.zeros()

    def next(self, server: Server) -> list[Send]:
        return [Send(client, start=self.start(server, client), waits=True) for client in server.due]
