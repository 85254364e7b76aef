"""What is recorded of runs, trials and studies, as writers and readers name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto

CAMPAIGN = ".tuning"  # ends the name of the experiment that holds a suite's campaign
VARIANT = "-tuned"  # ends the name of a suite with the values that were found for another
CLAIMS = "claims-"  # begins the name of what claims need
DEFAULT = "Default"  # MLflow's own experiment


class Status(StrEnum):
    """The state of a run."""

    RUNNING = auto()  # or interrupted
    DONE = auto()  # the budget is spent, or nothing is left to happen
    DIVERGED = auto()  # an update, the model or its loss ceased to be finite
    STALLED = auto()  # waiting for clients that left permanently: the model would not change any more
    ERROR = auto()  # an exception ended it
    UNREADABLE = auto()  # it ended, but its record is gone or damaged; never written

    @property
    def finite(self) -> bool:
        """Whether the run has a final model, whose metrics count."""
        return self in {Status.DONE, Status.STALLED}

    @property
    def terminated(self) -> bool:
        """Whether the outcome is known: a final model, or that the run diverged."""
        return self.finite or self is Status.DIVERGED

    @property
    def unfinished(self) -> bool:
        """Whether `asyncfl run` computes the run again."""
        return self in {Status.RUNNING, Status.ERROR}


class TrialState(StrEnum):
    """The state of a tuning trial."""

    RUNNING = auto()
    COMPLETE = auto()
    PRUNED = auto()
    FAILED = auto()


class StudyStatus(StrEnum):
    """The state of a tuning study."""

    RUNNING = auto()  # here or in other processes
    INTERRUPTED = auto()
    FINISHED = auto()


@dataclass(frozen=True, slots=True)
class Column:
    """A column with a finite number in every row, 0 or more."""

    whole: bool = False  # whether all of them are integers

    def __str__(self) -> str:
        return "whole numbers, 0 or more" if self.whole else "finite numbers, 0 or more"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a run, in a file of its own.

    Columns that are not listed hold numbers, infinite ones and NaN included, or nothing where a quantity was
    not measured.
    """

    file: str
    columns: Mapping[str, Column]  # in every file
    rows: int = 0  # at least
    ordered: tuple[str, ...] = ()  # columns in which no row is less than the one before
    bounds: Mapping[str, str] = field(default_factory=dict)  # column → the one that it never exceeds
    numbers: str = ""  # the column that numbers the rows from 0
    shares: str = ""  # the column that sums to 1


COUNT, AMOUNT = Column(whole=True), Column()
CLOCKS = {"iteration": COUNT, "updates": COUNT, "time": AMOUNT}

CURVE = Table("curve.parquet", CLOCKS, rows=1, ordered=tuple(CLOCKS))  # a row for each evaluation
ARRIVALS = Table(
    "arrivals.parquet",
    {"time": AMOUNT, "client": COUNT, "staleness": COUNT, "version": COUNT},
    ordered=("time", "version"),
    bounds={"staleness": "version"},
)
CLIENTS = Table(
    "clients.parquet",
    {"client": COUNT, "importance": AMOUNT, "mean_time": AMOUNT, "size": COUNT},
    rows=1,
    numbers="client",
    shares="importance",
)
DIAGNOSTICS = Table("diagnostics.parquet", {"iteration": COUNT}, ordered=("iteration",))
