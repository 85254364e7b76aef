"""The simulation of an experiment: the only event loop, for virtual time, real time and replay.

A worker (`benchmarks/runs/run_jobs.py`) iterates over `events()`; between events the `Recorder` evaluates the
model, and the worker saves checkpoints or stops. The loop knows no strategy by name, no tracker and no tuner.
Numbers in parentheses are rules in docs/rules.md.

Fixed: order and content of events, bit for bit. Free: the limits in `_computable`, which only save time.
"""

from collections.abc import Iterator
from fractions import Fraction
from heapq import heappop
from typing import Any, NamedTuple, NoReturn

from torch import Tensor

from fl_core.execution.execution import ComputeRequest, Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.local_work import LocalWork
from fl_core.loop.absences import Absences
from fl_core.loop.dispatch import Dispatch
from fl_core.loop.energy import EnergyMeter
from fl_core.loop.events import JOBS, Entry, EventKind
from fl_core.loop.messages import Messages
from fl_core.loop.server_queue import ServerQueue
from fl_core.loop.service import MeasuredService, Service
from fl_core.loop.state import RunState
from fl_core.loop.stopping import Ends
from fl_core.loop.transfers import Transfers
from fl_core.problems.problem import World
from fl_core.recorded_names import Status
from fl_core.server.jobs import Job, Send, Update
from fl_core.server.roster import Roster
from fl_core.server.server import Server
from fl_core.timing.clock import MICRO, exact
from fl_core.timing.durations import Lengths

PHASE, ARRIVAL, PRESENCE, TICK, LOST = EventKind

# Lookup of computable jobs: the queue's first entries are found in order; the rest is sorted if not too long.
SCANNED_ENTRIES, MAX_SORTED_ENTRIES = 8, 1000


def is_missing(entry: Entry) -> bool:
    """Return whether an entry of the queue is the present phase of a job without a result."""
    if entry[1] not in JOBS:
        return False
    job = entry[-1]
    return job.delta is None and job.event is entry and job.reached is None


class Event(NamedTuple):
    """A past event: an update arrived, a client came back or was lost, or an alarm rang."""

    kind: EventKind
    time: int  # ticks
    version: int  # server version after it
    stepped: bool  # whether the event made a new version
    client: int | None = None
    staleness: int | None = None  # of the update that arrived
    sent: int | None = None  # ticks
    began: int | None = None  # ticks


