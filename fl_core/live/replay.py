"""Replay: a run in virtual time with recorded arrivals, compared with the run in real time.

`asyncfl replay` calls `replay` with the tables of a log. Equal models show that the log is complete.

Fixed: that a log of an unchanged run has no differences.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np

from fl_core.experiment import Experiment
from fl_core.live.log import EVENT, SLIP, RunLog
from fl_core.loop.events import EventKind
from fl_core.loop.service import Service
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recorded_names import TIME, Name
from fl_core.server.jobs import Job
from fl_core.timing.clock import MICRO

JOBS_READ = (Name.CLIENT, Name.JOB, Name.ARRIVED, Name.STEPS)
ROUNDING = 1e-5  # relative difference of models that different float32 kernels may cause

Columns = Mapping[str, Sequence[Any]]


class EndOfLogError(Exception):
    """A log shorter than the budget of the run."""


class InvalidLogError(ValueError):
    """A log damaged or of another run; the message names the table and the column."""


class Recorded(Service):
    """Service with jobs arriving, clients lost and alarms postponed at recorded ticks."""

    times: ClassVar[tuple[Fraction, ...]] = (MICRO,)

    def __init__(self, jobs: Columns, events: Columns, slips: Columns) -> None:
        rows = zip(jobs[Name.CLIENT], jobs[Name.JOB], jobs[Name.ARRIVED], jobs[Name.STEPS], strict=True)
        # (client, index) → virtual time of the arrival, and the number of steps
        self.arrivals = {(i, k): (time, steps) for i, k, time, steps in rows if time is not None}
        moves = zip(events[Name.KIND], events[TIME], events[Name.CLIENT], strict=True)
        self.lost = [(time, int(client)) for kind, time, client in moves if kind == EventKind.LOST]
        self.slips = list(zip(slips[Name.ALARM], slips[Name.SET], slips[Name.RANG], strict=True))

    def attach(self, *parts: Any) -> None:
        """Connect with a simulation, and queue the recorded losses of clients."""
        super().attach(*parts)
        ticks = self.lengths.clock.round
        # (alarm, tick for which it was set) → tick at which it rings
        self.postponed = {(alarm, ticks(was)): ticks(rings) for alarm, was, rings in self.slips}
        for time, client in self.lost:
            self.state.queue.push(self.lengths.clock.round(time), EventKind.LOST, client, None)

    def upcoming(self) -> float:
        """Return the earliest queued tick; infinity after the end of the log."""
        earliest = super().upcoming()
        return inf if earliest is None else earliest

    def due(self, deadline: float) -> bool:
        """Return True for the earliest event; but postpone an alarm that rang late, and return False.

        Raises:
            EndOfLogError: No event remains.
        """
        if not self.state.queue.heap:
            raise EndOfLogError
        time, kind, alarm, _ = self.state.queue.peek()
        if kind is not EventKind.TICK or (alarm, time) not in self.postponed:
            return True
        self.state.postpone(alarm, self.postponed[alarm, time])
        return False

    def collect(self, job: Job) -> None:
        """Cut a job to the client's finished steps."""
        self.state.serving += job.waits
        job.waits = False
        steps = self.arrivals.get((job.client, job.index), (0, job.steps))[1]
        if steps > job.steps:
            raise InvalidLogError(f"jobs: column {Name.STEPS} is {steps}, and the job has {job.steps}")
        if steps != job.steps:
            self.state.wasted += job.delta is not None
            job.steps = steps
            job.undo()

    def _compute(self, job: Job) -> None:
        """Queue a job's arrival, if any."""
        job.computes = self.state.now
        if (job.client, job.index) in self.arrivals:
            time, _ = self.arrivals[job.client, job.index]
            job.ends = job.leaves = self.lengths.clock.round(time)
            job.event = self.state.queue.push(job.ends, EventKind.ARRIVAL, job.client, job)


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """A replay compared with the replayed run."""

    events: int  # number of replayed events
    difference: str  # first difference between the events; empty if all are equal
    bit_for_bit: bool  # whether all models are equal in every bit
    error: float  # |θ − θ_live| / |θ_live| of the last models

    def __str__(self) -> str:
        if self.difference:
            return self.difference
        if self.bit_for_bit:
            return f"{self.events:,} events and all models equal, bit for bit"
        same = "models equal to rounding" if self.equal else "models differ"
        return f"{self.events:,} events equal, {same}: by {self.error:.1e} of the last one's length"

    @property
    def equal(self) -> bool:
        """True if all events are equal, and models up to rounding."""
        return not self.difference and self.error <= ROUNDING


