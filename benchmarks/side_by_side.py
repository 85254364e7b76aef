"""Runs side by side in one process: they share calls, and nothing else.

Those that are open go on in turn, each until it needs a result; what all of them need is computed together.
Each is saved, timed and recorded by itself, and fails by itself. A shared call's time is charged to them by
how many jobs of each it has computed: but for the writing of records, the times of all runs add up to that of
the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.attempt import Attempt, Leave
from benchmarks.messages import Finished
from benchmarks.stopwatch import Clock
from benchmarks.tasks import RunTask
from fl_core.execution.auto import Auto, largest
from fl_core.execution.one_by_one import Execution, OneByOne

AT_ONCE = {"cpu": 8, "cuda": 64}  # runs at most
HELD = 4  # models for each client that a run may hold: a start, an update, its gradient, a row of a table


class SideBySide:
    """Runs of one problem and one kind of local work."""

    def __init__(self, execution: Execution, clock: Clock) -> None:
        self.execution, self.clock = execution, clock
        self.opened: list[Attempt] = []
        self._most: int | None = None  # that fit into memory, once a world is there

    def add(self, attempt: Attempt) -> None:
        """Another one."""
        self.opened.append(attempt)
        for one in self.opened:
            one.together = max(one.together, len(self.opened))

    @property
    def room(self) -> int:
        """How many there may be: no more than fit into memory, and one until it is known that company pays.

        Under `auto` the first of a kind goes alone until it has measured that stacks are faster. Where they
        are not, as with most networks on a CPU, company would gain nothing, and runs that end one after the
        other are shared out more evenly.
        """
        if isinstance(self.execution, OneByOne) or (
            isinstance(self.execution, Auto) and not self.execution.pays
        ):
            return 1
        if self._most is None:
            first = self.opened[0].need
            assert first is not None
            models = HELD * first.world.n * first.world.d
            most = min(AT_ONCE[first.job.start.device.type], int(largest(first.job.start)) // models)
            self._most = max(1, most)
        return self._most

    def advance(self) -> Iterator[tuple[RunTask, Finished]]:
        """All go on to their next needs, which are filled in; yields those that have ended.

        Raises Leave, with checkpoints written.
        """
        try:
            for attempt in list(self.opened):
                if finished := self._ended(attempt):
                    self.opened.remove(attempt)
                    yield attempt.task, finished
        except Leave:
            for attempt in self.opened:
                self._save(attempt)
            raise
        if self.opened:
            yield from self._filled(self.opened)

    def _save(self, attempt: Attempt) -> None:
        try:
            attempt.save()
        except Exception as error:  # noqa: BLE001 - one that cannot be saved costs the others nothing
            attempt.fail(error)

    def _ended(self, attempt: Attempt) -> Finished | None:
        try:
            return None if attempt.go_on() else attempt.end(self.execution)
        except Leave:
            raise
        except Exception as error:  # noqa: BLE001 - one run's error is recorded, and the other runs go on
            return attempt.fail(error)

    def _filled(self, attempts: Sequence[Attempt]) -> Iterator[tuple[RunTask, Finished]]:
        """Compute what they need; yields those that end in an error."""
        needs = [attempt.need for attempt in attempts if attempt.need is not None]
        try:
            self.execution.fill(needs)
        except Exception as error:  # noqa: BLE001
            if len(attempts) > 1:  # whose error it is shows when each is computed by itself
                for attempt in list(attempts):
                    if attempt.need is not None and attempt.need.job.delta is None:
                        yield from self._filled([attempt])
            else:
                (attempt,) = attempts
                self.opened.remove(attempt)
                yield attempt.task, attempt.fail(error)
        else:
            seconds, jobs = self.clock.lap(), [attempt.computed for attempt in attempts]
            for attempt, computed in zip(attempts, jobs, strict=True):
                attempt.watch.here += seconds * computed / sum(jobs)
