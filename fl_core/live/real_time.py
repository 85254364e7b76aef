"""Service in real time: jobs are messages to clients (docs/rules.md, rule 23).

The simulation of a `LiveRun` has it in the place of the virtual service: `due` waits for the wall clock or
for messages, and the answers of clients become arrivals.

Fixed: the rule, and that the log tells the whole input of a run: replays repeat it. Free: waiting times.
"""

import logging
from collections.abc import Callable
from fractions import Fraction
from math import inf
from time import monotonic, time
from typing import ClassVar

from fl_core.live.log import RunLog
from fl_core.live.transport import JobMessage, LostClients, Transport, UpdateMessage, digest_of
from fl_core.loop.events import EventKind
from fl_core.loop.service import Service
from fl_core.loop.state import POSTPONED
from fl_core.recorded_names import Name
from fl_core.server.jobs import Job
from fl_core.timing.clock import MICRO

PULSE = 0.2  # longest wait for messages in seconds, between two looks at `stopping`
MAX_LATENESS_SECONDS = 1.0  # of an alarm; a later one rings now, and alarms missed meanwhile never do
MESSAGES = (EventKind.ARRIVAL, EventKind.LOST)

log = logging.getLogger(__name__)


class StoppedError(Exception):
    """A stop of the server on request; the run is between two events, and can be saved."""


class RealTime(Service):
    """Service with jobs as messages to clients, arriving with the answers."""

    times: ClassVar[tuple[Fraction, ...]] = (MICRO,)

    def __init__(self, unit: float, run_log: RunLog, stopping: Callable[[], bool] = bool) -> None:
        self.unit = unit  # seconds in a unit of virtual time
        self.run_log, self.stopping = run_log, stopping
        self.waited = 0.0  # seconds in which the server had nothing to do, since its start
        self.sent_again: set[tuple[int, int]] = set()  # (client, index) of jobs lost with an earlier server
        self._answers: dict[tuple[int, int], UpdateMessage] = {}  # of jobs whose arrival is queued
        self._polled = False  # whether messages were polled since the latest event without a message

    def start(self, transport: Transport) -> None:
        """Start the clock at the state's tick; jobs in service are sent again."""
        self.transport = transport
        self.tick = self.unit * float(self.lengths.clock.unit)  # seconds
        self.epoch, self._began = (clock() - self.state.now * self.tick for clock in (monotonic, time))
        for job, *_ in self.state.flight.values():
            if job.began is not None:
                self.sent_again.add((job.client, job.index))
                self._compute(job)

    def now(self) -> int:
        """Return the wall clock's tick."""
        return int((monotonic() - self.epoch) / self.tick)

    def upcoming(self) -> float | None:
        """Return the earliest queued tick, or now: messages may come until then."""
        return min(super().upcoming() or inf, self.now())

    def due(self, deadline: float) -> bool:
        """Wait for the earliest event's tick, a message, or the end of the run.

        However late the server is, messages are polled before each alarm, and before each absence.

        Raises:
            StoppedError: A stop was requested.
        """
        if self.stopping():
            raise StoppedError
        ahead = super().upcoming()
        until = deadline + 1 if ahead is None else min(ahead, deadline + 1)
        began = monotonic()
        seconds = self.epoch + until * self.tick - began
        if seconds <= 0 and (ahead != until or self._is_next()):
            return ahead == until and not self._slips(-seconds)
        message = self.transport.poll(max(0.0, min(seconds, PULSE)))
        self._polled = True
        if seconds > 0:
            self.waited += monotonic() - began
        if isinstance(message, UpdateMessage):
            self._arrive(message)
        elif isinstance(message, LostClients):
            for client in message.clients:
                self.state.queue.push(self._next_tick(), EventKind.LOST, client, None)
        return False

    def _is_next(self) -> bool:
        """Return whether the earliest event may happen without another poll of messages."""
        of_message = self.state.queue.peek()[1] in MESSAGES
        polled, self._polled = self._polled, self._polled and of_message
        return polled or of_message

    def _slips(self, seconds: float) -> bool:
        """Postpone the earliest event to now if it is a late alarm, once; return True if postponed."""
        tick, kind, alarm, item = self.state.queue.peek()
        if kind is not EventKind.TICK or item == POSTPONED or seconds <= MAX_LATENESS_SECONDS:
            return False
        tick_now, clock = self._next_tick(), self.lengths.clock
        if not self.run_log.slips[Name.SET]:
            log.warning(
                "the server is slower than the strategy's timer: an alarm is %.1f s late. Alarms missed by "
                "more than %g s are dropped. Lengthen the unit, or the strategy's period",
                seconds,
                MAX_LATENESS_SECONDS,
            )
        self.state.postpone(alarm, tick_now)
        self.run_log.slip(alarm, clock.time(tick), clock.time(tick_now))
        return True

    def end(self, job: Job) -> None:
        """Log a job with an arrived update."""
        super().end(job)
        self._log(job, arrived=self.state.now)

    def abandon(self, job: Job) -> None:
        """Tell a job's client to drop the job."""
        super().abandon(job)
        if job.began is not None:
            self.transport.dismiss(job.client, job.index)
        self._log(job)

    def collect(self, job: Job) -> None:
        """Ask a client for the update up to now, which arrives like any other."""
        self.state.serving += job.waits
        job.waits = False
        self.transport.collect(job.client, job.index)

    def stop(self) -> None:
        """Log the jobs in flight at the end."""
        for jobs in self.state.flight.values():
            for job in jobs:
                self._log(job)

    def _compute(self, job: Job) -> None:
        """Send a job to the client."""
        assert job.length is not None
        job.computes = self.state.now
        self.transport.send(JobMessage.of(job, job.length * self.tick))

    def _arrive(self, message: UpdateMessage) -> None:
        """Queue the arrival of a job in service; updates of other jobs are dropped."""
        job = next(iter(self.state.flight.get(message.client, ())), None)
        if job is None or job.index != message.index or job.began is None or job.event is not None:
            return
        if (message.version, message.received) != (job.version, digest_of(job.start)):
            raise RuntimeError(f"client {job.client} did not start from the model that it was sent")
        device = job.start.device
        job.delta, job.gradient = message.delta.to(device), message.gradient.to(device)
        job.new_moments = {name: value.to(device) for name, value in message.new_moments.items()}
        job.reported, job.steps, job.finite = message.reported, message.steps, message.finite
        job.ends = job.leaves = self._next_tick()
        job.event = self.state.queue.push(job.ends, EventKind.ARRIVAL, job.client, job)
        self._answers[job.client, job.index] = message

    def _next_tick(self) -> int:
        """Return the wall clock's tick, later than the last event's, as real events never coincide."""
        return max(self.now(), self.state.now + 1)

    def _log(self, job: Job, arrived: int | None = None) -> None:
        """Add a job to the log, with the tick of its arrival if any."""
        clock, key = self.lengths.clock, (job.client, job.index)
        answer = self._answers.pop(key, None)
        began = None if job.began is None else clock.time(job.began)
        if answer is not None and began is not None and arrived is not None:
            # By the client's own clock, which may differ from the server's
            began = min(max(began, (answer.began - self._began) / self.unit), clock.time(arrived))
        more = {
            Name.BEGAN: began,
            Name.STALENESS: None if arrived is None else self.state.version - job.version,
            Name.COMPUTED: answer.computed if answer else None,
            Name.RESENT: int(key in self.sent_again),
        }
        self.run_log.add(job, clock, arrived, **more)