class Simulation:
    """An experiment in progress; `events()` can be paused and resumed between two events.

    Everything mutable is in `state`, which strategies see through `server`. By default jobs are served in
    virtual time; `fl_core/live` passes a `service` for real time, or for a replay of recorded arrivals.
    """

    def __init__(
        self, experiment: Experiment, world: World | None = None, service: Service | None = None
    ) -> None:
        scenario, strategy, seed = experiment.scenario, experiment.strategy, experiment.seed
        self.experiment = experiment
        self.world = world = world or scenario.problem.world(seed)
        self.strategy, self.local = strategy, strategy.local
        self.arrangement = scenario.arrangement
        self.budget = scenario.budget
        self.together = scenario.timing.durations.together
        self.refuses = scenario.non_finite == "refuse"
        timing, n = scenario.timing, self.world.n
        if service is None and world.measured:
            service = MeasuredService(world, self.local, timing.unit)
        self.service = service or Service()
        exact_times = (*self.service.times, *([MICRO] if timing.network else []))
        for part in (strategy, timing.availability):
            exact_times += exact(part.times(), f"{type(part).__name__}.times")
        services = timing.server and timing.server.lengths(seed)
        if services:
            exact_times += (services.clock.unit,)
        self.lengths = Lengths(timing.durations, n, seed, exact_times)
        self.ends = Ends(self.budget, self.lengths.clock, strategy)
        self.state = RunState(
            versions={0: world.initial()},
            roster=Roster(n),
            local_lr=strategy.local_lr,
            indices=[0] * n,
            absences_read=[0] * n,
            spent=[[0] * n for _ in range(3)],
            spent_at_server=[[0] * n for _ in range(2 * (timing.server is not None))],
        )
        ids = timing.ids(n, seed)
        self.absences = Absences(timing.availability, self.state, self.lengths.clock, n, seed, ids=ids)
        links = timing.network
        self.messages = Messages(strategy, self.state, seed, links.message if links else None)
        tick = timing.unit * self.lengths.clock.unit  # seconds
        queued = timing.server is not None
        self.transfers = (
            Transfers(links, self.state, n, seed, tick, ids=ids, queued=queued) if links else None
        )
        server_queue = None
        if timing.server:
            services = timing.server.lengths(seed, (self.lengths.clock.unit,))
            server_queue = ServerQueue(services, self.state)
        self.service.attach(self.state, self.lengths, self.transfers, server_queue)
        self.energy = (
            EnergyMeter(timing.power, self.service, n, seed, tick, ids=ids) if timing.power else None
        )
        self.server = Server(
            self.state,
            p=self.world.p,
            sizes=self.world.sizes,
            mean_time=self.mean_times(),
            service_time=services.means[0] if services else Fraction(0),
            blocks=self.world.blocks,
            clock=self.lengths.clock,
            seed=seed,
            history=self.arrangement.history if self.arrangement else 1,
            losses=world.losses,
            optimizer=strategy.server,
            lr=strategy.server_lr,
        )
        sender = self.arrangement or strategy
        methods = ("client_state", "moments")
        keeps = any(getattr(type(self.local), name) is not getattr(LocalWork, name) for name in methods)
        self.dispatch = Dispatch(
            self.state, self.server, strategy, sender, self.messages, self.service, keeps, self.together
        )
        self._local_receives = type(self.local).receive is not LocalWork.receive
        self.arrived: Job | None = None  # the job of the latest arrival, for details not in the `Event`

    @property
    def status(self) -> Status:
        """Return the state of the run: running, or the status at the end."""
        return self.state.status

    @property
    def reason(self) -> str:
        """The reason of the end in words; empty while running."""
        return self.state.reason

    @property
    def time(self) -> float:
        """Virtual time now."""
        return self.lengths.clock.time(self.state.now)

    @property
    def share(self) -> float:
        """Return the used share of the budget."""
        return self.ends.share(self.state)

    def mean_times(self) -> tuple[Fraction, ...]:
        """Return τ_i, each client's mean job length in units of virtual time [n] (10).

        At the usual K if the law is per step. With a network, transfers are included, at the rate of a client
        alone on the links (22).
        """
        means = list(self.lengths.means)
        if self.lengths.law.per_step:
            half = Fraction(int(self.local.dynamic), 2)
            for client, size in enumerate(self.world.sizes):
                means[client] *= self.local.usual(client, int(size)) + half
        if self.transfers is not None:
            sizes = self.messages.sizes(self.state.model, self.state.version)
            unit = self.lengths.clock.unit
            for client in range(self.world.n):
                means[client] += self.transfers.alone(client, sizes) * unit
        return tuple(means)

    def events(self) -> Iterator[Event | ComputeRequest]:
        """Yield each event after it happened, and a `ComputeRequest` before each arrival without a result.

        The consumer has to compute at least the requested job before it asks for the next event.

        Raises:
            RuntimeError: The strategy wrote into a model that is in use elsewhere.
        """
        state, heap = self.state, self.state.queue.heap
        timing = self.experiment.scenario.timing
        remembers = bool(timing.network or timing.server or timing.power)
        if not state.started:
            self._start()
        waits = type(self.service).due is not Service.due
        while not self._ended():
            if waits and not self.service.due(self.ends.deadline):
                continue
            time, kind, client, _, item = heap[0]
            if kind is ARRIVAL and item.delta is None:
                yield ComputeRequest(item, self.world, self.local, self._computable, state.wasted)
                state.wasted = 0
            heappop(heap)
            state.now = time
            state.stepped = False
            model = state.versions[state.version]
            writes = model._version  # torch's count of what was written into it in place
            if kind is ARRIVAL:
                if not item.finite:  # (14)
                    state.non_finite += 1
                    if not self.refuses:
                        self.diverge(self._not_finite(item))
                        continue
                event = self._arrive(item)
            elif (happened := self._happen(kind, client, item)) is None:
                continue
            else:
                event = happened
            self._check(model, writes)
            yield event
            if remembers:
                self.service.forget()

    def _not_finite(self, job: Job) -> str:
        """Return a message about a non-finite update, and whether the client got a non-finite model."""
        coding = f" in {self.messages.downlink.reference()}" if self.messages.downlink else ""
        sent = "" if job.start.isfinite().all() else f", nor is the model that it was sent{coding}"
        return f"the update of client {job.client} at time {self.time:g} is not finite{sent}"

    def _happen(self, kind: EventKind, client: int, item: Any) -> Event | None:
        """Handle an event other than an arrival; return the event to yield, or None if nobody is told.

        Args:
            kind: Of the event.
            client: Whom it is about; for TICK the number of the alarm.
            item: The job for PHASE; for a client that leaves, the tick of the return.
        """
        if kind is TICK:
            return self._tick(client)
        if kind is LOST:
            return self._lose(client)
        if kind is PHASE:
            self.dispatch.advance(item)
        elif self.state.roster.present[client]:  # PRESENCE: a client leaves, or else returns
            self.absences.leave(client, returns=item)
        else:
            return self._come_back(client)
        return None

    def _check(self, model: Tensor, writes: int) -> None:
        """Raise RuntimeError if a strategy wrote into the version before the event or the new one (3)."""
        newest = self.state.versions[self.state.version]
        if model._version != writes or (newest is not model and newest._version):
            self._refuse_writing("the server's model")

    def _refuse_writing(self, noun: str) -> NoReturn:
        raise RuntimeError(
            f"{type(self.strategy).__name__} changes {noun} in place, but clients may still use "
            "this version: make a new version with server.step(...), or write into a .clone()"
        )

    def _computable(self) -> Iterator[Job]:
        """Yield jobs in service without a result, the next to arrive first.

        A batch is filled from these jobs, so a long queue must not be sorted as a whole.
        """
        queue = self.state.queue
        yield from (job for job in self.state.at_server if job.delta is None)
        for place, entry in enumerate(queue.earliest()):
            if is_missing(entry):
                yield entry[-1]
            if place == SCANNED_ENTRIES and len(queue) <= MAX_SORTED_ENTRIES:  # sorting the rest is faster
                yield from [late[-1] for late in sorted(e for e in queue.heap if e > entry and is_missing(e))]
                return

    def _arrive(self, job: Job) -> Event:
        """Turn a job into an update, hand it to the strategy, and carry out the strategy's requests."""
        state, server, client = self.state, self.server, job.client
        model, start, writes = state.versions[state.version], job.start, job.start._version
        self.service.end(job)
        staleness = state.version - job.version  # (3)
        state.land(job, last_update_version=state.version if job.finite else -1)
        state.updates, state.abandoned = state.updates + 1, 0
        state.local_steps += job.steps
        update = Update.from_job(job, staleness, state.now)
        self.arrived = job
        if not job.finite:  # (14)
            self.strategy.lost(server, client)
        else:
            if self.messages.uplink:
                self.messages.update(update, client, job.index)
            if job.new_moments:
                state.client_moments[client] = job.new_moments
            if self._local_receives and update.steps:  # (19)
                self.local.receive(server, update)
        if self.together:
            self._gather(update if job.finite else None)
        elif job.finite:
            self.strategy.receive(server, update)
        if client in state.flight:
            self.dispatch.begin_next(client)
        self.dispatch.settle()
        if start is not model and start._version != writes:
            self._refuse_writing("update.start")
        return Event(ARRIVAL, state.now, state.version, state.stepped, client, staleness, job.sent, job.began)

    def _gather(self, update: Update | None) -> None:
        """Collect the updates of a server iteration, and hand them over together (20); None if refused."""
        state = self.state
        if update is not None:
            state.gathered.append(update)
        if state.gathered and not state.more_arrive():
            self.strategy.receive_together(self.server, state.gathered)
            state.gathered = []

    def _tick(self, alarm: int) -> Event:
        """Let an alarm ring: call the strategy's `tick`."""
        state = self.state
        state.ringing = alarm
        del state.alarms[alarm]
        self.strategy.tick(self.server)
        state.ringing = None
        self.dispatch.settle()
        return Event(TICK, state.now, state.version, state.stepped)

    def _come_back(self, client: int) -> Event:
        """Mark a client as present, and begin the job that waits for it (9)."""
        state = self.state
        self.absences.come_back(client)
        self.dispatch.begin_next(client)
        self.dispatch.settle()
        return Event(PRESENCE, state.now, state.version, state.stepped, client)

    def _lose(self, client: int) -> Event:
        """Remove a client for good, and the job in service without an update (23)."""
        state = self.state
        self.absences.lose(client)
        if (job := next(iter(state.flight.get(client, ())), None)) and job.began is not None:
            job.dismissed = True
            state.land(job, last_update_version=-1)
            self.service.abandon(job)
            if not job.waits:  # no strategy expects the update of a waiting job
                self.strategy.lost(self.server, client)
        self.dispatch.settle()
        return Event(LOST, state.now, state.version, state.stepped, client)

    def _start(self) -> None:
        """Begin the run: absences from time 0, the memories of strategy and local work, the first jobs."""
        self.state.started = True
        model = self.state.model
        writes = model._version
        for client in range(self.server.n):
            self.absences.schedule(client)
        queue = self.state.queue
        while len(queue) and queue.peek()[0] == 0:  # clients absent from time 0 on are sent no job
            _, _, client, returns = queue.pop()
            self.absences.leave(client, returns)
        self.messages.begin(self.server.n)
        self.local.begin(self.server)
        if self.transfers:
            self.dispatch.freeze_broadcast()
            if self.state.broadcasts[0]:  # a broadcast lengthens the download
                self.server.mean_time = self.mean_times()
        self.strategy.begin(self.server)
        self.dispatch.freeze_broadcast()
        if self.strategy.first_pass:  # (16)
            for client in range(self.server.n):
                self.dispatch.send(Send(client))
        self.dispatch.settle()
        self._check(model, writes)

    def _ended(self) -> bool:
        """Return whether no event follows."""
        state = self.state
        state.drop_abandoned()
        if (
            state.status is Status.RUNNING
            and (end := self.ends.reached(state, self.server, self.service.upcoming())) is not None
        ):
            state.status, state.reason = end
        return state.status is not Status.RUNNING

    def diverge(self, reason: str) -> None:
        """End the run as diverged, for a reason: an update or an evaluated loss is not finite (14)."""
        self.state.status, self.state.reason = Status.DIVERGED, reason


def simulate(simulation: Simulation, execution: Execution | None = None) -> Iterator[Event]:
    """Yield the events of a simulation, with results from `execution` (default: one by one)."""
    execution = execution or OneByOne()
    for event in simulation.events():
        if type(event) is ComputeRequest:
            execution.execute([event])
        else:
            yield event
