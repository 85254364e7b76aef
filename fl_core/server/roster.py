"""Present, idle and due clients: each change in constant time, without scans (docs/architecture.md, 4, 9)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any


class Roster:
    """The clients that are present, idle and due.

    *idle*: present and without a job. *due*: idle, and the last update came before the latest step (or the
    last job was dismissed, or it has had none yet). *waiting*: idle, and no step was made since the last
    update.
    """

    def __init__(self, n: int) -> None:
        self.present = [True] * n
        self.absent = 0  # how many are not present
        self.moves = 0  # departures and returns so far
        self.idle = list(range(n))
        self.due: dict[int, None] = dict.fromkeys(self.idle)  # an ordered set
        self.waiting: dict[int, None] = {}
        self._place = self.idle.copy()  # position in `idle`, −1 if not there
        self._last_update_version = [-1] * n  # server version at the last update, −1: due in any case

    def everyone(self) -> Sequence[int]:
        """Return the present clients, in order."""
        if not self.absent:
            return range(len(self.present))
        return [client for client, here in enumerate(self.present) if here]

    def release(self, client: int, last_update_version: int) -> None:
        """Free a client whose last job left flight at this server version; −1 if the job was dismissed."""
        self._last_update_version[client] = last_update_version
        if self.present[client]:
            self._in(client, last_update_version < 0)

    def step(self) -> None:
        """Make waiting clients due: the server stepped."""
        if self.waiting:
            self.due.update(self.waiting)
            self.waiting.clear()

    def leave(self, client: int) -> None:
        """Note that a client left; a job in service continues."""
        self.present[client] = False
        self.absent += 1
        self.moves += 1
        self.engage(client)

    def come_back(self, client: int, free: bool, version: int) -> None:
        """Note that a client is back, at server version `version`; `free` if without a job."""
        self.present[client] = True
        self.absent -= 1
        self.moves += 1
        if free:
            self._in(client, self._last_update_version[client] < version)

    def _in(self, client: int, due: bool) -> None:
        self._place[client] = len(self.idle)
        self.idle.append(client)
        (self.due if due else self.waiting)[client] = None

    def engage(self, client: int) -> None:
        """Note that a client got a job, or left: it is no longer idle."""
        place = self._place[client]
        if place < 0:
            return
        last = self.idle.pop()
        if last != client:
            self.idle[place] = last
            self._place[last] = place
        self._place[client] = -1
        self.due.pop(client, None)
        self.waiting.pop(client, None)

    def state(self) -> dict[str, Any]:
        """Return the whole roster as numbers, lists and dicts."""
        return deepcopy(vars(self))

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Roster:
        """Return the roster that `state` was taken from."""
        roster = cls(0)
        vars(roster).update(state)
        return roster
