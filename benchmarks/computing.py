"""How tasks are computed: simulated or trained, saved now and then, and left as records in the outbox."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

from benchmarks import device
from benchmarks.attempt import Attempt
from benchmarks.messages import Advanced, BegunAnew, Finished, Room, one_line
from benchmarks.recording import Recording
from benchmarks.side_by_side import SideBySide
from benchmarks.stopwatch import Clock
from benchmarks.tasks import PooledTask, RunTask, Task
from benchmarks.tracking.outbox import Outbox
from fl_core.execution.auto import Auto
from fl_core.execution.one_by_one import Execution, OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.problems.problem import Problem, World

EXECUTIONS: dict[str, Callable[[], Execution]] = {
    "one_by_one": OneByOne,
    "all_in_flight": AllInFlight,
    "auto": Auto,
}


class Computer:
    """Computes tasks; runs of one problem and seed share a world, and the last one is kept for the next."""

    def __init__(
        self,
        outbox: Outbox,
        provenance: dict[str, Any],
        tell: Callable[[Task, Advanced | BegunAnew | Room], None] = lambda *_: None,
        leave: Callable[[], bool] = lambda: False,
        more: Callable[[], RunTask | None] = lambda: None,
    ) -> None:
        self.outbox, self.provenance = outbox, provenance
        self.tell, self.leave, self.more = tell, leave, more
        self._clock = Clock()
        self._worlds: WeakValueDictionary[tuple[Problem, int], World] = WeakValueDictionary()
        self._last: World | None = None

    def compute(self, task: Task) -> Finished:
        """Leave the task's record in the outbox; raises Leave, with a checkpoint written, if `leave()`."""
        ((_, finished),) = self.work(task)
        return finished

    def work(self, task: Task) -> Iterator[tuple[Task, Finished]]:
        """Compute a task and, side by side with it, those that `more()` brings; yields each as it ends.

        `more` is asked while there is room for runs like this one, which `tell` is told. Raises Leave, with
        checkpoints written, if `leave()`.
        """
        self._clock.lap()  # nobody's
        if isinstance(task, PooledTask):
            yield task, self._known(task) or self._pooled(task)
            return
        runs = SideBySide(EXECUTIONS[task.run.execution](), self._clock)
        entering: RunTask | None = task
        room = 1
        while entering or runs.opened:
            if entering and (known := self._known(entering)):
                yield entering, known
            elif entering:
                runs.add(self._attempt(entering))
            yield from runs.advance()
            if runs.opened and runs.room != room:
                room = runs.room
                self.tell(runs.opened[0].task, Room(room))
            entering = self.more() if 0 < len(runs.opened) < room else None

    def _known(self, task: Task) -> Finished | None:
        """A record that is there already, from a worker that died before it could say so."""
        stored = self.outbox.get(task.suite, task.key)
        return Finished.of(stored.result) if stored else None

    def _pooled(self, task: PooledTask) -> Finished:
        self.tell(task, Advanced(0.0))
        recording = Recording(self.outbox, task, self.provenance)
        try:
            metrics = task.problem.pooled(task.seed, device.chosen())
        except Exception as error:  # noqa: BLE001 - one task's error is recorded, and the others go on
            return Finished.of(recording.failed(one_line(error), traceback.format_exc()))
        recording.watch.here += self._clock.lap()
        return Finished.of(recording.trained(metrics), metrics.get(task.problem.metric))

    def _attempt(self, task: RunTask) -> Attempt:
        saved = self.outbox.checkpoint(task.suite, task.key)
        saved.parent.mkdir(parents=True, exist_ok=True)
        recording = Recording(self.outbox, task, self.provenance)
        return Attempt(
            task,
            recording,
            saved,
            self._clock,
            build=self._world_of,
            tell=self.tell,
            leave=self.leave,
        )

    def _world_of(self, task: RunTask) -> World:
        key = task.problem, task.seed
        world = self._worlds.get(key)
        if world is None:
            self._last = None  # a world that nobody uses is not held beside the new one
            world = self._worlds[key] = device.place(task.problem.world(task.seed))
        self._last = world
        return world
