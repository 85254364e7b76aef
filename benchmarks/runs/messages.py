"""Messages of workers about a suite's tasks; read by sessions, campaigns and displays.

Free: fields may change, since workers and driver run the same code.
"""

from dataclasses import dataclass
from typing import Self

from benchmarks.errors import summarised
from benchmarks.mlflow_store.run_result import RunResult
from benchmarks.pool.job import Final, Message


@dataclass(frozen=True, slots=True)
class Advanced(Message):
    """Progress of a task."""

    share: float  # of the budget that is used
    value: float | None = None  # the newest of the problem's metric


@dataclass(frozen=True, slots=True)
class Evaluated(Message):
    """Evaluation of a prunable run."""

    row: int  # of the learning curve; after a resumption, rows sent earlier from this number on are void
    values: dict[str, float]  # of the row


@dataclass(frozen=True, slots=True)
class Notice(Message):
    """Message shown to users while the task continues."""

    text: str

    @classmethod
    def of_restart(cls, error: Exception) -> Self:
        """Return the notice of a restart after an unusable checkpoint, without effect on virtual time."""
        return cls(f"cannot resume from checkpoint ({summarised(error)}); restarting from scratch")


@dataclass(frozen=True, slots=True)
class NoRoom(Final):
    """A full disk: no further data are kept, and a later session resumes from the saved data."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finished(Final):
    """End of a task; the record is in the outbox."""

    result: RunResult
    value: float | None = None  # the newest of the problem's metric
