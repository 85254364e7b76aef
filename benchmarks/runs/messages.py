"""Messages about a suite's tasks while they are computed."""

from dataclasses import dataclass

from benchmarks.pool.job import Final, Message
from benchmarks.tracking.run_result import RunResult


@dataclass(frozen=True, slots=True)
class Advanced(Message):
    """A task goes on."""

    share: float  # of the budget that is used
    value: float | None = None  # the newest of the problem's metric


@dataclass(frozen=True, slots=True)
class Evaluated(Message):
    """A prunable run was evaluated."""

    row: int  # of the learning curve; rows sent earlier from there on are void
    values: dict[str, float]  # of the row


@dataclass(frozen=True, slots=True)
class BegunAnew(Message):
    """A run's checkpoint is unusable: the run restarts from scratch, with the same numbers."""

    reason: str


@dataclass(frozen=True, slots=True)
class Resumed(Message):
    """A run in real time goes on; jobs that were in service are lost with its server, and sent again."""

    time: float  # virtual
    jobs: tuple[tuple[int, int], ...]  # client and index of each


@dataclass(frozen=True, slots=True)
class NoRoom(Final):
    """A task's disk is full: nothing new is kept, and a later session resumes from what is."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finished(Final):
    """A task has ended: its record is in the outbox."""

    result: RunResult
    value: float | None = None  # the newest of the problem's metric
