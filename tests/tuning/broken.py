"""A strategy of a user's own with an error in it."""

from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.every_arrival.asgd import ASGD


class Broken(ASGD):
    """Asynchronous SGD that raises at its third update."""

    title = "Broken"

    def receive(self, server: Server, update: Update) -> None:
        if server.updates == 3:
            raise RuntimeError("it is broken")
        super().receive(server, update)
