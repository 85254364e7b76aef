"""The one loop: arrivals in virtual time.

It knows no strategy by name, no tracker and no tuner. Who consumes it evaluates, logs, checkpoints and
stops (`break`) between two events. The numbers in comments are the exact rules in docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from heapq import heappop
from math import floor, inf
from typing import Literal, NamedTuple, NoReturn

from torch import Tensor

from fl_core.execution.execution import Execution, Need
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.loop.events import EventQueue, Kind
from fl_core.problems.problem import World
from fl_core.server.jobs import Job, Send, Update
from fl_core.server.server import Server
from fl_core.timing.durations import Lengths

Status = Literal["running", "done", "diverged", "stalled"]

ARRIVAL, PRESENCE, TICK = Kind

NAMED = 10  # clients that a reason lists at most


class Event(NamedTuple):
    """What happened: an update arrived, a client came back, or the alarm rang."""

    kind: Kind
    time: int  # ticks
    version: int  # server version after it
    stepped: bool  # whether that version is new
    client: int | None = None
    staleness: int | None = None  # of the update that arrived
    sent: int | None = None  # ticks
    began: int | None = None  # ticks


class Simulation:
    """One experiment in virtual time; `events()` may be left and taken up between two events."""

    def __init__(self, experiment: Experiment, world: World | None = None) -> None:
        scenario, strategy, seed = experiment.scenario, experiment.strategy, experiment.seed
        self.experiment = experiment
        self.world = world = world or scenario.problem.world(seed)
        self.strategy, self.local = strategy, strategy.local
        self.arrangement = scenario.arrangement
        self.sender = self.arrangement or strategy
        self.budget = scenario.budget
        timing, n = scenario.timing, self.world.n
        exact_times = (*strategy.times(), *timing.availability.times())
        self.lengths = Lengths(timing.durations, n, seed, exact_times)
        self.absences = [timing.availability.absences(client, n, seed) for client in range(n)]
        self.absences_read = [0] * n  # how many were taken, for a resume
        self.server = Server(
            self.world.initial(),
            p=self.world.p,
            sizes=self.world.sizes,
            mean_time=self._mean_times(),
            clock=self.lengths.clock,
            seed=seed,
            local_lr=strategy.local_lr,
            history=self.arrangement.history if self.arrangement else 1,
            losses=lambda model: world.evaluate(model).client_loss,
        )
        self.queue = EventQueue()
        self.indices = [0] * n  # jobs sent to each client
        self.serving = 0  # jobs in service
        self.wasted = 0  # jobs that were computed and then dismissed, since the last need
        self.returns = 0  # absent clients that will come back
        self.gone: list[int] = []  # clients that are away for good
        self.alarm_queued: int | None = None  # the tick of the last alarm put into the queue
        self.arrived: Job | None = None  # the last one, for who wants to know more than the event tells
        time = self.budget.time
        self.most_iterations = self.budget.iterations or inf
        self.most_updates = self.budget.updates or inf
        self.deadline = inf if time is None else floor(time / self.lengths.clock.unit)  # ticks
        self.started = False
        self.status: Status = "running"
        self.reason = ""

    @property
    def time(self) -> float:
        """Virtual time now."""
        return self.server.time

    @property
    def share(self) -> float:
        """Which share of the budget is used up."""
        server, budget = self.server, self.budget
        return max(
            server.version / budget.iterations if budget.iterations else 0.0,
            server.updates / budget.updates if budget.updates else 0.0,
            self.time / float(budget.time) if budget.time else 0.0,
        )

    def _mean_times(self) -> tuple[Fraction, ...]:
        """τ_i, the mean length of each client's jobs [n]; of the usual K where the law is per step (10)."""
        if not self.lengths.law.per_step:
            return self.lengths.means
        half = Fraction(int(self.local.dynamic), 2)
        pairs = enumerate(zip(self.lengths.means, self.world.sizes, strict=True))
        return tuple(mean * (self.local.usual(client, int(size)) + half) for client, (mean, size) in pairs)

    def events(self) -> Iterator[Event | Need]:
        """Yields each event after it happened, and a `Need` whenever a result has to be filled in.

        RuntimeError if the strategy wrote into a model that others hold.
        """
        server, heap = self.server, self.queue.heap
        if not self.started:
            model, writes = server.model, server.model._version
            self._start()
            self._check(model, writes)
        while not self._ended():
            time, kind, client, _, item = heap[0]
            if kind is ARRIVAL and item.delta is None:
                yield Need(item, self.world, self.local, self._computable, self.wasted)
                self.wasted = 0
            heappop(heap)
            server.now = time
            server.stepped = False
            model = server.model
            writes = model._version  # torch's count of what was written into it in place
            if kind is ARRIVAL:
                if not item.finite:  # (14)
                    self.diverge(f"the update of client {client} at time {self.time:g} is not finite")
                    continue
                start, before = item.start, item.start._version
                event = self._arrive(item)
                if start is not model and start._version != before:
                    self._refuse_writing("update.start")
            elif kind is TICK:
                event = self._tick()
            elif server.roster.present[client]:
                self._leave(client, returns=item)
                continue
            else:
                event = self._come_back(client)
            self._check(model, writes)
            yield event

    def _check(self, model: Tensor, writes: int) -> None:
        """RuntimeError if something was written into the version before an event, or a new one (3)."""
        newest = self.server.model
        if model._version != writes or (newest is not model and newest._version):
            self._refuse_writing("the server's model")

    def _refuse_writing(self, what: str) -> NoReturn:
        raise RuntimeError(
            f"{type(self.strategy).__name__} changed {what} in place, a version that others hold: "
            "server.step(...) makes a new one, and .clone() a copy to write into"
        )

    def _computable(self) -> Iterator[Job]:
        """Jobs in service whose result is missing, earliest arrival first."""
        for time, kind, _, job in self.queue.earliest():
            if kind is ARRIVAL and job.delta is None and arrives(job, time):
                yield job

    # -- the three kinds of event (1) ------------------------------------------------------------

    def _arrive(self, job: Job) -> Event:
        """The job leaves flight and becomes an update."""
        server, client = self.server, job.client
        assert job.delta is not None and job.gradient is not None and job.began is not None
        self.serving -= 1
        staleness = server.version - job.version  # (3)
        server.land(job, heard=server.version)
        server.updates += 1
        update = Update(
            client,
            job.version,
            staleness,
            job.steps,
            job.lr,
            job.delta,
            job.gradient,
            job.start,
            job.brief,
            job.sent,
            job.began,
            server.now,
        )
        self.arrived = job
        if update.steps:  # (19)
            self.local.receive(server, update)
        self.strategy.receive(server, update)
        if client in server.flight:
            self._begin_next(client)
        self._settle()
        return Event(
            ARRIVAL, server.now, server.version, server.stepped, client, staleness, job.sent, job.began
        )

    def _tick(self) -> Event:
        server = self.server
        server.alarm = None
        self.strategy.tick(server)
        self._settle()
        return Event(TICK, server.now, server.version, server.stepped)

    def _leave(self, client: int, returns: int | None) -> None:
        """Nobody is asked; a job in service goes on (9)."""
        self.server.roster.leave(client)
        if returns is None:
            self.gone.append(client)
        else:
            self.returns += 1
            self.queue.push(returns, PRESENCE, client, None)

    def _come_back(self, client: int) -> Event:
        server = self.server
        self.returns -= 1
        server.roster.come_back(client, free=client not in server.flight, version=server.version)
        self._schedule_absence(client)
        self._begin_next(client)
        self._settle()
        return Event(PRESENCE, server.now, server.version, server.stepped, client)

    # -- the parts of an event -------------------------------------------------------------------

    def _start(self) -> None:
        self.started = True
        for client in range(self.server.n):
            self._schedule_absence(client)
        self._leave_at_zero()
        self.local.begin(self.server)
        self.strategy.begin(self.server)
        self._freeze_brief()
        if self.strategy.first_pass:  # (16)
            for client in range(self.server.n):
                self._dispatch(Send(client))
        self._settle()

    def _leave_at_zero(self) -> None:
        """Who is absent from time 0 on gets nothing to do at the start."""
        while len(self.queue) and self.queue.peek()[0] == 0:
            _, _, client, returns = self.queue.pop()
            self._leave(client, returns)

    def _settle(self) -> None:
        """After the strategy's turn: abandoned jobs, the new version's brief, whom to send to, the alarm."""
        server = self.server
        if server.dismissed:  # (8)
            for job in server.dismissed:
                self.serving -= job.began is not None and not job.waits
                self.wasted += job.delta is not None
                self._begin_next(job.client)
            server.dismissed.clear()
        if server.collected:  # (19)
            for job in server.collected:
                if not job.dismissed:
                    self._collect(job)
            server.collected.clear()
        if server.stepped:
            self._freeze_brief()
        for send in self._sends():
            if isinstance(send, Send):
                self._dispatch(send)
            else:
                self._dispatch(Send(send))
        if server.alarm is not None and server.alarm != self.alarm_queued:
            self.queue.push(server.alarm, TICK, -1, None)
            self.alarm_queued = server.alarm

    def _sends(self) -> Iterable[int | Send]:
        """Who gets which version now; nothing is sent until the first pass has made its step (16)."""
        if self.strategy.first_pass and self.server.version == 0:
            return ()
        return self.sender.next(self.server)

    def _freeze_brief(self) -> None:
        brief = self.local.brief(self.server)
        self.server.briefs[self.server.version] = {key: value.clone() for key, value in brief.items()}

    def _dispatch(self, send: Send) -> None:
        """Pin the job's inputs; it begins at once if the client is there and free (5)."""
        server, client = self.server, send.client
        version = server.version if send.version is None else send.version
        index = self.indices[client]
        factors = self.local.lr_factors
        job = Job(
            client,
            index,
            version,
            server.versions[version] if send.start is None else self._copied(send.start),
            server.briefs[version],
            send.steps or self.local.count(server, client, index),
            server.local_lr * factors[client] if factors else server.local_lr,
            server.now,
            send.length,
            send.waits,
        )
        self.indices[client] = index + 1
        server.in_flight += 1
        if client in server.flight:
            server.flight[client].append(job)
            return
        server.flight[client] = [job]
        server.roster.engage(client)
        if server.roster.present[client]:
            self._begin(job)

    def _copied(self, start: Tensor) -> Tensor:
        """A model that a strategy sends and may go on writing into (18)."""
        if start.shape != self.server.model.shape:
            raise ValueError(
                f"{type(self.strategy).__name__} sends a start of shape {list(start.shape)}: "
                f"a model has {list(self.server.model.shape)}"
            )
        return start.clone()

    def _begin_next(self, client: int) -> None:
        """Service of the client's first job starts, if it has one and is there (5, 9)."""
        queue = self.server.flight.get(client)
        if queue and queue[0].began is None and self.server.roster.present[client]:
            self._begin(queue[0])

    def _begin(self, job: Job) -> None:
        server, client = self.server, job.client
        length = self.lengths(client, job.index, job.steps) if job.length is None else max(1, job.length)
        job.began, job.ends = server.now, server.now + length
        if own := self.local.own(server, client):
            job.own = {key: value.clone() for key, value in own.items()}
        if not job.waits:
            self.serving += 1
            self.queue.push(job.ends, ARRIVAL, client, job)

    def _collect(self, job: Job) -> None:
        """Cut the job to the steps finished by now, its length split evenly over K; it arrives (19)."""
        now = self.server.now
        assert job.began is not None and job.ends is not None
        if job.ends == now and not job.waits:
            return  # it arrives now in any case
        if now < job.ends:
            job.steps = job.steps * (now - job.began) // (job.ends - job.began)
            self.wasted += job.delta is not None
            job.delta = job.gradient = None
        self.serving += job.waits
        job.ends, job.waits = now, False
        self.queue.push(now, ARRIVAL, job.client, job)

    def _schedule_absence(self, client: int) -> None:
        """Put the client's next leaving into the queue, and with it when it will come back."""
        absence = next(self.absences[client], None)
        if absence is None:
            return
        self.absences_read[client] += 1
        leaves, returns = absence
        clock = self.lengths.clock
        at = max(self.server.now, clock.round(leaves) if leaves > 0 else 0)
        back = None if returns is None else max(at + 1, clock.round(returns))
        self.queue.push(at, PRESENCE, client, back)

    # -- ends ------------------------------------------------------------------------------------

    def _ended(self) -> bool:
        """Whether there is no next event (9, 12)."""
        server, heap = self.server, self.queue.heap
        while heap and heap[0][1] is ARRIVAL and not arrives(heap[0][-1], heap[0][0]):
            heappop(heap)
        if self.status != "running":
            return True
        if server.version >= self.most_iterations:
            self._end("done", "budget of server iterations")
        elif server.updates >= self.most_updates:
            self._end("done", "budget of client updates")
        elif heap and heap[0][0] > self.deadline:
            self._end("done", "budget of virtual time")
        elif not (self.serving or self.returns) and server.roster.absent == server.n:
            self._end("done", "nobody is left")
        elif missing := self._missing():
            named = ", ".join(map(str, missing[:NAMED])) + (" …" if len(missing) > NAMED else "")
            self._end("stalled", f"waits for clients that never come: {named}")
        elif not (self.serving or self.returns) and server.alarm is None:
            self._end("done", "nothing is in flight and no alarm is set")
        return self.status != "running"

    def _missing(self) -> list[int]:
        """The clients away for good without which there is no further step, in order (17)."""
        if not self.gone:
            return []
        server, flight = self.server, self.server.flight
        silent = [i for i in self.gone if i not in flight or flight[i][0].began is None]  # deliver no more
        missing = self.strategy.stalled_by(server, silent)
        if not (missing or self.serving or self.returns) and server.alarm is None:
            missing = flight  # only jobs that were sent to such clients, and never begin, are in flight
        return sorted(missing)

    def diverge(self, reason: str) -> None:
        """End the run as diverged: an update or, as who evaluates it finds, a loss is not finite (14)."""
        self._end("diverged", reason)

    def _end(self, status: Status, reason: str) -> None:
        self.status, self.reason = status, reason


def arrives(job: Job, time: int) -> bool:
    """Whether the job arrives at this tick: a dismissed job never does, a collected one before its end."""
    return job.ends == time and not job.dismissed


def simulate(simulation: Simulation, execution: Execution | None = None) -> Iterator[Event]:
    """The events of a simulation, every result computed by `execution` (one by one unless said otherwise)."""
    execution = execution or OneByOne()
    for event in simulation.events():
        if isinstance(event, Need):
            execution.fill([event])
        else:
            yield event
