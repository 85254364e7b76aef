"""A run in real time as a file: the complete input of a replay, from a machine without a tracker."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.live.replay import ReplayComparison, replay
from fl_core.live.run import LiveRun
from fl_core.live.transport import Packed

RUN, JOBS, CURVE = "run.live", "jobs.csv", "curve.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun(Packed):
    """A run in real time: experiment, learning curve, log and last model."""

    description: dict[str, Any]  # of the experiment
    curve: list[dict[str, float]]
    jobs: dict[str, list[Any]]  # by column
    events: dict[str, list[Any]]
    slips: dict[str, list[Any]]
    model: Tensor  # [d]

    @classmethod
    def of(cls, run: LiveRun) -> Self:
        """Return a finished run."""
        return cls(
            description=run.simulation.experiment.description(),
            curve=run.finish().curve,
            jobs=run.log.jobs,
            events=run.log.events,
            slips=run.log.slips,
            model=run.simulation.server.model,
        )

    def write(self, folder: Path) -> None:
        """Write the run to a folder, with additional CSV files of jobs and curve."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RUN).write_bytes(self.pack())
        jobs = [dict(zip(self.jobs, job, strict=True)) for job in zip(*self.jobs.values(), strict=True)]
        for name, table in ((JOBS, jobs), (CURVE, self.curve)):
            with (folder / name).open("w", newline="") as file:
                rows = csv.DictWriter(file, list(dict.fromkeys(key for row in table for key in row)))
                rows.writeheader()
                rows.writerows(table)

    def replay(self) -> ReplayComparison:
        """Simulate the run again from the log; return the differences."""
        experiment = Experiment.model_validate(self.description)
        return replay(experiment, self.jobs, self.events, self.slips, self.model.tolist())