def replay(
    experiment: Experiment,
    jobs: Columns,
    events: Columns,
    slips: Columns,
    model: Sequence[float],
) -> ReplayComparison:
    """Simulate a run in real time again from the log; return the differences.

    Args:
        experiment: The run.
        jobs: Table JOBS of `fl_core.recorded_names`, by column.
        events: Table EVENTS, by column.
        slips: Table SLIPS, by column.
        model: The last model [d].

    Raises:
        InvalidLogError: The log is damaged.
    """
    _must_be_numbers(jobs, "jobs", JOBS_READ, optional=(Name.ARRIVED,))
    _must_be_numbers(events, "events", EVENT, optional=(Name.CLIENT, Name.STALENESS))
    _must_be_numbers(slips, "slips", SLIP, finite=False)
    for row, (was, rang) in enumerate(zip(slips[Name.SET], slips[Name.RANG], strict=True), 1):
        if not 0 <= was < rang < inf:
            raise InvalidLogError(f"slips, row {row}: an alarm set for {was} rang at {rang}, no later")
    _must_be_numbers({Name.MODEL: model}, "model", (Name.MODEL,), finite=False)
    simulation, replayed_log = Simulation(experiment, service=Recorded(jobs, events, slips)), RunLog()
    with suppress(EndOfLogError):  # then events are missing
        for event in simulate(simulation):
            replayed_log.see(event, simulation)
    if len(model) != simulation.world.d:
        raise InvalidLogError(f"model: has {len(model):,} numbers, and the run's has {simulation.world.d:,}")
    error = _error(simulation.server.model.double().numpy(), np.asarray(model))
    return ReplayComparison(
        events=len(replayed_log.events[TIME]),
        difference=_difference(events, replayed_log.events),
        bit_for_bit=list(events[Name.MODEL]) == list(replayed_log.events[Name.MODEL]) and error == 0,
        error=error,
    )


def _must_be_numbers(
    table: Columns, name: str, columns: Sequence[str], optional: Sequence[str] = (), *, finite: bool = True
) -> None:
    """Raise InvalidLogError unless all columns exist, of equal length, with numbers of 0 or more.

    Args:
        table: A table by column.
        name: The table's name.
        columns: Names of required columns.
        optional: Names of columns with possibly empty cells.
        finite: Whether numbers below 0, infinite ones and NaN are refused.
    """
    for column in columns:
        values = table.get(column)
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            raise InvalidLogError(f"{name}: no column {column}")
        if len(values) != len(table[columns[0]]):
            raise InvalidLogError(
                f"{name}: column {column} has {len(values):,} rows of {len(table[columns[0]]):,}"
            )
        for row, value in enumerate(values, 1):
            if value is None and column in optional:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or (finite and not 0 <= value < inf):
                raise InvalidLogError(
                    f"{name}, row {row}: column {column} must be a number of 0 or more, not {value!r}"
                )


def _error(replayed: np.ndarray, live: np.ndarray) -> float:
    """Return |θ − θ_live| / |θ_live|; 0 for identical models, finite or not."""
    if np.array_equal(replayed, live, equal_nan=True):
        return 0.0
    length, error = float(np.linalg.norm(live)), float(np.linalg.norm(replayed - live))
    return error / length if length else error


def _difference(live: Columns, replayed: Columns) -> str:
    """Return the first difference between events in words; empty if none."""
    for place in range(max(len(live[TIME]), len(replayed[TIME]))):
        for name in EVENT[:-1]:  # models may differ by rounding
            was, present = (
                events[name][place] if place < len(events[name]) else "none" for events in (live, replayed)
            )
            if was != present:
                return f"event {place + 1}: {name} {was} live, {present} in the replay"
    return ""
