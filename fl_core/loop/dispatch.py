"""Sends of jobs: what a strategy requested at an event is carried out here.

`Simulation` calls `settle` after every event: dismissed jobs are abandoned, the broadcast of a new version is
copied, jobs are sent, and alarms are set. Numbers in parentheses are rules in docs/rules.md.

Fixed: the order of these steps, and of the jobs in each: draws and ties depend on it (docs/rules.md).
"""

import operator
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fl_core.arrangements import Arrangement
from fl_core.loop.events import EventKind
from fl_core.loop.messages import Messages
from fl_core.loop.service import Service
from fl_core.loop.state import RunState
from fl_core.server.jobs import Job, Send, whole
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Turns a strategy's requests (`Send`, `server.dismiss`, `collect`, `wake`) into jobs and events."""

    state: RunState
    server: Server
    strategy: Strategy
    sender: Strategy | Arrangement  # says who works next
    messages: Messages
    service: Service
    keeps: bool  # whether clients may keep tensors of the local work or its optimiser
    together: bool  # whether all arrivals of a server iteration come before the sends (20)

    def settle(self) -> None:
        """Carry out the requests made at the event."""
        state = self.state
        if state.dismissed or state.collected:
            self._end_services()
        if state.stepped:
            self.freeze_broadcast()
        for send in self._sends():
            self.send(send)
        if state.woken:
            for alarm, tick in state.woken.items():
                state.queue.push(tick, EventKind.TICK, alarm, None)
            state.woken.clear()
        if self.service.transfers:
            self.service.settle()

    def advance(self, job: Job) -> None:
        """Move a job to the next phase; begin the client's next job if the update reached the server."""
        self.service.advance(job)
        if job.reached is not None:
            self.begin_next(job.client)
        if self.service.transfers:
            self.service.transfers.settle()

    def _end_services(self) -> None:
        """Abandon dismissed jobs (8), and cut collected jobs (19)."""
        state = self.state
        for job in state.dismissed:
            state.wasted += job.delta is not None
            self.service.abandon(job)
        state.abandoned += len(state.dismissed)
        for job in state.dismissed:
            self.begin_next(job.client)
        for job in state.collected:
            if not job.dismissed:
                self.service.collect(job)
        state.dismissed.clear()
        state.collected.clear()

    def _sends(self) -> Iterable[int | Send]:
        """Return the clients to work next, from `next` of the arrangement or the strategy.

        Until the first pass has stepped, only clients whose update was refused (14, 16). While more arrivals
        of the same server iteration follow, none (20).
        """
        if self.together and self.state.more_arrive():
            return ()
        if self.state.version == 0 and self.strategy.first_pass:
            return self.server.due
        chosen = self.sender.next(self.server)
        if type(chosen) is not list and not isinstance(chosen, Iterable):
            raise TypeError(f"{self._who}.next must return the clients that work next, not {chosen!r}")
        return chosen

    @property
    def _who(self) -> str:
        return type(self.sender).__name__

    def freeze_broadcast(self) -> None:
        """Copy the tensors sent along with the newest version."""
        broadcast = self.strategy.local.broadcast(self.server)
        self.state.broadcasts[self.state.version] = {key: value.clone() for key, value in broadcast.items()}

    def send(self, request: int | Send) -> None:
        """Create a job, with all its inputs fixed; begin service if the client is present and idle (5).

        Called for each job of a run: plain integers take a short path around the checks.
        """
        state, local, messages = self.state, self.strategy.local, self.messages
        version, start, steps, length, waits = state.version, None, None, None, False
        number: Any = request
        if type(request) is not int and isinstance(request, Send):
            number, steps, length, waits = request.client, request.steps, request.length, request.waits
            version, start = self._version(request), request.start
        client = number if type(number) is int and 0 <= number < self.server.n else self._client(number)
        index = state.indices[client]
        start = state.versions[version] if start is None else self._copied(start)
        factors = local.lr_factors
        count = steps or local.count(self.server, client, index)
        job = Job(
            client,
            index,
            version,
            messages.model(start, client, index) if messages.downlink else start,
            state.broadcasts[version],
            count if type(count) is int and count > 0 else self._steps(client, count),
            state.local_lr * factors[client] if factors else state.local_lr,
            state.now,
            length,
            waits,
            messages.sizes(start, version),
            reports=self.strategy.reads_losses,
        )
        state.indices[client] = index + 1
        state.in_flight += 1
        if client in state.flight:
            state.flight[client].append(job)
            if state.at_server:  # the client is free if its earlier updates only wait at the server
                self.begin_next(client)
            return
        state.flight[client] = [job]
        state.roster.engage(client)
        self.begin_next(client)

    def _version(self, send: Send) -> int:
        """Return the version to send, the newest by default; raise ValueError unless it is kept."""
        version, versions = send.version, self.state.versions
        if version is None:
            return self.state.version
        if version not in versions:
            available = ", ".join(map(str, versions))
            raise ValueError(
                f"{self._who} sends version {version}, which the server no longer has. Available: {available}"
            )
        return version

    def _client(self, number: Any) -> int:
        """Return a client's number as an int (from NumPy, say); raise ValueError unless 0 ≤ number < n."""
        n = self.server.n
        with suppress(TypeError):
            if 0 <= (client := operator.index(number)) < n:
                return client
        raise ValueError(f"{self._who}.next must return clients, numbers from 0 to {n - 1}, not {number!r}")

    def _steps(self, client: int, count: Any) -> int:
        """Return K of a client's job as an int; raise ValueError if below 1."""
        return whole(count, 1, f"{type(self.strategy.local).__name__}.count of client {client}")

    def _copied(self, start: Tensor) -> Tensor:
        """Return a copy of a model from the strategy, safe from later writes (18)."""
        if start.shape != self.server.model.shape:
            raise ValueError(
                f"{type(self.strategy).__name__} sends a start of shape {list(start.shape)}: "
                f"Send.start must have the model's shape, {list(self.server.model.shape)}"
            )
        return start.clone()

    def begin_next(self, client: int) -> None:
        """Start service of the client's first job, if any, and if the client is present (5, 9)."""
        state = self.state
        if state.at_server:
            job = state.in_service(client)
        else:
            queue = state.flight.get(client)
            job = queue[0] if queue else None
        if job is not None and job.began is None and state.roster.present[client]:
            if self.keeps:
                self._recall(job)
            self.service.begin(job)

    def _recall(self, job: Job) -> None:
        """Copy the client's state and optimiser moments, kept between jobs."""
        local, remembered = self.strategy.local, self.state.client_moments.get(job.client)
        state = local.client_state(self.server, job.client)
        moments = local.moments(job.start) if remembered is None else remembered
        job.client_state = {key: value.clone() for key, value in state.items()}
        job.moments = {key: value.clone() for key, value in moments.items()}
