"""Parts of a user's own: strategies with an error and that kill their process, a problem without a value."""

import os
import signal
from math import nan

from fl_core.problems.quadratic import Quadratic, QuadraticWorld
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.asgd import ASGD


class Broken(ASGD):
    """Asynchronous SGD that raises at its third update."""

    title = "Broken"

    def receive(self, server: Server, update: Update) -> None:
        if server.updates == 3:
            raise RuntimeError("it is broken")
        super().receive(server, update)


class Blind(Quadratic):
    """Quadratics whose metrics are not numbers, at the first model neither."""

    def world(self, seed: int) -> QuadraticWorld:
        world = super().world(seed)
        world.optimum = world.optimum * nan
        return world


class Deadly(ASGD):
    """Asynchronous SGD that kills its process under one local rate."""

    title = "Deadly"
    fatal: float

    def receive(self, server: Server, update: Update) -> None:
        if self.local_lr == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        super().receive(server, update)
