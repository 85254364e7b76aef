"""The queue of updates at a server that takes time (docs/rules.md, rule 24)."""

from fl_core.loop.events import EventKind
from fl_core.loop.state import RunState
from fl_core.server.jobs import Job
from fl_core.timing.durations import Lengths


class ServerQueue:
    """Updates in order of arrival, the first in service; the jobs, which change, are in the state.

    `lengths` are those of the server's services, numbered by the order of their begins.
    """

    def __init__(self, lengths: Lengths, state: RunState) -> None:
        self._lengths, self._state = lengths, state

    def join(self, job: Job) -> None:
        """Add an update that reached the server."""
        state = self._state
        job.reached, job.event = state.now, None
        state.at_server.append(job)
        if state.at_server[0] is job:
            self._serve()

    def leave(self, job: Job) -> None:
        """Remove an update, at the end of its service or before; the next service begins."""
        state, time = self._state, self._state.now
        for of_clients, ticks in zip(state.spent_at_server, job.spent_at_server(time), strict=True):
            of_clients[job.client] += ticks
        assert job.reached is not None
        served = time if job.served is None else job.served
        state.server_ticks[0] += served - job.reached
        state.server_ticks[1] += time - served
        first = state.at_server[0] is job
        state.at_server.remove(job)
        if first and state.at_server and not state.at_server[0].dismissed:  # else it leaves next
            self._serve()

    def _serve(self) -> None:
        """Begin the service of the first update."""
        state = self._state
        job = state.at_server[0]
        job.served = state.now
        ends = state.now + self._lengths(0, state.services)
        state.services += 1
        job.event = state.queue.push(ends, EventKind.ARRIVAL, job.client, job)
