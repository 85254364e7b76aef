"""Functions in forked children of a process that has imported the libraries.

Importing torch, SciPy and pytest takes longer than most mutants live; here it is paid once.
"""

import contextlib
import gc
import importlib
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any

from tests.mutants.imports import import_all
from tests.mutants.targets import LIBRARIES

MEMORY = 8 * 2**30  # bytes that a child may allocate: a loop without end must not take the machine along


@dataclass
class Job:
    """A call in a child: `call(*arguments)` within `limit` seconds; `name` says whose result it is."""

    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    limit: float = float("inf")


@dataclass
class _Child:
    job: Job
    process: Any
    pipe: connection.Connection
    until: float


def warm_up() -> None:
    """Import the libraries and the project; what is not installed is left to the tests."""
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    import_all()
    gc.freeze()  # the children's collections need not look at them


def results(next_job: Callable[[], Job | None], workers: int, deadline: float) -> Iterator[tuple[str, Any]]:
    """(name, result) of each job as it ends; None is the result if the child died or its limit has passed.

    `next_job` is asked whenever a worker is free. At the deadline (of `time.monotonic`) what still runs is
    stopped and has no result.
    """
    running: list[_Child] = []
    try:
        while time.monotonic() < deadline:
            while len(running) < workers and (job := next_job()) is not None:
                running.append(_start(job))
            if not running:
                return
            until = min(deadline, *(child.until for child in running))
            ready = connection.wait([child.pipe for child in running], max(0.0, until - time.monotonic()))
            now = time.monotonic()
            for child in [child for child in running if child.pipe in ready or child.until <= now]:
                running.remove(child)
                result = None
                if child.pipe in ready:
                    with contextlib.suppress(EOFError):
                        result = child.pipe.recv()
                _stop(child)
                yield child.job.name, result
    finally:
        for child in running:
            _stop(child)


def _start(job: Job) -> _Child:
    ours, theirs = connection.Pipe(duplex=False)
    process = get_context("fork").Process(target=_run, args=(job, theirs))
    process.start()
    theirs.close()
    return _Child(job, process, ours, time.monotonic() + job.limit)


def _run(job: Job, pipe: connection.Connection) -> None:
    """In the child: a process group of its own, and nothing on the terminal."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    pipe.send(job.call(*job.arguments))
    pipe.close()
    os._exit(0)  # no clean-up of what the parent owns, too


def _stop(child: _Child) -> None:
    """The child and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.process.pid, signal.SIGKILL)
    child.process.kill()
    child.process.join()
    child.pipe.close()
