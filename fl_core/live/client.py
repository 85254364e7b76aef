"""A client's side of a run in real time: local work on the received model, then a wait for the job's length.

`processes` starts `serve` in each client process; Flower's ClientApp (`flower`) calls `train`.

Fixed: steps as in `execution/one_by_one.py`, or else no replay equals its run.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum, auto
from heapq import heappop, heappush
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from time import monotonic, time
from typing import Any, Self

from fl_core.execution.one_by_one import work
from fl_core.experiment import Experiment
from fl_core.import_guard import in_a_line
from fl_core.live.transport import JobMessage, UpdateMessage
from fl_core.local_work import LocalWork
from fl_core.problems.problem import World

READY = b"ready"  # the first message: the world is built


class Signal(StrEnum):
    """A server's note on a job in progress."""

    DISMISS = auto()
    COLLECT = auto()


class ServerGoneError(Exception):
    """The server closed the pipe, or its process ended."""


class ClientError(RuntimeError):
    """Failure of code in a client's process, in a line with place; the traceback is a note."""

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the description of a process's error."""
        client_error = cls(in_a_line(error))
        client_error.add_note("".join(traceback.format_exception(error)))
        return client_error


def train(message: JobMessage, world: World, local: LocalWork, steps: int | None = None) -> UpdateMessage:
    """Return the update of a job, computed on the received model.

    Args:
        message: The job.
        world: The problem under the run's seed.
        local: The strategy's local work.
        steps: K, or fewer for a job that is collected.
    """
    began, clock = time(), monotonic()
    job = message.job()
    if steps is not None:
        job.steps = steps
    work(job, world, local)
    return UpdateMessage.of(job, message.start, began=began, computed=monotonic() - clock)


class ClientProcess:
    """The clients of a process: each trains, waits for the rest of the job's length, and answers.

    A job is computed when it arrives; further jobs of the process wait meanwhile.
    """

    def __init__(self, pipe: Connection, world: World, local: LocalWork) -> None:
        self.pipe, self.world, self.local = pipe, world, local
        # (client, index) → the job, its update, and the time of arrival
        self.jobs: dict[tuple[int, int], tuple[JobMessage, UpdateMessage, float]] = {}
        self.due: list[tuple[float, tuple[int, int]]] = []  # heap of answers by the time to send them

    def run(self) -> None:
        """Serve until the server is gone: never returns.

        Raises:
            ServerGoneError: The server is gone.
        """
        while True:
            while self.due and self.due[0][0] <= monotonic():
                self.answer(heappop(self.due)[1])
            with _at_the_pipe():
                comes = self.pipe.poll(max(0.0, self.due[0][0] - monotonic()) if self.due else None)
            if comes:
                match _received(self.pipe):
                    case bytes(content):
                        self.take(JobMessage.unpack(content))
                    case Signal.DISMISS, key:
                        self.jobs.pop(key, None)
                    case Signal.COLLECT, key:
                        self.collect(key)

    def take(self, message: JobMessage) -> None:
        """Compute a job, and keep the update until the end of the job's length."""
        came, key = monotonic(), (message.client, message.index)
        self.jobs[key] = message, train(message, self.world, self.local), came
        if not message.waits:
            heappush(self.due, (came + message.seconds, key))

    def collect(self, key: tuple[int, int]) -> None:
        """Answer with the first steps of a job, as many as are finished by the clock (19)."""
        if key in self.jobs:
            message, update, came = self.jobs[key]
            steps = message.finished(monotonic() - came)
            if steps < message.steps:
                update = train(message, self.world, self.local, steps)
            self.jobs[key] = message, update, came
            self.answer(key)

    def answer(self, key: tuple[int, int]) -> None:
        """Send the update of a job, unless dismissed or collected in the meantime."""
        if key in self.jobs:
            _send(self.pipe, self.jobs.pop(key)[1].pack())


def serve(pipe: Connection) -> None:
    """Serve as the clients at the other end of a pipe, of the first experiment sent, until closed."""
    try:
        experiment: Experiment = _received(pipe)
        world = experiment.scenario.problem.world(experiment.seed)
        _send(pipe, READY)
        ClientProcess(pipe, world, experiment.strategy.local).run()
    except ServerGoneError:
        pass
    except BaseException as error:  # noqa: BLE001 - the server ends the run with any error of a client
        with suppress(ServerGoneError):
            _send(pipe, ClientError.of(error))


@contextmanager
def _at_the_pipe() -> Iterator[None]:
    """Distinguish errors of the pipe from errors of the user's code, possibly of equal classes."""
    try:
        yield
    except (EOFError, OSError):
        raise ServerGoneError from None


def _received(pipe: Connection) -> Any:
    """Return the next message; reading an experiment imports the user's code."""
    with _at_the_pipe():
        content = pipe.recv_bytes()
    return ForkingPickler.loads(content)


def _send(pipe: Connection, content: Any) -> None:
    """Send a message; raise ServerGoneError if the pipe is closed."""
    with _at_the_pipe():
        pipe.send(content)
