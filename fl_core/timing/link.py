"""A link shared by transfers, exact event by event.

Max-min fairness (Bertsekas & Gallager, Data Networks, 1992, §6.5.2): each transfer gets its own rate or the
*level*, whichever is less, and the rates sum to the capacity unless all have their own. Where all own rates
are above the level, that is processor sharing (Kleinrock, J. ACM 14, 1967). What the level gives grows alike
for all that get it, so such a transfer ends when that sum has grown by its bytes: no event touches them all.
"""

from dataclasses import astuple, dataclass
from heapq import heappop, heappush
from math import inf
from typing import Any, Self

GRAIN = 1 << 60  # grains a byte: bytes and rates are integers, and sums of them exact
Rate = int | float  # grains a tick; a float only if infinite
Heap = list[tuple[Rate, int, int, "Transfer"]]  # by a key, by client, by the order of insertion


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """The bytes of a client on the way through a link, since the last change of the limit by an own rate."""

    client: int
    rate: Rate  # its own: what the client's side lets through
    left: int  # grains at tick `since`
    since: int
    goal: int | None = None  # of `Link.given` at the end; None while it has its own rate


class Link:
    """A capacity in grains a tick, and the transfers in progress, at most 1 for each client."""

    def __init__(self, capacity: Rate = inf) -> None:
        self.capacity = capacity
        self.transfers: dict[int, Transfer] = {}
        self.given = 0  # grains that each transfer at the level was given
        self.now = 0  # ticks
        # Client → the tick at which its transfer ends, where that is new; None: after another's, which
        # changes it. The reader clears it.
        self.changed: dict[int, int | None] = {}
        self._level: Rate = inf
        self._own: int = 0  # Σ of own rates of transfers that have them
        self._sharing = 0  # transfers at the level
        self._first: Transfer | None = None  # of these, the first to end
        self._ends: Heap = []  # of these, by goal
        self._slowest: Heap = []  # of these, by rate
        self._fastest: Heap = []  # of those with their own rates, by −rate
        self._put_so_far = 0

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
        if self._sharing:
            self.given += int(self._level) * (time - self.now)
        self.now = time

    def _left(self, transfer: Transfer) -> int:
        if transfer.goal is not None:
            return max(0, transfer.goal - self.given)
        if transfer.rate == inf:
            return 0 if self.now > transfer.since else transfer.left
        return max(0, transfer.left - int(transfer.rate) * (self.now - transfer.since))

    def _add(self, client: int, rate: Rate, grains: int, shares: bool) -> None:
        goal = self.given + grains if shares else None
        self._put(Transfer(client, rate, grains, self.now, goal))
        self.changed[client] = (
            None if shares else self.now + (0 if rate == inf else nearest(grains, int(rate)))
        )

    def _put(self, transfer: Transfer) -> None:
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
