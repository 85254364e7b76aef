"""A worker process: tasks come through a pipe, messages about them go back; it dies with its driver."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from benchmarks.attempt import Leave
from benchmarks.computing import Computer
from benchmarks.messages import Advanced, BegunAnew, Finished, Room
from benchmarks.tasks import RunTask, Task
from benchmarks.tracking.outbox import Outbox

LOOK_EVERY = 0.02  # seconds between two looks for more runs; a look takes as long as a local step


class Stop:
    """The driver's wish that this process ends (SIGTERM): at once, unless a run may save itself first."""

    def __init__(self) -> None:
        self.asked = False
        self._deferred = False
        signal.signal(signal.SIGTERM, self._ask)

    @contextmanager
    def deferred(self, possible: bool) -> Iterator[None]:
        """Inside, someone looks at `asked`, if that is possible."""
        self._deferred = possible
        try:
            yield
        finally:
            self._deferred = False

    def _ask(self, *_: object) -> None:
        self.asked = True
        if not self._deferred:
            os._exit(0)


def serve(pipe: Connection, outbox: Outbox, log: Path, provenance: dict[str, Any]) -> None:
    """The process's main function: compute what comes, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches everyone, and the driver decides
    stop = Stop()
    threading.Thread(target=_die_with_the_driver, daemon=True).start()
    _write_output_to(log)
    torch.set_num_threads(1)

    def tell(task: Task, message: Advanced | BegunAnew | Room | Finished) -> None:
        try:
            pipe.send((task.key, message))
        except OSError:  # the driver is gone; that is no error of the run's
            os._exit(1)

    looked = monotonic()

    def more() -> RunTask | None:
        nonlocal looked
        if monotonic() < looked + LOOK_EVERY:
            return None
        if pipe.poll():
            return pipe.recv()  # and look again at once
        looked = monotonic()
        return None

    computer = Computer(outbox, provenance, tell, lambda: stop.asked, more)
    while not stop.asked:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            with stop.deferred(isinstance(task, RunTask)):
                for ended, finished in computer.work(task):
                    tell(ended, finished)
        except Leave:
            return


def _die_with_the_driver() -> None:
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)


def _write_output_to(log: Path) -> None:
    """What libraries print must not disturb the driver's display."""
    with log.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
