"""A strategy of a user's own with an error in it."""

from fl_core.jobs import Update
from fl_core.server import Server
from fl_core.strategies.asgd import ASGD


class Broken(ASGD):
    """Asynchronous SGD that raises at its third update."""

    title = "Broken"

    def receive(self, server: Server, update: Update) -> None:
        if server.updates == 3:
            raise RuntimeError("it is broken")
        super().receive(server, update)
