"""MindFlayer SGD: Rennala with a time limit for each gradient, restarted after the limit.

Maranjyan, Shaikh Omar, Richtárik: MindFlayer SGD: efficient parallel SGD in the presence of heterogeneous and
random worker compute times. UAI 2025 (arXiv 2410.04285): at x^k client i makes B_i trials, each of a time t_i
at most; when all are made, x ← x − (γ/B) Σ of the gradients that came, of which B = Σ p_i B_i are expected.

Read in the abstract, and in reviews that cite its algorithm. Here t_i is a multiple of the client's mean
time. Trials of a round are dealt out one by one, each to the client that would be first to end it: with fixed
times t_i = τ_i this is Rennala. p_i, which the paper knows, is how often trials have succeeded so far.
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from heapq import heapreplace
from itertools import islice
from math import ceil
from typing import Annotated, ClassVar

from fl_core.strategies.participation import Participation
from fl_core.strategies.toolkit import Count, Job, Length, Scenario, Server, Strategy, Tune, TuneAmong, Update
from fl_core.timing.clock import MICRO


class MindFlayer(Strategy):
    """MindFlayer SGD, trials of a limited time at the newest model (Maranjyan et al., UAI 2025)."""

    name: ClassVar[str] = "mindflayer"
    title: ClassVar[str] = "MindFlayer SGD"
    refuses_arrangement: ClassVar[str] = "it counts the trials that it sent"

    concurrency: None = None  # a round has as many as are dealt trials
    trials: Annotated[Count, Tune(1, 32)] = 5  # S = Σ B_i, trials of a round
    # t_i/τ_i, time allotted to a trial in units of the client's mean time
    allotted: Annotated[Length, TuneAmong(1.0, 1.5, 2.0, 4.0)] = Fraction(2)

    def times(self) -> tuple[Fraction, ...]:
        return (MICRO,)

    def refuses(self, scenario: Scenario) -> str | None:
        if self.allotted < 1 and scenario.timing.durations.constant:
            return (
                "allotted: with fixed job lengths, no trial ends in time below 1: set allotted to 1 or more"
            )
        return None

    def participation(self, scenario: Scenario) -> Participation | None:
        """Shares ∝ B_i where trials of all clients are equally likely to end in time."""
        durations = scenario.timing.durations
        alike = durations.constant or durations.memoryless
        return self.shares if alike else None

    def shares(self, server: Server) -> list[int]:
        """Return B_i [n], with all clients present."""
        trials = self.deal(server, self.in_order(server))
        return [trials.get(client, 0) for client in range(server.n)]

    def begin(self, server: Server) -> None:
        memory = server.memory
        memory.limits = self.limits(server)
        memory.order = self.in_order(server)
        memory.left = {}  # trials of this round to be made, of each client
        memory.total, memory.gradients, memory.rounds = server.zeros(), 0, 0

    def limits(self, server: Server) -> list[int]:
        """Return t_i [n] in ticks, rounded up to a millionth of virtual time whatever the clock's unit."""
        tick = server.ticks(MICRO)
        return [ceil(self.allotted * time / MICRO) * tick for time in server.mean_time]

    def in_order(self, server: Server) -> list[int]:
        """Return all clients in the order of the ends of first trials."""
        return sorted(range(server.n), key=lambda client: self.end(server, client, 1))

    def end(self, server: Server, client: int, trials: int) -> tuple[float, int]:
        """Return when a client's trials end, equal for equal times since t_i is exact, and the client."""
        return float(trials * self.allotted * server.mean_time[client]), client

    def deal(self, server: Server, clients: Iterable[int]) -> dict[int, int]:
        """Return B_i of each client with any: a trial goes to the client with the earliest end.

        Of `clients`, in the order of their first trials, those after the first S get none.
        """
        ends = [self.end(server, client, 1) for client in islice(clients, self.trials)]
        trials = Counter[int]()
        for _ in range(self.trials):
            client = ends[0][1]
            trials[client] += 1
            heapreplace(ends, self.end(server, client, trials[client] + 1))
        return dict(trials)

    def receive(self, server: Server, update: Update) -> None:
        server.memory.total += update.delta
        server.memory.gradients += 1
        self.end_trial(server)

    def lost(self, server: Server, client: int) -> None:
        self.end_trial(server)

    def tick(self, server: Server) -> None:
        for job in list(server.jobs):
            if self.limit(server, job) <= server.now:
                server.dismiss(job)
        self.end_trial(server)

    def end_trial(self, server: Server) -> None:
        """Step if no trial of the round is left."""
        memory = server.memory
        if server.in_flight or self.free(server):
            return
        memory.rounds += 1
        expected = memory.gradients / memory.rounds  # B
        server.step(self.server_lr * memory.total / expected if expected else None)
        memory.total, memory.left = server.zeros(), {}

    def next(self, server: Server) -> list[int]:
        memory = server.memory
        if server.idle and not server.in_flight and not self.free(server):
            memory.left = self.deal(server, (i for i in memory.order if server.present[i]))
        sends = self.free(server)
        for client in sends:
            memory.left[client] -= 1
        ends = [self.limit(server, job) for job in server.jobs]
        ends += [server.now + memory.limits[client] for client in sends]
        if ends and min(ends) > server.now:  # else the alarm rings at the end of this tick
            server.wake(min(ends))
        return sends

    def free(self, server: Server) -> list[int]:
        """Return the idle clients with remaining trials."""
        busy = {job.client for job in server.jobs}
        remaining = server.memory.left.items()
        return [i for i, trials in remaining if trials and i not in busy and server.present[i]]

    def limit(self, server: Server, job: Job) -> int:
        """Return the tick for abandoning a job."""
        assert job.began is not None  # it was sent to a client that was present and idle
        return job.began + server.memory.limits[job.client]
