"""The present, idle and due clients of a run (docs/rules.md, rules 4 and 9).

Part of `RunState`: the loop moves clients, and `Server` reads the lists for strategies. Each change takes
constant time, for runs with a million clients.

Fixed: the order of clients in each list, since draws take a client by its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from fl_core.server.block_sums import BlockSums, probabilities

Weights = tuple[float, ...]  # of all clients [n]
DERIVED = ("_by_presence", "_present", "_idle")  # made when needed, and not saved


class Roster:
    """The present, idle and due clients.

    *idle*: present and without a job. *due*: idle, and the last update came before the latest step (or the
    last job was dismissed, or it has had none yet). *waiting*: idle, and no step was made since the last
    update. The order of `idle` is saved and decides draws: keep it when you change this class.
    """

    def __init__(self, n: int) -> None:
        self.present = [True] * n
        self.absent = 0  # how many are not present
        self.idle = list(range(n))
        self.due: dict[int, None] = dict.fromkeys(self.idle)  # an ordered set
        self.waiting: dict[int, None] = {}
        self._place = self.idle.copy()  # position in `idle`, −1 if not there
        self._last_update_version = [-1] * n  # server version at the last update, −1: due in any case
        self._by_presence: BlockSums | None = None  # 1 for each present client
        # Weights of all clients, and their sums over present clients by client, or over idle ones by place
        self._present: tuple[Weights, BlockSums] | None = None
        self._idle: tuple[Weights, BlockSums] | None = None

    def everyone(self) -> Sequence[int]:
        """Return the present clients, in order."""
        if not self.absent:
            return range(len(self.present))
        return [client for client, is_present in enumerate(self.present) if is_present]

    def present_at(self, place: int) -> int:
        """Return the client at a place among present clients, in order."""
        if not self.absent:
            return int(place)
        if self._by_presence is None:
            self._by_presence = BlockSums(np.array(self.present, float))
        interval = self._by_presence.find(place)
        assert interval is not None
        return interval.place

    def present_weights(self, weights: Weights) -> BlockSums:
        """Return the sums of weights of present clients, by client; cached for an identical tuple."""
        if self._present is None or self._present[0] is not weights:
            self._present = weights, BlockSums(np.where(self.present, probabilities(weights), 0))
        return self._present[1]

    def idle_weights(self, weights: Weights) -> BlockSums:
        """Return the sums of weights of idle clients, by place in `idle`; cached for an identical tuple."""
        if self._idle is None or self._idle[0] is not weights:
            by_place = np.zeros(len(self.present))
            by_place[: len(self.idle)] = probabilities(weights)[self.idle]
            self._idle = weights, BlockSums(by_place)
        return self._idle[1]

    def _move(self, client: int, present: bool) -> None:
        """Change a client's presence, and the sums over present clients."""
        self.present[client] = present
        self.absent += -1 if present else 1
        if self._by_presence is not None:
            self._by_presence[client] = float(present)
        if self._present is not None:
            weights, sums = self._present
            sums[client] = weights[client] if present else 0.0

    def release(self, client: int, last_update_version: int) -> None:
        """Free a client after the last job left flight at a server version; −1 if the job was dismissed."""
        self._last_update_version[client] = last_update_version
        if self.present[client]:
            self._add_idle(client, last_update_version < 0)

    def step(self) -> None:
        """Make waiting clients due: the server stepped."""
        if self.waiting:
            self.due.update(self.waiting)
            self.waiting.clear()

    def leave(self, client: int) -> None:
        """Record the departure of a client; a job in service continues."""
        self._move(client, present=False)
        self.engage(client)

    def come_back(self, client: int, free: bool, version: int) -> None:
        """Record the return of a client at server version `version`; `free` if without a job."""
        self._move(client, present=True)
        if free:
            self._add_idle(client, self._last_update_version[client] < version)

    def _add_idle(self, client: int, due: bool) -> None:
        """Append a client to the idle clients, as due or waiting."""
        place = self._place[client] = len(self.idle)
        self.idle.append(client)
        if self._idle is not None:
            weights, sums = self._idle
            sums[place] = weights[client]
        (self.due if due else self.waiting)[client] = None

    def engage(self, client: int) -> None:
        """Mark a client as no longer idle, because of a new job or a departure."""
        place = self._place[client]
        if place < 0:
            return
        last = self.idle.pop()
        if last != client:
            self.idle[place] = last
            self._place[last] = place
        self._place[client] = -1
        if self._idle is not None:
            weights, sums = self._idle
            sums[place], sums[len(self.idle)] = weights[last], 0.0
        if client not in self.due:
            self.waiting.pop(client, None)
        elif len(self.due) > 1:
            del self.due[client]
        else:
            self.due.clear()  # `del` leaves a hole in the dict for each removed client; this frees all holes

    def state(self) -> dict[str, Any]:
        """Return the whole roster as numbers, lists and dicts."""
        return deepcopy({name: value for name, value in vars(self).items() if name not in DERIVED})

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Roster:
        """Return the roster with a saved `state`."""
        roster = cls(0)
        vars(roster).update(state)
        return roster
