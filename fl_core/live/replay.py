"""Replay: a run in virtual time whose jobs arrive when they did in real time, held to what happened there."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np

from fl_core.experiment import Experiment
from fl_core.live.log import RunLog
from fl_core.loop.events import Kind
from fl_core.loop.service import Service
from fl_core.loop.simulation import Simulation, simulate
from fl_core.schema import TIME, Name
from fl_core.server.jobs import Job
from fl_core.timing.clock import MICRO

ROUNDING = 1e-5  # of a model's length, which float32 may lose where kernels differ

Columns = Mapping[str, Sequence[Any]]


class EndOfLogError(Exception):
    """A log ends before the budget of its run is spent."""


class Recorded(Service):
    """Jobs arrive at the ticks, and clients are lost at those, that a log says."""

    times: ClassVar[tuple[Fraction, ...]] = (MICRO,)

    def __init__(self, jobs: Columns, events: Columns) -> None:
        rows = zip(jobs[Name.CLIENT], jobs[Name.JOB], jobs[Name.ARRIVED], jobs[Name.STEPS], strict=True)
        # (client, index) → virtual time of the arrival, and the steps
        self.arrivals = {(i, k): (time, steps) for i, k, time, steps in rows if time is not None}
        moves = zip(events[Name.KIND], events[TIME], events[Name.CLIENT], strict=True)
        self.lost = [(time, int(client)) for kind, time, client in moves if kind == Kind.LOST]

    def attach(self, *parts: Any) -> None:
        """Queue the losses of clients."""
        super().attach(*parts)
        for time, client in self.lost:
            self.state.queue.push(self.lengths.clock.round(time), Kind.LOST, client, None)

    def upcoming(self) -> float:
        """Return the earliest tick that is queued; infinity after the end of the log."""
        earliest = super().upcoming()
        return inf if earliest is None else earliest

    def due(self, deadline: float) -> bool:
        """Return True: there is an event.

        Raises:
            EndOfLogError: There is none.
        """
        if not self.state.queue.heap:
            raise EndOfLogError
        return True

    def collect(self, job: Job) -> None:
        """Cut a job to the steps that its client had finished."""
        self.state.serving += job.waits
        job.waits = False
        steps = self.arrivals.get((job.client, job.index), (0, job.steps))[1]
        if steps != job.steps:
            self.state.wasted += job.delta is not None
            job.steps = steps
            job.undo()

    def _compute(self, job: Job) -> None:
        """Queue a job's arrival, if there was any."""
        job.computes = self.state.now
        if (job.client, job.index) in self.arrivals:
            time, _ = self.arrivals[job.client, job.index]
            job.ends = job.leaves = self.lengths.clock.round(time)
            job.event = self.state.queue.push(job.ends, Kind.ARRIVAL, job.client, job)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A replay beside the run that was replayed."""

    events: int  # that were replayed
    difference: str  # the first one between their events; empty if there is none
    bit_for_bit: bool  # whether all models are the same in every bit
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
        """True if all events are the same, and models up to rounding."""
        return not self.difference and self.error <= ROUNDING


def replay(
    experiment: Experiment,
    jobs: Columns,
    events: Columns,
    model: Sequence[float],
) -> Comparison:
    """Simulate a run in real time once more by its log; return what differs.

    Args:
        experiment: The run.
        jobs: Table JOBS of `fl_core.schema`, by column.
        events: Table EVENTS, by column.
        model: The last model [d].
    """
    simulation, again = Simulation(experiment, service=Recorded(jobs, events)), RunLog()
    with suppress(EndOfLogError):  # then events are missing
        for event in simulate(simulation):
            again.see(event, simulation)
    error = _error(simulation.server.model.double().numpy(), np.asarray(model))
    return Comparison(
        events=len(again.events[TIME]),
        difference=_difference(events, again.events),
        bit_for_bit=list(events[Name.MODEL]) == list(again.events[Name.MODEL]) and error == 0,
        error=error,
    )


def _error(replayed: np.ndarray, live: np.ndarray) -> float:
    """Return |θ − θ_live| / |θ_live|; 0 for models that are the same, finite or not."""
    if np.array_equal(replayed, live, equal_nan=True):
        return 0.0
    length, error = float(np.linalg.norm(live)), float(np.linalg.norm(replayed - live))
    return error / length if length else error


def _difference(live: Columns, replayed: Columns) -> str:
    """Return the first difference between events in words; empty if there is none."""
    names = [TIME, Name.KIND, Name.CLIENT, Name.STALENESS, Name.VERSION]
    for place in range(max(len(live[TIME]), len(replayed[TIME]))):
        for name in names:
            was, now = (
                events[name][place] if place < len(events[name]) else "none" for events in (live, replayed)
            )
            if was != now:
                return f"event {place + 1}: {name} {was} live, {now} in the replay"
    return ""
