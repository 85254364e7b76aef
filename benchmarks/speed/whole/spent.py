"""Processor time of this process by what it was spent on, and of a command with all of its processes."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import process_time
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# The parts of a run.
START, DATA, WORLD, LOCAL = "start", "data", "world", "local work"
SERVER, EVALUATION, CHECKPOINTS = "server and schedule", "evaluation", "checkpoints"
DATABASE, TRACKING, PAGE = "database", "tracking", "page"
PARTS = (START, DATABASE, DATA, WORLD, LOCAL, SERVER, EVALUATION, CHECKPOINTS, TRACKING, PAGE)

PR_SET_CHILD_SUBREAPER = 36  # of prctl(2)


class Spent:
    """Seconds by part, from the start of the process on; a part within another counts as itself alone."""

    def __init__(self, first: str) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._open = [first]
        self._last = 0.0  # where a process begins

    @contextmanager
    def on(self, part: str) -> Iterator[None]:
        """What is done meanwhile is this part."""
        self._lap()
        self._open.append(part)
        try:
            yield
        finally:
            self._lap()
            self._open.pop()

    def timed(self, part: str, function: Callable[P, T]) -> Callable[P, T]:
        """The function as this part."""

        def call(*arguments: P.args, **named: P.kwargs) -> T:
            with self.on(part):
                return function(*arguments, **named)

        return call

    def seconds(self) -> dict[str, float]:
        """Those of each part so far; their sum is the processor time of the process."""
        self._lap()
        return dict(self._seconds)

    def _lap(self) -> None:
        now = process_time()
        self._seconds[self._open[-1]] += now - self._last
        self._last = now


def of_command(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """Processor time of a command and all processes that it starts, in seconds. Linux only.

    To be called in a process without children. Those that outlive the command are waited for: they become
    this process's children. RuntimeError with its output if it fails.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = _of_children()
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments[-1]}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return _of_children() - before


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
