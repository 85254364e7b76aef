"""MindFlayer SGD: Rennala with a time allotted to each gradient, after which it is abandoned and begun anew.

Maranjyan, Shaikh Omar, Richtárik: MindFlayer SGD: efficient parallel SGD in the presence of heterogeneous and
random worker compute times. UAI 2025 (arXiv 2410.04285): at x^k client i makes B_i trials, each for a time t_i at
most; when all have made theirs, x ← x − (γ/B) Σ of the gradients that came, where B = Σ p_i B_i is how many of
them to expect.

Read in the abstract, and in reviews that cite its algorithm. Here t_i is a multiple of the client's mean time; the
S trials of a round are dealt out one by one, each to the client that would be the first to end it, so that with
t_i = τ_i fixed this is Rennala; and p_i, which the paper takes as known, is how often trials succeeded so far.
"""

from collections.abc import Sequence
from fractions import Fraction
from heapq import heapify, heapreplace
from math import ceil
from typing import Annotated, ClassVar

from fl_core.parts import Count, Length, Tune, TuneAmong
from fl_core.scenario import Scenario
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.participation import Participation
from fl_core.strategies.strategy import Strategy


class MindFlayer(Strategy):
    """MindFlayer SGD, trials of a limited time at the newest model (Maranjyan et al., UAI 2025)."""

    name: ClassVar[str] = "mindflayer"
    title: ClassVar[str] = "MindFlayer SGD"

    trials: Annotated[Count, Tune(1, 32)] = 5  # S = Σ B_i, trials of a round
    # t_i/τ_i, time allotted to a trial in units of the client's mean time
    allotted: Annotated[Length, TuneAmong(1.0, 1.5, 2.0, 4.0)] = Fraction(2)

    def times(self) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    def refuses(self, scenario: Scenario) -> str | None:
        if scenario.arrangement is not None:
            return "mindflayer counts the trials that it sent, and is incompatible with an arrangement"
        if self.allotted < 1 and not scenario.timing.durations.random:
            return "allotted: below 1 no trial ends in time where lengths are fixed"
        return None

    def participation(self, scenario: Scenario) -> Participation | None:
        """Shares ∝ B_i where trials of all clients are equally likely to end in time."""
        durations = scenario.timing.durations
        alike = durations.constant or durations.memoryless
        return (lambda server: self.deal(range(server.n), self.limits(server))) if alike else None

    def begin(self, server: Server) -> None:
        memory = server.memory
        memory.total = server.zeros()
        memory.left = {}  # client → trials of this round that are left
        memory.limits = self.limits(server)  # t_i in ticks
        memory.gradients, memory.rounds = 0, 0  # so far: B is gradients a round

    def limits(self, server: Server) -> list[int]:
        """Return t_i [n] in ticks."""
        return [ceil(self.allotted * time * server.ticks(Fraction(1))) for time in server.mean_time]

    def deal(self, clients: Sequence[int], limits: Sequence[int]) -> list[int]:
        """Return B_i [n]: each trial goes to the client that would be the first to end it."""
        trials = [0] * len(limits)
        ends = [(limits[client], client) for client in clients]
        heapify(ends)
        for _ in range(self.trials):
            end, client = ends[0]
            trials[client] += 1
            heapreplace(ends, (end + limits[client], client))
        return trials

    def receive(self, server: Server, update: Update) -> None:
        server.memory.total += update.delta
        server.memory.gradients += 1
        self.end_round(server)

    def lost(self, server: Server, client: int) -> None:
        self.end_round(server)

    def tick(self, server: Server) -> None:
        for job in list(server.jobs):
            if job.began is not None and server.now - job.began >= server.memory.limits[job.client]:
                server.dismiss(job)
        self.end_round(server)

    def end_round(self, server: Server) -> None:
        """Step if all trials of the round are made."""
