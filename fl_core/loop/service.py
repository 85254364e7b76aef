"""The service of jobs at clients: download, computation, upload (docs/rules.md, rule 22)."""

from fractions import Fraction
from heapq import heappop
from typing import ClassVar

from fl_core.loop.events import EventKind
from fl_core.loop.server_queue import ServerQueue
from fl_core.loop.state import RunState
from fl_core.loop.transfers import Transfers
from fl_core.server.jobs import Job
from fl_core.timing.durations import Lengths
from fl_core.timing.network import Way

Tick = int | Fraction


class Service:
    """The phases of a job from `began` to the arrival; without a network, computation only.

    Here jobs are served in virtual time; in a subclass elsewhere, from where arrivals come.
    """

    times: ClassVar[tuple[Fraction, ...]] = ()  # lengths of virtual time that the clock must hit exactly

    def attach(
        self,
        state: RunState,
        lengths: Lengths,
        transfers: Transfers | None,
        server_queue: ServerQueue | None,
    ) -> None:
        """Serve the jobs of a simulation."""
        self.state, self.lengths, self.transfers = state, lengths, transfers
        self.server_queue = server_queue
        # Tick, direction and bytes of messages complete since the latest event
        self.messages: list[tuple[int, Way, int]] = []
        # Jobs that left service since the latest event, and when; None: nobody asks for times before that
        self.ended: list[tuple[Job, int]] | None = None

    def upcoming(self) -> float | None:
        """Return the tick before which nothing more happens; None if nothing is queued."""
        heap = self.state.queue.heap
        return heap[0][0] if heap else None

    def due(self, deadline: float) -> bool:
        """Return whether the earliest event happens now; False if other work may come first.

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
                return  # the client's next job begins then, as an event of its own
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
        """Return the ticks of waiting for the server and of service there [2, n], to the end of the run."""
        spent = [list(ticks) for ticks in self.state.spent_at_server]
        for job in self.state.at_server:
            for of_clients, ticks in zip(spent, job.spent_at_server(time), strict=True):
                of_clients[job.client] += ticks
        return spent

    def forget(self) -> None:
        """Forget what happened before the latest event."""
        self.messages.clear()
        if self.ended:
            self.ended.clear()

    def collect(self, job: Job) -> None:
        """Cut a job to the steps finished by now, its length split evenly over K, and send them back (19)."""
        state, time = self.state, self.state.now
        assert job.length is not None
        if job.leaves is not None and job.leaves <= time:
            return  # its update is on its way
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
        """Count the bytes of a message that is complete between two events."""
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
        """Let a job's update be sent at a tick."""
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
