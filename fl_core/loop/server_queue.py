"""The queue of updates at a server that takes time for each (docs/rules.md, rule 24).

`Service` puts each complete update in, and takes it out at the arrival. Without `server:` in the scenario
there is no queue, and updates arrive at once.

Fixed: the order of services, whose numbers name the random streams of their lengths.
"""

from fl_core.loop.events import EventKind
from fl_core.loop.state import RunState
from fl_core.server.jobs import Job
from fl_core.timing.durations import Lengths


class ServerQueue:
    """Queue of updates in order of arrival, the first in service. The jobs are in `RunState.at_server`.

    `lengths` are the lengths of the server's services, numbered by the order in which services begin.
    """

    def __init__(self, lengths: Lengths, state: RunState) -> None:
        self._lengths, self._state = lengths, state

    def join(self, job: Job) -> None:
        """Add a job's update, now at the server; service begins at once if the queue is empty."""
        state = self._state
        job.reached, job.event = state.now, None
        state.at_server.append(job)
        if state.at_server[0] is job:
            self._serve()

    def leave(self, job: Job) -> None:
        """Remove a job's update, served or dismissed; if it was the first, the next service begins."""
        state, time = self._state, self._state.now
        for of_clients, ticks in zip(state.spent_at_server, job.spent_at_server(time), strict=True):
            of_clients[job.client] += ticks
        assert job.reached is not None
        served = time if job.served is None else job.served
        state.server_ticks[0] += served - job.reached
        state.server_ticks[1] += time - served
        first = state.at_server[0] is job
        state.at_server.remove(job)
        # A dismissed job leaves next, when its own dismissal is carried out: no service for it.
        if first and state.at_server and not state.at_server[0].dismissed:
            self._serve()

    def _serve(self) -> None:
        """Begin the service of the first update."""
        state = self._state
        job = state.at_server[0]
        job.served = state.now
        ends = state.now + self._lengths(0, state.services)
        state.services += 1
        job.event = state.queue.push(ends, EventKind.ARRIVAL, job.client, job)
