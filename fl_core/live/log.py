"""The log of a run in real time: jobs, events and late alarms, the complete input of a replay.

`run.LiveRun` adds events, `service.RealTime` adds jobs and late alarms; `replay` reads the tables.

Fixed: names and meaning of the columns (`fl_core/recorded_names.py`): stored runs are replayed from them.
"""

from typing import Any

from fl_core.live.transport import digest_of
from fl_core.loop.simulation import Event, Simulation
from fl_core.recorded_names import TIME, Name
from fl_core.server.jobs import Job
from fl_core.timing.clock import VirtualClock
from fl_core.timing.network import Way

JOB = (
    *(Name.CLIENT, Name.JOB, Name.VERSION, Name.SENT, Name.ARRIVED, Name.STEPS, Name.DOWNLOADS, Name.UPLOADS),
    *(Name.BEGAN, Name.STALENESS, Name.COMPUTED, Name.RESENT),
)
SLIP = (Name.ALARM, Name.SET, Name.RANG)
EVENT = (TIME, Name.KIND, Name.CLIENT, Name.STALENESS, Name.VERSION, Name.MODEL)
DIGITS = 13  # hex digits of a model's digest, which a float holds exactly


class RunLog:
    """The growing tables JOBS, EVENTS and SLIPS of `fl_core.recorded_names`, by column."""

    def __init__(self) -> None:
        self.jobs: dict[str, list[Any]] = {name: [] for name in JOB}
        self.events: dict[str, list[Any]] = {name: [] for name in EVENT}
        self.slips: dict[str, list[Any]] = {name: [] for name in SLIP}

    def add(self, job: Job, clock: VirtualClock, arrived: int | None = None, **more: float | None) -> None:
        """Add a job leaving flight, or in flight at the end.

        Args:
            job: The job.
            clock: The clock of its ticks.
            arrived: Tick of the arrival of its update; None without an arrival.
            more: Values of further columns.
        """
        row = {
            Name.CLIENT: job.client,
            Name.JOB: job.index,
            Name.VERSION: job.version,
            Name.SENT: clock.time(job.sent),
            Name.ARRIVED: None if arrived is None else clock.time(arrived),
            Name.STEPS: job.steps,
            Name.DOWNLOADS: job.bytes[Way.DOWN],
            Name.UPLOADS: 0 if arrived is None else job.bytes[Way.UP],
        }
        for name, value in {**row, **more}.items():
            self.jobs[name].append(value)

    def slip(self, alarm: int, was: float, rings: float) -> None:
        """Add a late alarm: set for virtual time `was`, ringing at `rings`."""
        for name, value in zip(SLIP, (alarm, was, rings), strict=True):
            self.slips[name].append(value)

    def see(self, event: Event, simulation: Simulation) -> None:
        """Add an event, with a digest of the model after the event."""
        if self.events[Name.VERSION][-1:] == [event.version]:
            model = self.events[Name.MODEL][-1]
        else:
            model = int(digest_of(simulation.server.model)[:DIGITS], 16)
        row = {
            TIME: simulation.time,
            Name.KIND: int(event.kind),
            Name.CLIENT: event.client,
            Name.STALENESS: event.staleness,
            Name.VERSION: event.version,
            Name.MODEL: model,
        }
        for name, value in row.items():
            self.events[name].append(value)
