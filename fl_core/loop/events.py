"""The queue of future events in virtual time, with the order of ties (docs/rules.md, rule 2).

Part of `RunState`. The simulation takes events from it; service, absences and alarms put events in.

Fixed: the order. Free: how the queue is kept.
"""

from collections.abc import Iterator
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Any


class EventKind(IntEnum):
    """The kinds of event, in their order at one tick. The numbers are saved in checkpoints and logs."""

    PHASE = 0  # of a job ends, with a network: its download, or its computation; nobody is told
    ARRIVAL = 1  # of an update, even from a client that leaves at this tick
    PRESENCE = 2  # a client leaves or returns
    TICK = 3  # an alarm rings, after all arrivals at the same tick (a FedFix window includes its end)
    LOST = 4  # a real client's process is gone, and the client with it


JOBS = (EventKind.PHASE, EventKind.ARRIVAL)  # kinds of event whose payload is a job


Entry = tuple[int, EventKind, int, int, Any]  # time in ticks, kind, client, order of insertion, payload


class EventQueue:
    """A heap of events, ordered by (time, kind, client, order of insertion)."""

    def __init__(self) -> None:
        self.heap: list[Entry] = []  # the earliest first
        self._pushed = 0

    def push(self, time: int, kind: EventKind, client: int, payload: Any) -> Entry:
        """Add an event at `time` (ticks); return the entry, equal to no other."""
        entry = (time, kind, client, self._pushed, payload)
        heappush(self.heap, entry)
        self._pushed += 1
        return entry

    def pop(self) -> tuple[int, EventKind, int, Any]:
        """Remove and return the earliest event: time, kind, client, payload."""
        time, kind, client, _, payload = heappop(self.heap)
        return time, kind, client, payload

    def peek(self) -> tuple[int, EventKind, int, Any]:
        """Return the earliest event without removal: time, kind, client, payload."""
        time, kind, client, _, payload = self.heap[0]
        return time, kind, client, payload

    def remove(self, kind: EventKind, client: int) -> int:
        """Remove a client's events of a kind; return the number removed."""
        remaining = [entry for entry in self.heap if entry[1:3] != (kind, client)]
        removed = len(self.heap) - len(remaining)
        self.heap[:] = remaining
        heapify(self.heap)
        return removed

    def earliest(self) -> Iterator[Entry]:
        """Yield all entries in order; the first k cost O(k log k), however long the queue is."""
        heap = self.heap
        front = [(heap[0], 0)] if heap else []  # entries whose parents were yielded, with their places
        while front:
            entry, place = heappop(front)
            yield entry
            for child in range(2 * place + 1, min(2 * place + 3, len(heap))):
                heappush(front, (heap[child], child))

    def __len__(self) -> int:
        return len(self.heap)
