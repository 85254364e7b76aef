"""The mutable state of a run in a single place, so that a checkpoint can save it.

`Simulation` creates it; the parts of the loop write into it. `serialization` turns it into plain data.

Fixed: which events of the queue count. Free: fields may be added or renamed. Checkpoints without them are
refused, and their runs begin again.
"""

from dataclasses import dataclass, field
from heapq import heappop

from fl_core.loop.events import JOBS, EventKind, EventQueue
from fl_core.recorded_names import Status
from fl_core.server.jobs import Job, Update
from fl_core.server.state import ServerState
from fl_core.timing.link_sharing import Link
from fl_core.timing.network import Way

POSTPONED = "postponed"  # payload of a late alarm in the queue


@dataclass(slots=True, kw_only=True, eq=False)
class RunState(ServerState):
    """The server's state, and the loop's own: queue, accounts, status.

    A new field is saved automatically if it holds plain data: tensors, numbers, strings, lists, dicts.
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
    # Bytes sent so far, by direction
    sent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Way), 0))
    # Ticks of download, computation and upload [3, n], of jobs that ended or were dismissed
    spent: list[list[int]]
    # By direction, a link for each cell; empty without a network
    links: dict[str, list[Link]] = field(default_factory=dict)
    # Jobs whose updates wait at a server that takes time, the first in service
    at_server: list[Job] = field(default_factory=list)
    services: int = 0  # services that the server has begun
    # Ticks in which a client's only job was an update waiting at the server, or in service there [2, n]
    spent_at_server: list[list[int]] = field(default_factory=list)
    server_ticks: list[int] = field(default_factory=lambda: [0, 0])  # of all updates: waiting, in service
    gathered: list[Update] = field(default_factory=list)  # of the server iteration in progress (20)
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
        """Let a pending alarm ring at a later tick, with the payload POSTPONED; in real time only (23)."""
        self.alarms[alarm] = tick
        self.queue.push(tick, EventKind.TICK, alarm, POSTPONED)

    def more_arrive(self) -> bool:
        """Return whether another update arrives at the present tick."""
        heap = self.queue.heap
        self.drop_abandoned()
        return bool(heap) and heap[0][0] == self.now and heap[0][1] is EventKind.ARRIVAL
