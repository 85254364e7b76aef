"""Clients as local processes: the transport of `asyncfl live`, over pipes.

Free: how processes are started and asked; no replay depends on it.
"""

import multiprocessing
import signal
from collections import deque
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Any

import torch

from fl_core.experiment import Experiment
from fl_core.import_guard import UserPackages, own_packages
from fl_core.live.client import READY, ClientError, Signal, serve
from fl_core.live.transport import JobMessage, LostClients, UpdateMessage
from fl_core.problems.supervised import Supervised

# Modules that import torch and Lightning, which takes seconds: loaded once, before processes are forked.
TORCH, LIGHTNING = "fl_core.live.client", "fl_core.problems.training.centralised_baseline"
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


class LocalProcesses:
    """Local processes for a run's clients: client i is served by process i mod `processes`.

    The constructor returns when all processes have built the world, so that no job waits for data.

    Raises:
        RuntimeError: A process ended before it was ready.
        ClientError: The experiment's code failed in a process, now or later.
    """

    def __init__(self, experiment: Experiment, processes: int) -> None:
        problem = experiment.scenario.problem
        self.n = problem.clients
        multiprocessing.set_forkserver_preload(
            [TORCH, *([LIGHTNING] if isinstance(problem, Supervised) else [])]
        )
        context: Any = multiprocessing.get_context(METHOD)
        self.processes, self.pipes, self.senders = [], [], []
        self._received: deque[UpdateMessage | LostClients] = deque()
        for _ in range(min(processes, self.n)):
            pipe, theirs = context.Pipe()
            self.processes.append(self._start(context, theirs))
            self.pipes.append(pipe)
            self.senders.append(sender := Sender(pipe))
            sender.outgoing.put(experiment)
        try:
            for pipe in self.pipes:
                assert _answer(pipe) == READY
        except ClientError:
            self.stop()
            raise
        except (EOFError, OSError):
            self.stop()
            raise RuntimeError("a client process ended before it was ready") from None

    def send(self, message: JobMessage) -> None:
        """Send a job to the client's process."""
        self._put(message.client, message.pack())

    def dismiss(self, client: int, index: int) -> None:
        """Let a client drop a job."""
        self._put(client, (Signal.DISMISS, (client, index)))

    def collect(self, client: int, index: int) -> None:
        """Let a client answer at once."""
        self._put(client, (Signal.COLLECT, (client, index)))

    def poll(self, timeout: float) -> UpdateMessage | LostClients | None:
        """Return the next message of any process."""
        if not self._received:
            if not (open_pipes := [pipe for pipe in self.pipes if not pipe.closed]):
                sleep(timeout)
            for pipe in connection.wait(open_pipes, timeout) if open_pipes else ():
                self._received.append(self._receive(pipe))
        return self._received.popleft() if self._received else None

    def stop(self) -> None:
        """End all processes."""
        for sender, process in zip(self.senders, self.processes, strict=True):
            process.kill()  # client processes hold no state worth saving
            process.join()
            sender.close()

    def _start(self, context: Any, pipe: Connection) -> Any:
        """Start a process at the end of a pipe."""
        process = context.Process(target=_main, args=(pipe, own_packages()), daemon=True)
        process.start()
        pipe.close()  # so that the death of the process ends the pipe
        return process

    def _put(self, client: int, content: Any) -> None:
        """Queue a message to a client's process."""
        self.senders[client % len(self.senders)].outgoing.put(content)

    def _receive(self, pipe: Any) -> UpdateMessage | LostClients:
        """Return the next message from a pipe; all clients of an ended process are lost."""
        try:
            return UpdateMessage.unpack(_answer(pipe))
        except (EOFError, OSError):
            self.senders[first := self.pipes.index(pipe)].close()
            return LostClients(range(first, self.n, len(self.pipes)))


class Sender(Thread):
    """Thread that sends to a process, since two sides writing into full pipes would wait for ever."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__(daemon=True)
        self.pipe, self.outgoing = pipe, SimpleQueue[Any]()
        self.start()

    def run(self) -> None:
        """Send the queue's messages, until None or the end of the process at the other end."""
        with suppress(OSError):
            while (content := self.outgoing.get()) is not None:
                self.pipe.send(content)

    def close(self) -> None:
        """Close the pipe after the last message: bytes sent later could reach a reused descriptor."""
        self.outgoing.put(None)
        self.join()
        self.pipe.close()


def _answer(pipe: Connection) -> bytes:
    """Return a process's message; raise ClientError for an error."""
    answer: bytes | ClientError = pipe.recv()
    if isinstance(answer, ClientError):
        raise answer
    return answer


def _main(pipe: Connection, packages: UserPackages | None) -> None:
    """Run a process of clients; `packages` finds the user's code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the server handles it
    if packages is not None:
        packages.install()
    torch.set_num_threads(1)
    serve(pipe)
