"""The mutable state of a run in a single place, for checkpoints."""

from dataclasses import dataclass, field
from heapq import heappop

from fl_core.loop.events import JOBS, EventKind, EventQueue
from fl_core.schema import Status
from fl_core.server.jobs import Job, Update
from fl_core.server.state import ServerState
from fl_core.timing.link import Link
from fl_core.timing.network import Way

POSTPONED = "postponed"  # payload of a late alarm in the queue


@dataclass(slots=True, kw_only=True, eq=False)
class RunState(ServerState):
    """The server's state, and the loop's own.

    A field of plain data (tensors, numbers, strings, lists, tuples, dicts) is saved automatically.
    """

    queue: EventQueue = field(default_factory=EventQueue)
    indices: list[int]  # jobs sent to each client
    absences_read: list[int]  # how many of each client's absences were queued
    serving: int = 0  # jobs in service
    wasted: int = 0  # jobs that were computed and then dismissed, since the last request
    abandoned: int = 0  # jobs that were dismissed since the latest update
    returns: int = 0  # absent clients that will come back
    non_finite: int = 0  # updates that were not finite
    local_steps: int = 0  # of all updates
    sent: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(map(str, Way), 0)
    )  # bytes, by direction
    # Ticks that jobs of each client that left flight took for download, computation and upload
    spent: list[list[int]]
    links: dict[str, list[Link]] = field(
        default_factory=dict
    )  # by direction, for each cell; none: no network
    at_server: list[Job] = field(
        default_factory=list
    )  # whose updates wait for the server, the first in service
    services: int = 0  # of the server, begun
    # Ticks that each client had no job but an update waiting at the server, and in service there
    spent_at_server: list[list[int]] = field(default_factory=list)
    server_ticks: list[int] = field(default_factory=lambda: [0, 0])  # of all updates: waiting, in service
    gathered: list[Update] = field(default_factory=list)  # of this server iteration, more of which arrive
    started: bool = False
    status: Status = Status.RUNNING
    reason: str = ""  # why it ended

    def drop_abandoned(self) -> None:
        """Remove abandoned jobs and moved alarms from the head of the queue."""
        heap = self.queue.heap
        while heap:
            time, kind, client, _, item = entry = heap[0]
            if kind in JOBS:
                if item.event is entry:
                    return
            elif kind is not EventKind.TICK or time == self.alarms.get(client):
                return
            heappop(heap)

    def postpone(self, alarm: int, tick: int) -> None:
        """Let a pending alarm ring at a later tick, with the payload POSTPONED."""
        self.alarms[alarm] = tick
        self.queue.push(tick, EventKind.TICK, alarm, POSTPONED)

    def more_arrive(self) -> bool:
        """Return whether another update arrives at the present tick."""
        heap = self.queue.heap
        self.drop_abandoned()
        return bool(heap) and heap[0][0] == self.now and heap[0][1] is EventKind.ARRIVAL
