"""The start of strategies that keep a row for every client, some of which wait until all rows are filled."""

from collections.abc import Collection, Iterable

from fl_core.strategies.author import Send, Server, Strategy, Update


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
        return [client for client in server.memory.unheard if client in gone]

    def begin(self, server: Server) -> None:
        server.memory.unheard = [] if self.start == "zeros" else list(range(server.n))

    def complete(self, server: Server, *updates: Update) -> bool:
        """Note updates; return whether every row that the start waits for is filled."""
        for update in updates:
            if update.client in server.memory.unheard:
                server.memory.unheard.remove(update.client)
        return not server.memory.unheard

    def next(self, server: Server) -> Iterable[int | Send]:
        if self.start == "when_all_heard" and self.concurrency is None:
            return list(server.idle)
        return super().next(server)
