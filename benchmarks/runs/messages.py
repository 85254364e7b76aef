"""Messages about a suite's tasks during computation."""

from dataclasses import dataclass

from benchmarks.pool.job import Final, Message
from benchmarks.tracking.run_result import RunResult


@dataclass(frozen=True, slots=True)
class Advanced(Message):
    """Progress of a task."""

    share: float  # of the budget that is used
    value: float | None = None  # the newest of the problem's metric


@dataclass(frozen=True, slots=True)
class Evaluated(Message):
    """Evaluation of a prunable run."""

    row: int  # of the learning curve; rows sent earlier from there on are void
    values: dict[str, float]  # of the row


class Notice(Message):
    """Base of messages that users are told of, as text, in the midst of a task."""


@dataclass(frozen=True, slots=True)
class BegunAnew(Notice):
    """Restart of a run from scratch, with unchanged numbers, after an unusable checkpoint."""

    reason: str

    def __str__(self) -> str:
        return f"cannot resume from checkpoint ({self.reason}); restarting from scratch"


@dataclass(frozen=True, slots=True)
class Resumed(Notice):
    """Resumption of a run in real time; jobs in service were lost with the server, and are sent again."""

    time: float  # virtual
    jobs: tuple[tuple[int, int], ...]  # client and index of each

    def __str__(self) -> str:
        jobs = ", ".join(f"job {index} of client {client}" for client, index in self.jobs) or "none"
        return f"resumed at time {self.time:g}; lost with the server and sent again: {jobs}"


@dataclass(frozen=True, slots=True)
class SlowServer(Notice):
    """A run in real time with a server that is slower than the strategy's timer."""

    dropped_after: float  # lateness of an alarm, in seconds, from which alarms are dropped

    def __str__(self) -> str:
        return (
            "the server is slower than the strategy's timer; alarms that it missed by more than "
            f"{self.dropped_after:g} s are dropped. Lengthen --unit, or the strategy's period"
        )


@dataclass(frozen=True, slots=True)
class NoRoom(Final):
    """A full disk: no further data are kept, and a later session resumes from the saved data."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finished(Final):
    """End of a task; the record is in the outbox."""

    result: RunResult
    value: float | None = None  # the newest of the problem's metric
