"""Strategies of a user's own: one with an error in it, one that kills its process."""

import os
import signal

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


class Deadly(ASGD):
    """Asynchronous SGD that kills its process under one local rate."""

    title = "Deadly"
    fatal: float

    def receive(self, server: Server, update: Update) -> None:
        if self.local_lr == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        super().receive(server, update)
