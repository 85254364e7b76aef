"""Departures and returns of clients, from the scenario's law of availability (docs/rules.md, rule 9).

`Simulation` schedules the first absence of each client, and calls `leave` and `come_back` when these happen.

Fixed: the ticks, on which all later events depend.
"""

from collections.abc import Sequence
from itertools import islice

from fl_core.loop.events import EventKind
from fl_core.loop.state import RunState
from fl_core.timing.availability import Availability, checked
from fl_core.timing.clock import VirtualClock


class Absences:
    """The absences of n clients, read from the law one by one.

    The iterators are not saved. How many absences were read from each is in `RunState`, for `resume`.
    """

    def __init__(
        self,
        law: Availability,
        state: RunState,
        clock: VirtualClock,
        n: int,
        seed: int,
        *,
        ids: Sequence[str] | None = None,
    ) -> None:
        self._state, self._clock = state, clock
        self._of_clients = [checked(law, client, n, seed, ids) for client in range(n)]

    def resume(self) -> None:
        """Skip the absences that were read before the checkpoint."""
        for absences, read in zip(self._of_clients, self._state.absences_read, strict=True):
            next(islice(absences, read, read), None)

    def schedule(self, client: int) -> None:
        """Queue a client's next departure, with the time of return."""
        absence = next(self._of_clients[client], None)
        if absence is None:
            return
        state, clock = self._state, self._clock
        state.absences_read[client] += 1
        leaves, returns = absence
        at = max(state.now, clock.round(leaves) if leaves > 0 else 0)
        back = None if returns is None else max(at + 1, clock.round(returns))
        state.queue.push(at, EventKind.PRESENCE, client, back)

    def leave(self, client: int, returns: int | None) -> None:
        """Mark a client as absent, without a call of the strategy; a job in service goes on (9)."""
        state = self._state
        state.roster.leave(client)
        if returns is None:
            state.lose(client)
        else:
            state.returns += 1
            state.queue.push(returns, EventKind.PRESENCE, client, None)

    def come_back(self, client: int) -> None:
        """Mark a client as present, and queue the next absence."""
        state = self._state
        state.returns -= 1
        state.roster.come_back(client, free=client not in state.flight, version=state.version)
        self.schedule(client)

    def lose(self, client: int) -> None:
        """Mark a client as gone for good, whether present or absent (23)."""
        state = self._state
        moves = state.queue.remove(EventKind.PRESENCE, client)
        if state.roster.present[client]:
            self.leave(client, returns=None)
        elif moves:
            state.returns -= 1
            state.lose(client)
