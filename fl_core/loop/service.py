"""The service of jobs at clients: download, computation, upload (docs/rules.md, rule 22).

`Dispatch` begins, advances and abandons jobs here; `Simulation` ends them at their arrival. Subclasses get
arrivals from elsewhere: measured computation, real clients (`fl_core/live/real_time.py`), a recorded log.

Fixed: the ticks of every phase, and the bytes counted by then.
"""

from fractions import Fraction
from heapq import heappop
from typing import ClassVar

from fl_core.execution.one_by_one import work
from fl_core.local_work import LocalWork
from fl_core.loop.events import EventKind
from fl_core.loop.server_queue import ServerQueue
from fl_core.loop.state import RunState
from fl_core.loop.transfers import Transfers
from fl_core.problems.problem import World
from fl_core.server.jobs import Job
from fl_core.timing.clock import MICRO
from fl_core.timing.durations import Lengths
from fl_core.timing.network import Way

Tick = int | Fraction


class Service:
    """The phases of jobs from `began` to the arrival, in virtual time; only computation without a network."""

    times: ClassVar[tuple[Fraction, ...]] = ()  # lengths of virtual time that the clock must hit exactly

    def attach(
        self,
        state: RunState,
        lengths: Lengths,
        transfers: Transfers | None,
        server_queue: ServerQueue | None,
    ) -> None:
        """Connect the service with a simulation; a service comes into being before its simulation."""
        self.state, self.lengths, self.transfers = state, lengths, transfers
        self.server_queue = server_queue
        # Tick, direction and bytes of messages complete since the latest event
        self.messages: list[tuple[int, Way, int]] = []
        # Jobs that left service since the latest event, with their ticks; None unless energy is measured
        self.ended: list[tuple[Job, int]] | None = None

    def upcoming(self) -> float | None:
        """Return the tick of the earliest possible event; None if nothing is queued."""
        heap = self.state.queue.heap
        return heap[0][0] if heap else None

    def due(self, deadline: float) -> bool:
        """Return whether the earliest event happens now; in real time it may still lie ahead, or be replaced.

        Args:
            deadline: The last tick of the run, or infinity.
        """
        return True

    def begin(self, job: Job) -> None:
        """Begin a job's download."""
        state = self.state
        if job.length is None:
            job.length = self.lengths(job.client, job.index, job.steps)
        job.began, job.length = state.now, job.length or 1
        state.serving += not job.waits
        if state.at_server:
            for earlier in state.flight[job.client]:
                if earlier.reached is not None and earlier.followed is None:
                    earlier.followed = state.now
        if self.transfers:
            self.transfers.start(job, Way.DOWN)
        else:
            state.sent[Way.DOWN] += job.bytes[Way.DOWN]
            self._compute(job)

    def advance(self, job: Job) -> None:
        """Move a job to the next phase: from download to computation, to upload, to the server's queue."""
        job.event = None
        if job.ends is None:
            assert self.transfers is not None
            self.transfers.stop(job, Way.DOWN)
            self._count(job, Way.DOWN)
            self._compute(job)
        elif self.transfers and not self.transfers.sends(job):
            self.transfers.start(job, Way.UP)
        else:
            assert self.server_queue is not None
            if self.transfers:
                self.transfers.stop(job, Way.UP)
            self._count(job, Way.UP)
            self.server_queue.join(job)

    def settle(self) -> None:
        """Put the ends of transfers into the queue; end phases without duration at once."""
        assert self.transfers is not None
        state, heap = self.state, self.state.queue.heap
        self.transfers.settle()
        state.drop_abandoned()
        while heap and heap[0][0] == state.now and heap[0][1] is EventKind.PHASE:
            if self.server_queue and heap[0][-1].ends is not None and self.transfers.sends(heap[0][-1]):
                return  # end of an upload: a separate event, since the client's next job begins with it
            self.advance(heappop(heap)[-1])
            self.transfers.settle()
            state.drop_abandoned()

    def end(self, job: Job) -> None:
        """Record the arrival of a job's update."""
        state = self.state
        if self.ended is not None:
            self.ended.append((job, state.now))
        if self.server_queue:
            self.server_queue.leave(job)
        else:
            if self.transfers:
                self.transfers.stop(job, Way.UP)
            state.sent[Way.UP] += job.bytes[Way.UP]
        state.serving -= 1
        if job.computes == job.began and job.leaves == state.now:  # nothing but computation
            assert job.computes is not None and job.ends is not None
            state.spent[1][job.client] += job.ends - job.computes
        else:
            self._account(job)

    def abandon(self, job: Job) -> None:
        """Take a job out of service before the arrival (8)."""
        if job.began is None:
            return
        if self.ended is not None:
            self.ended.append((job, self.state.now))
        if job.reached is not None:
            assert self.server_queue is not None
            self.server_queue.leave(job)
        elif self.transfers:
            self.transfers.abandon(job)
        self.state.serving -= not job.waits
        self._account(job)

    def spent(self, time: Tick) -> list[list[Tick]]:
        """Return the ticks of download, computation and upload [3, n] of all jobs until `time`.

        `time` is not before the latest event, or, where `ended` is kept, the event before that.
        """
        spent: list[list[Tick]] = [list(ticks) for ticks in self.state.spent]
        for job, end in self.ended or ():
            for of_clients, ticks in zip(spent, job.spent(end), strict=True):
                of_clients[job.client] -= ticks
        jobs = [job for queue in self.state.flight.values() for job in queue]
        for job, until in [
            *((job, time) for job in jobs),
            *((job, min(time, end)) for job, end in self.ended or ()),
        ]:
            if job.began is not None and job.began < until:
                for of_clients, ticks in zip(spent, job.spent(until), strict=True):
                    of_clients[job.client] += ticks
        return spent

    def spent_at_server(self, time: int) -> list[list[int]]:
        """Return the ticks of waiting for the server and of service at the server [2, n], until `time`."""
        spent = [list(ticks) for ticks in self.state.spent_at_server]
        for job in self.state.at_server:
            for of_clients, ticks in zip(spent, job.spent_at_server(time), strict=True):
                of_clients[job.client] += ticks
        return spent

    def forget(self) -> None:
        """Clear the messages and ended jobs of the latest event, after the consumer has seen them."""
        self.messages.clear()
        if self.ended:
            self.ended.clear()

    def collect(self, job: Job) -> None:
        """Cut a job to the steps finished by now, and send the update (19); all K steps are equally long."""
        state, time = self.state, self.state.now
        assert job.length is not None
        if job.leaves is not None and job.leaves <= time:
            return  # the update is already on the way
        if job.ends is None and self.transfers:
            self.transfers.abandon(job)
        if job.ends is None or time < job.ends:
            job.computes = time if job.computes is None else min(job.computes, time)
            job.steps = job.steps * (time - job.computes) // job.length
            state.wasted += job.delta is not None
            job.undo()
            job.ends = time
        state.serving += job.waits
        job.waits = False
        self._send_back(job, time)

    def _count(self, job: Job, way: Way) -> None:
        """Count the bytes of a complete message, with the tick: bytes are evaluated between events, too."""
        self.state.sent[way] += job.bytes[way]
        self.messages.append((self.state.now, way, job.bytes[way]))

    def _compute(self, job: Job) -> None:
        """Begin the steps of a job after the download."""
        assert job.length is not None
        job.computes = self.state.now
        if self.transfers:
            job.computes += self.transfers.latency[job.client]
        job.ends = job.computes + job.length
        if not job.waits:
            self._send_back(job, job.ends)

    def _send_back(self, job: Job, at: int) -> None:
        """Queue the start of a job's upload at a tick, or the arrival without a network."""
        job.leaves, kind = at, EventKind.ARRIVAL
        if self.transfers:
            at, kind = at + self.transfers.latency[job.client], EventKind.PHASE
        elif self.server_queue:
            kind = EventKind.PHASE
        job.event = self.state.queue.push(at, kind, job.client, job)

    def _account(self, job: Job) -> None:
        """Add the duration of the job's phases to the client's account."""
        for ticks, spent in zip(job.spent(self.state.now), self.state.spent, strict=True):
            spent[job.client] += ticks


class MeasuredService(Service):
    """Measured service: the length of a job is the measured time of computing, times the law's length."""

    times: ClassVar[tuple[Fraction, ...]] = (MICRO,)

    def __init__(self, world: World, local: LocalWork, unit: Fraction) -> None:
        self.world, self.local = world, local
        self.unit = float(unit)  # seconds in a unit of virtual time
        self._warm = False

    def begin(self, job: Job) -> None:
        """Compute a job, unless the length is fixed, and begin the download."""
        if job.length is None:
            if not self._warm:  # the first call imports and loads, which is no part of a job
                self._warm = True
                work(job, self.world, self.local)
            work(job, self.world, self.local)
            factor = self.lengths.clock.time(self.lengths(job.client, job.index, job.steps))
            job.length = self.lengths.clock.round(self.world.seconds / self.unit * factor)
        super().begin(job)
