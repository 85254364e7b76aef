"""A link shared by transfers, with exact ends of transfers in integers.

`loop/transfers.py` starts and stops transfers on it. Max-min fairness (Bertsekas & Gallager, Data Networks,
1992, §6.5.2): each transfer gets its own rate or the *level*, whichever is less, and the rates sum to the
capacity unless all transfers have their own rate. If all own rates are above the level, that is processor
sharing (Kleinrock, J. ACM 14, 1967). All transfers at the level are given equal amounts (`Link.given`). So
such a transfer ends when `given` has grown by its size, and an event costs O(log n), not a pass over all
transfers.

Fixed: ends of transfers, exact in integers. Free: the form of `state`; a checkpoint that does not load begins
its run again.
"""

from dataclasses import astuple, dataclass
from heapq import heappop, heappush
from math import inf
from typing import Any, Self

GRAIN = 1 << 60  # grains a byte: sizes and rates are integers of grains, with exact sums
Rate = int | float  # grains a tick; a float only if infinite
Heap = list[tuple[Rate, int, int, "Transfer"]]  # by a key, by client, by the order of insertion


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """A client's bytes on the way through a link; replaced whenever it moves to or from its own rate."""

    client: int
    rate: Rate  # its own rate: that of the client's link
    left: int  # remaining grains at tick `since`
    since: int
    goal: int | None = None  # value of `Link.given` at the end; None for a transfer at its own rate


class Link:
    """A capacity in grains a tick, and the transfers in progress, at most 1 for each client."""

    def __init__(self, capacity: Rate = inf) -> None:
        self.capacity = capacity
        self.transfers: dict[int, Transfer] = {}
        self.given = 0  # grains given so far to each transfer at the level
        self.now = 0  # ticks
        # Client → new tick of the end of its transfer; None: not the next to end, so not yet known. Cleared
        # by the reader
        self.changed: dict[int, int | None] = {}
        self._level: Rate = inf  # rate of transfers without an own rate
        self._own: int = 0  # sum of the rates of transfers at their own rates
        self._sharing = 0  # number of transfers at the level
        self._first: Transfer | None = None  # at the level, the first to end
        self._ends: Heap = []  # transfers at the level, by goal
        self._slowest: Heap = []  # transfers at the level, by rate
        self._fastest: Heap = []  # transfers at their own rates, by −rate
        self._put_so_far = 0  # transfers put so far, for a total order of heaps

    def start(self, client: int, rate: Rate, grains: int, time: int) -> None:
        """Begin a client's transfer.

        Args:
            client: One without a transfer on this link.
            rate: What the client's side lets through, grains a tick.
            grains: Number to be sent.
            time: Ticks.
        """
        self._advance(time)
        self._add(client, rate, grains, shares=self.capacity < inf)
        self._balance()

    def stop(self, client: int, time: int) -> int:
        """Take a transfer off the link, at the end or before; return the remaining grains."""
        self._advance(time)
        grains = self._remove(self.transfers[client])
        self.changed.pop(client, None)
        if not self.transfers:
            self.given = 0
        self._balance()
        return grains

    def _advance(self, time: int) -> None:
        """Move the link to a tick."""
        if self._sharing:
            self.given += int(self._level) * (time - self.now)
        self.now = time

    def _left(self, transfer: Transfer) -> int:
        """Return the remaining grains of a transfer now."""
        if transfer.goal is not None:
            return max(0, transfer.goal - self.given)
        if transfer.rate == inf:
            return 0 if self.now > transfer.since else transfer.left
        return max(0, transfer.left - int(transfer.rate) * (self.now - transfer.since))

    def _add(self, client: int, rate: Rate, grains: int, shares: bool) -> None:
        """Add a transfer at the level (`shares`) or at its own rate, and note the new end."""
        goal = self.given + grains if shares else None
        self._put(Transfer(client, rate, grains, self.now, goal))
        self.changed[client] = (
            None if shares else self.now + (0 if rate == inf else nearest(grains, int(rate)))
        )

    def _put(self, transfer: Transfer) -> None:
        """Enter a transfer into sums and heaps."""
        self._put_so_far += 1
        self.transfers[transfer.client] = transfer
        item = (transfer.client, self._put_so_far, transfer)
        if transfer.goal is not None:
            self._sharing += 1
            heappush(self._ends, (transfer.goal, *item))
            heappush(self._slowest, (transfer.rate, *item))
        elif self.capacity < inf:
            self._own += int(transfer.rate)
            heappush(self._fastest, (-transfer.rate, *item))

    def _remove(self, transfer: Transfer) -> int:
        """Forget a transfer, left in the heaps until first; return the remaining grains."""
        del self.transfers[transfer.client]
        if transfer.goal is not None:
            self._sharing -= 1
        elif self.capacity < inf:
            self._own -= int(transfer.rate)
        return self._left(transfer)

    def _balance(self) -> None:
        """Find the level between transfers limited by an own rate and transfers with a fair part."""
        if self.capacity == inf:
            return
        while True:
            free = self.capacity - self._own
            self._level = free // self._sharing if self._sharing else inf if free >= 0 else 0
            if (slow := self._top(self._slowest)) and slow.rate <= self._level:
                self._add(slow.client, slow.rate, self._remove(slow), shares=False)
            elif (fast := self._top(self._fastest)) and fast.rate > self._level:
                self._add(fast.client, fast.rate, self._remove(fast), shares=True)
            else:
                break
        first, self._first = self._first, self._top(self._ends)
        if first is not None and first is not self._first and self._holds(first):
            self.changed[first.client] = None
        if self._first is not None:
            self.changed[self._first.client] = self.now + nearest(self._left(self._first), int(self._level))

    def _holds(self, transfer: Transfer) -> bool:
        """Return whether a transfer of a heap is still in progress, unchanged."""
        return self.transfers.get(transfer.client) is transfer

    def _top(self, heap: Heap) -> Transfer | None:
        """Return the first unchanged transfer of a heap, if any."""
        while heap and not self._holds(heap[0][-1]):
            heappop(heap)
        return heap[0][-1] if heap else None

    def state(self) -> dict[str, Any]:
        """Return the mutable state as plain data."""
        transfers = [astuple(transfer) for transfer in self.transfers.values()]
        return {"now": self.now, "given": self.given, "transfers": transfers}

    @classmethod
    def restored(cls, capacity: Rate, state: dict[str, Any]) -> Self:
        """Return the link with a saved `state`."""
        link = cls(capacity)
        link.now, link.given = state["now"], state["given"]
        for transfer in state["transfers"]:
            link._put(Transfer(*transfer))
        link._balance()
        link.changed.clear()
        return link


def nearest(size: int, rate: int) -> int:
    """Return size / rate, to the nearest integer (a half up)."""
    return (2 * size + rate) // (2 * rate)
