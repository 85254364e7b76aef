"""A worker in the process of the test: what its jobs tell is kept, and it stops when the test says so."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from benchmarks.pool.job import Message, PoolJob
from benchmarks.runs.jobs import job_of
from benchmarks.runs.messages import Finished
from benchmarks.suite.suite import Task
from benchmarks.tracking.outbox import Outbox

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

    def note(self, job: PoolJob) -> Any:
        return None

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
