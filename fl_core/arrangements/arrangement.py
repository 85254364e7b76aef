"""The arrangement interface: a scenario that itself decides which client works on which version."""

from collections.abc import Iterable
from typing import ClassVar

from fl_core.parts import Count, Part
from fl_core.server.jobs import Send
from fl_core.server.server import Server


class Arrangement(Part):
    """A scenario's rule for sends, in the place of the strategy's `next`: the strategy only aggregates."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.arrangements",)

    history: Count = 1  # versions kept, the newest included

    def check(self, n: int) -> None:
        """Raise FieldError unless its values fit n clients."""

    def next(self, server: Server) -> Iterable[int | Send]:
        """Return the clients that work next, and the versions they get."""
        raise NotImplementedError
