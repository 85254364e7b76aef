"""Delays that are counted in server iterations (a reading of arXiv 2511.19066, 2025, §5)."""

from collections.abc import Iterable
from typing import ClassVar

from fl_core.arrangements.arrangement import Arrangement
from fl_core.parts import Count, Rate
from fl_core.server.jobs import Send
from fl_core.server.server import Server


class IterationDelay(Arrangement):
    """Delay counted in server iterations, ⌊Exp(β)⌋ versions back (a reading of arXiv 2511.19066, 2025, §5).

    One client at a time, uniformly drawn, with the model of that many versions ago, or the oldest kept.
    """

    name: ClassVar[str] = "iteration_delay"

    mean: Rate = 5.0  # β, mean delay in server iterations
    history: Count = 500

    def label(self) -> str:
        """Return the delay in words."""
        return f"Exp({self.mean:g}) iterations late"

    def next(self, server: Server) -> Iterable[Send]:
        if server.in_flight:
            return []
        delay = int(server.stream("iteration_delay", server.updates).exponential(self.mean))
        version = server.version - min(delay, server.version, self.history - 1)
        return [Send(client, version=version) for client in server.draw(1)]
