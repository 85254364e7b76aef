"""Worker processes, each given a task, or runs to go on side by side; one that dies is replaced.

How many runs go on together in a worker is its own finding (`Room`): the first of a kind goes alone. What a
worker was at when it died is taken up again, each task by itself, so that one that kills its workers is given
up alone.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Generator, Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from multiprocessing import connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.messages import Advanced, BegunAnew, Died, Finished, Room
from benchmarks.recording import Recording
from benchmarks.tasks import Task
from benchmarks.tracking.outbox import Outbox
from benchmarks.worker import serve

DEATHS = 3  # of a task's workers, after which it is given up
PATIENCE = 15.0  # seconds that workers have to save their runs when all is stopped
PULSE = 0.25  # seconds between two messages at most


class Worker:
    """The driver's side of one worker process."""

    def __init__(self, context: ForkServerContext, arguments: tuple[Any, ...]) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()  # so that its death ends the pipe
        self.tasks: dict[str, Task] = {}  # by key

    def give(self, task: Task) -> None:
        """Let it compute a task, beside those that it has."""
        self.tasks[task.key] = task
        with suppress(OSError):  # it has died; whoever listens to it will learn that
            self.pipe.send(task)

    def hear(self) -> tuple[str, Advanced | BegunAnew | Room | Finished] | Died:
        """Its next message, and the key of the task that it is about; waits for one."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            return Died(f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}")


class Runner:
    """Works through tasks with a number of processes; results do not depend on it."""

    def __init__(self, outbox: Outbox, size: int, log: Path, provenance: dict[str, Any]) -> None:
        self.outbox, self.size, self.log, self.provenance = outbox, size, log, provenance
        self.workers: list[Worker] = []
        self._context = multiprocessing.get_context("forkserver")
        self._deaths: dict[str, int] = {}  # by task
        self._room: dict[Hashable, int] = {}  # by likeness

    def work(
        self, tasks: Sequence[Task]
    ) -> Generator[tuple[Task, Advanced | BegunAnew | Finished | Died] | None]:
        """Compute all tasks; yields what is heard of each, and None where nothing is for a while.

        Closing the generator stops everyone: runs in progress are saved, and the rest is left.
        """
        waiting = deque(tasks)
        try:
            while self._employ(waiting):
                ready = connection.wait([worker.pipe for worker in self.workers], PULSE)
                if not ready:
                    yield None
                for worker in [worker for worker in self.workers if worker.pipe in ready]:
                    yield from self._heard(worker, waiting)
        finally:
            self._stop()

    def _employ(self, waiting: deque[Task]) -> bool:
        """Give everyone something to do; False if nothing is left."""
        for worker in self.workers:
            if waiting and not worker.tasks:
                worker.give(waiting.popleft())
        while waiting and len(self.workers) < self.size:
            worker = Worker(self._context, (self.outbox, self.log, self.provenance))
            self.workers.append(worker)
            worker.give(waiting.popleft())
        for worker in self.workers:
            self._accompany(worker, waiting)
        return any(worker.tasks for worker in self.workers)

    def _accompany(self, worker: Worker, waiting: deque[Task]) -> None:
        """Give it runs like those that it is at, as many as gain by it and leave the others their share."""
        if not waiting or not worker.tasks:
            return
        likeness = self._likeness(next(iter(worker.tasks.values())))
        everything = len(waiting) + sum(len(one.tasks) for one in self.workers)
        room = min(self._room.get(likeness, 1), everything // self.size) - len(worker.tasks)
        if likeness is not None and room > 0:
            for task in list(islice((one for one in waiting if self._likeness(one) == likeness), room)):
                waiting.remove(task)
                worker.give(task)

    def _likeness(self, task: Task) -> Hashable:
        """Runs of equal likeness may go on side by side; None for what goes alone."""
        return None if self._deaths and task.key in self._deaths else task.likeness

    def _heard(
        self, worker: Worker, waiting: deque[Task]
    ) -> Iterator[tuple[Task, Advanced | BegunAnew | Finished | Died]]:
        heard = worker.hear()
        if isinstance(heard, Died):
            self.workers.remove(worker)
            worker.pipe.close()
            for task in reversed(worker.tasks.values()):
                yield task, self._again(task, heard, waiting)
            return
        key, message = heard
        task = worker.tasks[key]
        if isinstance(message, Room):
            self._room[task.likeness] = message.runs
            return
        if isinstance(message, Finished):
            del worker.tasks[key]
        yield task, message

    def _again(self, task: Task, death: Died, waiting: deque[Task]) -> Died | Finished:
        deaths = self._deaths[task.key] = self._deaths.get(task.key, 0) + 1
        if deaths < DEATHS:
            waiting.appendleft(task)
            return death
        reason = f"its worker process died {deaths} times ({death.how}); see {self.log}"
        return Finished.of(Recording(self.outbox, task, self.provenance).failed(reason))

    def _stop(self) -> None:
        try:
            for worker in self.workers:
                worker.process.terminate()  # whoever simulates saves its run first
            end = monotonic() + PATIENCE
            for worker in self.workers:
                worker.process.join(max(0.0, end - monotonic()))
        finally:  # out of patience, or Ctrl-C once more
            for worker in self.workers:
                worker.process.kill()
                worker.pipe.close()
            self.workers.clear()
