"""Strategies of a user's own, named in suites by `sluggish:Slow`: slow, failing, deadly and mistaken ones."""

import os
import signal
import time
from collections import deque
from pathlib import Path

from fl_core.parts import Count
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.strategy import Strategy


class Slow(ASGD):
    """Asynchronous SGD on a server that takes its time."""

    title = "Slow"
    pause: float = 0.001  # seconds of real time, for each update

    def receive(self, server: Server, update: Update) -> None:
        time.sleep(self.pause)
        super().receive(server, update)


FREE: dict[int, bool] = {}  # by a run's server: whether it is not held


class Held(ASGD):
    """Asynchronous SGD that does not come to its end before the file `go` is there.

    Until then it goes on slowly up to some update, and then waits, as the file `go.waits` tells; but for the
    first runs, which are not held.
    """

    title = "Held"
    go: str
    at: Count = 30  # updates of 0.1 s: longer than from one checkpoint to the next
    free: int = 0  # runs that are not held

    def begin(self, server: Server) -> None:
        FREE[id(server)] = any(_created(Path(f"{self.go}.{number}")) for number in range(self.free))

    def receive(self, server: Server, update: Update) -> None:
        go = Path(self.go)
        if not go.exists() and not FREE.get(id(server)):
            time.sleep(0.1)
            while server.updates > self.at and not go.exists():
                Path(f"{self.go}.waits").touch()
                time.sleep(0.1)
        super().receive(server, update)


def _created(path: Path) -> bool:
    """Whether nobody else has created it."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Failing(ASGD):
    """Asynchronous SGD with an error in it, as long as the file `mended` is not there."""

    title = "Failing"
    mended: str

    def receive(self, server: Server, update: Update) -> None:
        if server.updates == 20 and not Path(self.mended).exists():
            raise RuntimeError("the twentieth update\nis one too many")
        super().receive(server, update)


class Deadly(ASGD):
    """Asynchronous SGD that kills its process `deaths` times; each leaves a line in the file `tally`."""

    title = "Deadly"
    deaths: Count
    tally: str

    def receive(self, server: Server, update: Update) -> None:
        if server.updates == 20:
            with Path(self.tally).open("a+") as file:
                file.seek(0)
                if len(file.readlines()) < self.deaths:
                    file.write(f"{os.getpid()}\n")
                    file.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
        super().receive(server, update)


class Deaf(Strategy):
    """A strategy that does not say what becomes of an update."""

    title = "Deaf"


class Hoarding(ASGD):
    """Asynchronous SGD that keeps what no checkpoint can hold."""

    title = "Hoarding"

    def begin(self, server: Server) -> None:
        server.memory.seen = {"newest": deque([0], maxlen=3)}


class Scribbling(ASGD):
    """Asynchronous SGD that adds to the model in place."""

    title = "Scribbling"

    def receive(self, server: Server, update: Update) -> None:
        server.model.add_(update.delta)
        server.step()
