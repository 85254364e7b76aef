"""Downloads and uploads in progress on the links of a scenario's network (docs/rules.md, rule 22).

`Service` starts and stops the transfers of a job. Shared links are computed in `timing/link_sharing.py`.

Fixed: the ticks, exact in integers of grains (stored boards have populations with links).
"""

from collections.abc import Sequence
from fractions import Fraction

from fl_core.loop.events import EventKind
from fl_core.loop.state import RunState
from fl_core.server.jobs import Job
from fl_core.timing.link_sharing import GRAIN, Link, nearest
from fl_core.timing.network import MBIT, Network, Way, grains


class Transfers:
    """The transfers of n clients; the links, which change, are in the state.

    A client has at most one job in service, and so one transfer. A start or a stop may change the ends of
    other transfers on the link: `settle` puts the new ends into the queue, once for each event.
    """

    def __init__(
        self,
        network: Network,
        state: RunState,
        n: int,
        seed: int,
        tick: Fraction,
        *,
        ids: Sequence[str] | None = None,
        queued: bool = False,
    ) -> None:
        # Kinds of the ends: an update arrives, or is queued at a server that takes time
        self._ends = {Way.DOWN: EventKind.PHASE, Way.UP: EventKind.PHASE if queued else EventKind.ARRIVAL}
        self.latency = [round(seconds / tick) for seconds in network.latencies(n, seed, ids)]
        self._cells = network.shared.cells
        mbit = MBIT * tick  # bytes a tick
        self._capacity = {way: network.capacity(way) * mbit for way in Way}
        self._speeds = {way: [rate * mbit for rate in network.rates(way, n, seed, ids)] for way in Way}
        self._rates = {way: [grains(speed) for speed in self._speeds[way]] for way in Way}
        self._state = state
        self._touched: dict[tuple[Way, int], Link] = {}
        state.links = {
            str(way): [Link(grains(self._capacity[way])) for _ in range(self._cells)] for way in Way
        }

    def start(self, job: Job, way: Way) -> None:
        """Begin a job's download or upload."""
        rate, grains = self._rates[way][job.client], job.bytes[way] * GRAIN
        self._link(job.client, way).start(job.client, rate, grains, self._state.now)

    def sends(self, job: Job) -> bool:
        """Return whether a job's upload is in progress."""
        return job.client in self._state.links[Way.UP][job.client % self._cells].transfers

    def stop(self, job: Job, way: Way) -> int:
        """End a job's download or upload, complete or not; return the bytes sent."""
        grains = self._link(job.client, way).stop(job.client, self._state.now)
        return job.bytes[way] - nearest(grains, GRAIN)

    def abandon(self, job: Job) -> None:
        """End a job in any transfer; bytes already sent count."""
        for way in Way:
            if job.client in self._link(job.client, way).transfers:
                self._state.sent[way] += self.stop(job, way)

    def settle(self) -> None:
        """Put the changed ends of transfers into the queue; the earlier entries of the jobs become void."""
        state = self._state
        for (way, _), link in self._touched.items():
            kind = self._ends[way]
            for client, tick in link.changed.items():
                job = state.in_service(client) if state.at_server else state.flight[client][0]
                assert job is not None
                if tick is None:
                    job.event = None
                elif job.event is None or job.event[0] != tick:
                    job.event = state.queue.push(tick, kind, client, job)
            link.changed.clear()
        self._touched.clear()

    def alone(self, client: int, sizes: dict[str, int]) -> Fraction:
        """Return the ticks of a client's transfers, latencies included, while alone on the links.

        Args:
            client: 0 … n − 1.
            sizes: Bytes, by direction.
        """
        ticks = Fraction(2 * self.latency[client])
        for way in Way:
            speed = min(self._speeds[way][client], self._capacity[way])
            if isinstance(speed, Fraction):
                ticks += sizes[way] / speed
        return ticks

    def _link(self, client: int, way: Way) -> Link:
        cell = client % self._cells
        link = self._touched[way, cell] = self._state.links[way][cell]
        return link
