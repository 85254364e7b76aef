"""The start of strategies with a table of a row for every client, full or empty at the first step.

ACE, ACED, AFA-CS and MIFA derive from `TableStrategy`; their rows are in `caches`.

Fixed: when the first step is made. Free: `MAX_FULL_MEAN_CLIENTS`, up to rounding.
"""

from collections.abc import Collection, Iterable

from fl_core.strategies.toolkit import Send, Server, Strategy, Update

MAX_FULL_MEAN_CLIENTS = 1000  # with more, the mean of a table is not taken anew at every step


def shared(first: Collection[int], second: Collection[int]) -> list[int]:
    """Return the intersection of two sets, in as many steps as the smaller set has clients."""
    fewer, more = sorted((first, second), key=len)
    return [client for client in fewer if client in more]


class TableStrategy(Strategy):
    """Base of strategies with a row per client: no step before all rows are filled, unless by zeros.

    With `start: first_pass` all clients compute at the first model before anything else is sent. With
    `when_all_heard` clients are sent to as usual, also to compute at the first model once more.
    """

    start: str  # how the table of updates begins

    @property
    def first_pass(self) -> bool:
        return self.start == "first_pass"

    def stalled_by(self, server: Server, gone: Collection[int]) -> list[int]:
        return shared(server.memory.unheard, server.newly_gone)

    def begin(self, server: Server) -> None:
        server.memory.unheard = {} if self.start == "zeros" else dict.fromkeys(range(server.n))

    def complete(self, server: Server, *updates: Update) -> bool:
        """Note updates; return whether every row needed for the start is filled."""
        for update in updates:
            server.memory.unheard.pop(update.client, None)
        return not server.memory.unheard

    def next(self, server: Server) -> Iterable[int | Send]:
        if self.start == "when_all_heard" and self.concurrency is None:
            return list(server.idle)
        return super().next(server)
