"""The service of jobs over links, from rules 2, 5, 9, 19 and 22 of the loop alone (docs/rules.md).

Times are whole ticks, bytes and rates exact fractions. Nothing is kept about the future: at every moment the
rates of all transfers are computed anew, and with them the next end of a phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

Rate = Fraction | None  # bytes a tick; None: no limit


@dataclass
class PlainJob:
    """A job with the dates of its phases, None as long as they are not known."""

    client: int
    index: int
    steps: int
    length: int
    waits: bool
    down: int  # bytes
    up: int
    sent: int
    began: int | None = None
    computes: int | None = None
    ends: int | None = None
    leaves: int | None = None


class PlainNetwork:
    """The jobs of n clients, first in, first out at each, and what of them is on its way.

    Args:
        rates: Of each client's own link, by direction.
        capacity: Of the links that clients share, by direction.
        cells: How many shared links there are; client i uses that of cell i mod `cells`.
        latency: Ticks after a download and before an upload.
    """

    def __init__(
        self, rates: dict[str, Sequence[Rate]], capacity: dict[str, Rate], cells: int, latency: Sequence[int]
    ) -> None:
        self.rates, self.capacity, self.cells, self.latency = rates, capacity, cells, latency
        n = len(latency)
        self.now = 0
        self.jobs: list[list[PlainJob]] = [[] for _ in range(n)]
        self.left: dict[str, dict[int, Fraction]] = {"down": {}, "up": {}}  # bytes of transfers in progress
        self.away: set[int] = set()
        self.sent: list[tuple[int, str, int]] = []  # tick, direction, bytes
        self.spent = [[0] * n for _ in range(3)]

    # -- links ---------------------------------------------------------------------------------------

    def speeds(self, way: str) -> dict[int, Rate]:
        """Return the rates of transfers in progress: max-min fair, none above the client's own."""
        speeds: dict[int, Rate] = {}
        for cell in range(self.cells):
            open_ones = [client for client in self.left[way] if client % self.cells == cell]
            free = self.capacity[way]
            if free is None:
                speeds |= {client: self.rates[way][client] for client in open_ones}
                continue
            own = [(self.rates[way][client], client) for client in open_ones]
            unlimited = [client for rate, client in own if rate is None]
            limited = sorted((rate, client) for rate, client in own if rate is not None)
            waiting = [client for _, client in limited] + unlimited
            for place, client in enumerate(waiting):
                part, rate = free / (len(waiting) - place), self.rates[way][client]
                speeds[client] = part if rate is None else min(part, rate)
                free -= speeds[client] or 0
        return speeds

    def end_of(self, way: str, client: int) -> int:
        """Return the tick nearest to the end of a transfer, a half up, as long as nothing changes."""
        speed = self.speeds(way)[client]
        return self.now + (0 if speed is None else floor(self.left[way][client] / speed + Fraction(1, 2)))

    def move(self, tick: int) -> None:
        """Let bytes flow until a tick."""
        for way, lefts in self.left.items() if tick > self.now else ():
            for client, speed in self.speeds(way).items():
                gone = lefts[client] if speed is None else speed * (tick - self.now)
                lefts[client] = max(Fraction(0), lefts[client] - gone)
        self.now = tick

    # -- phases --------------------------------------------------------------------------------------

    def first(self, client: int) -> PlainJob | None:
        """Return the client's job in service, if any."""
        queue = self.jobs[client]
        return queue[0] if queue and queue[0].began is not None else None

    def phases(self) -> list[tuple[int, int]]:
        """Return when downloads end and uploads begin, with the clients."""
        ends = [(self.end_of("down", client), client) for client in self.left["down"]]
        for client in range(len(self.jobs)):
            job = self.first(client)
            if job and job.leaves is not None and client not in self.left["up"]:
                ends.append((job.leaves + self.latency[client], client))
        return sorted(ends)

    def advance(self, tick: int) -> None:
        """Let all phases up to a tick end; an update that should have arrived before it is an error."""
        while (ends := self.phases()) and ends[0][0] <= tick:
            at, client = ends[0]
            self.check_arrivals(at)
            self.move(at)
            job = self.first(client)
            assert job is not None
            if client in self.left["down"]:
                del self.left["down"][client]
                self.sent.append((at, "down", job.down))
                job.computes = at + self.latency[client]
                job.ends = job.computes + job.length
                job.leaves = None if job.waits else job.ends
            else:
                self.left["up"][client] = Fraction(job.up)
        self.check_arrivals(tick)
        self.move(tick)

    def check_arrivals(self, tick: int) -> None:
        """Raise AssertionError if an upload ends before a tick."""
        for client in self.left["up"]:
            end = self.end_of("up", client)
            assert end >= tick, f"an update of client {client} arrives at {end}"

    # -- what happens --------------------------------------------------------------------------------

    def begin(self, client: int) -> None:
        """Let the client's first job begin, if it waits and the client is present."""
        queue = self.jobs[client]
        if queue and queue[0].began is None and client not in self.away:
            queue[0].began = self.now
            self.left["down"][client] = Fraction(queue[0].down)

    def send(self, job: PlainJob) -> None:
        """Put a job into its client's queue."""
        self.jobs[job.client].append(job)
        self.begin(job.client)

    def arrivals(self) -> list[int]:
        """Return the clients whose updates arrive now, in order."""
        return sorted(client for client in self.left["up"] if self.end_of("up", client) == self.now)

    def arrive(self, client: int) -> PlainJob:
        """End a client's upload; return its job."""
        del self.left["up"][client]
        job = self.jobs[client].pop(0)
        self.sent.append((self.now, "up", job.up))
        self.account(job)
        self.begin(client)
        return job

    def dismiss(self, client: int, index: int) -> None:
        """End a job in whatever phase it is."""
        job = next(job for job in self.jobs[client] if job.index == index)
        if job.began is not None:
            self.give_up(job, "down")
            self.give_up(job, "up")
            self.account(job)
        self.jobs[client].remove(job)
        self.begin(client)

    def collect(self, client: int) -> None:
        """Cut a job to the steps finished by now, and send its update; not if it is on its way."""
        job = self.first(client)
        assert job is not None
        if job.leaves is not None and job.leaves <= self.now:
            return
        self.give_up(job, "down")
        if job.computes is None or self.now < job.computes:
            job.steps, job.computes, job.ends = 0, self.now, self.now
        assert job.ends is not None
        if self.now < job.ends:
            job.steps = job.steps * (self.now - job.computes) // job.length
            job.ends = self.now
        job.leaves = self.now
        job.waits = False

    def give_up(self, job: PlainJob, way: str) -> None:
        """End a transfer that may be in progress; whole bytes that came count, the nearest number."""
        left = self.left[way].pop(job.client, None)
        if left is not None:
            size = job.down if way == "down" else job.up
            self.sent.append((self.now, way, size - floor(left + Fraction(1, 2))))

    def account(self, job: PlainJob) -> None:
        """Add the ticks of a job's phases that are over to its client's."""
        for total, ticks in zip(self.spent, self.ticks(job), strict=True):
            total[job.client] += ticks

    def ticks(self, job: PlainJob) -> tuple[int, int, int]:
        """Return the ticks of download, computation and upload so far."""
        assert job.began is not None
        dates = (job.computes, job.ends, job.leaves)
        computes, ends, leaves = (self.now if date is None else min(date, self.now) for date in dates)
        return computes - job.began, ends - computes, self.now - leaves

    def totals(self, tick: int) -> tuple[int, int]:
        """Return the bytes down and up by a tick."""
        down, up = (
            sum(size for at, one, size in self.sent if at <= tick and one == way) for way in ("down", "up")
        )
        return down, up

    def all_spent(self) -> list[list[int]]:
        """Return the ticks of each phase [3, n], of jobs in service, too."""
        spent = [list(total) for total in self.spent]
        for client in range(len(self.jobs)):
            if job := self.first(client):
                for total, ticks in zip(spent, self.ticks(job), strict=True):
                    total[client] += ticks
        return spent
