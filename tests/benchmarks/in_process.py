"""A worker in the process of the test: what its jobs tell is kept, and it stops when the test says so.

And what is computed by it, delivered as a session does.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from recorded import write_suite

from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Announcement, Outbox
from benchmarks.mlflow_store.run_result import Place, RunResult
from benchmarks.mlflow_store.store import Store
from benchmarks.pool.job import Message, PoolJob
from benchmarks.runs.messages import Finished
from benchmarks.runs.run_jobs import job_of
from benchmarks.suite.suite import PlannedRun, Task, load, tasks

T = TypeVar("T")


class InProcess:
    """Computes the jobs that it is given; some of them may be companions of the first."""

    def __init__(
        self, companions: Iterable[PoolJob] = (), stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self.told: list[tuple[str, Message]] = []
        self._companions, self._stopping = iter(companions), stopping
        self._shared: dict[Callable[[], Any], Any] = {}

    @property
    def stopping(self) -> bool:
        return self._stopping()

    def tell(self, job: PoolJob, message: Message) -> None:
        self.told.append((job.key, message))

    def is_cancelled(self, job: PoolJob) -> bool:
        return False

    def companion(self) -> PoolJob | None:
        return next(self._companions, None)

    def shared(self, make: Callable[[], T]) -> T:
        return self._shared.setdefault(make, make())

    @property
    def finished(self) -> dict[str, Finished]:
        """How jobs ended, by key."""
        return {key: message for key, message in self.told if isinstance(message, Finished)}


def compute(task: Task, outbox: Outbox, about: dict[str, Any] | None = None) -> Finished:
    """Leave the task's record in the outbox."""
    worker = InProcess()
    job_of(task, outbox, about or {}).compute(worker)
    return worker.finished[task.key]


def small(
    folder: Path, *, seeds: int = 2, strategies: str = "fedbuff, asgd", updates: int = 60
) -> list[Task]:
    """The tasks of a small suite."""
    return tasks(load(str(write_suite(folder, strategies, seeds=seeds, updates=updates))).runs())


def places(found: list[Task]) -> dict[str, Place]:
    """What a session announces."""
    return {task.key: task.place for task in found if isinstance(task, PlannedRun)}


def conditions(found: list[Task]) -> dict[str, list[str]]:
    """What a session announces of each scenario."""
    return {task.scenario: [*task.conditions] for task in found if isinstance(task, PlannedRun)}


def deliver(
    folder: Path, store: Store, *, seeds: int = 2, strategies: str = "fedbuff, asgd", updates: int = 60
) -> None:
    """Compute what MLflow does not have of a small suite, and deliver it as a session does."""
    found = small(folder, seeds=seeds, strategies=strategies, updates=updates)
    outbox = Outbox(store.outbox)
    delivery = Delivery(store, outbox)
    missing = delivery.missing(found)
    delivery.announce(Announcement("small", "Three clients.", places(found), conditions=conditions(found)))
    for task in missing:
        compute(task, outbox)
        delivery.send()
    delivery.close()
    assert not delivery.refused and not delivery.outage


def curve_of(outbox: Outbox, task: Task) -> list[dict[str, float]]:
    """The rows of the curve that was left in the outbox."""
    columns = outbox.curve(result_of(outbox, task))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def result_of(outbox: Outbox, task: Task) -> RunResult:
    """What was left in the outbox."""
    result = outbox.get(task.suite, task.key)
    assert result is not None
    return result
