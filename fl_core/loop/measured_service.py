"""Service of jobs with measured lengths: the seconds of a job's computation on the machine.

`Simulation` uses it where the world is `measured`, that is for Flower apps with `lengths: measured`.

Free: measured lengths differ from run to run, so that no stored result holds them.
"""

from fractions import Fraction
from typing import ClassVar

from fl_core.execution.one_by_one import work
from fl_core.local_work import LocalWork
from fl_core.loop.service import Service
from fl_core.problems.problem import World
from fl_core.server.jobs import Job
from fl_core.timing.clock import MICRO


class MeasuredService(Service):
    """Service that computes a job when it begins; the length is the measured time, times the law's length."""

    times: ClassVar[tuple[Fraction, ...]] = (MICRO,)

    def __init__(self, world: World, local: LocalWork, unit: Fraction) -> None:
        self.world, self.local = world, local
        self.unit = float(unit)  # seconds in a unit of virtual time
        self._warm = False

    def begin(self, job: Job) -> None:
        """Compute a job, unless the length is fixed, and begin the download."""
        if job.length is None:
            if not self._warm:  # the first call imports and loads, which is no part of a job
                self._warm = True
                work(job, self.world, self.local)
            work(job, self.world, self.local)
            factor = self.lengths.clock.time(self.lengths(job.client, job.index, job.steps))
            job.length = self.lengths.clock.round(self.world.seconds / self.unit * factor)
        super().begin(job)
