"""A run in real time as one file: what a replay needs, brought from a machine that has no tracker."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.live.log import RunLog
from fl_core.live.replay import Comparison, replay
from fl_core.live.transport import Packed
from fl_core.recording.recorder import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun(Packed):
    """A run in real time: experiment, learning curve, log, last model."""

    description: dict[str, Any]  # of the experiment
    curve: list[dict[str, float]]
    jobs: dict[str, list[Any]]  # by column
    events: dict[str, list[Any]]
    model: Tensor  # [d]

    @classmethod
    def of(cls, recorder: Recorder, log: RunLog) -> Self:
        """Return a run that has ended."""
        simulation = recorder.simulation
        return cls(
            description=simulation.experiment.description(),
            curve=recorder.record.curve,
            jobs=dict(log.jobs),
            events=dict(log.events),
            model=simulation.server.model,
        )

    def replay(self) -> Comparison:
        """Simulate the run once more by its log; return what differs."""
        experiment = Experiment.model_validate(self.description)
        return replay(experiment, self.jobs, self.events, self.model.tolist())

    def write(self, folder: Path) -> None:
        """Write the run as `run.pt`, and its jobs as `jobs.csv`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.pt").write_bytes(self.pack())
        with (folder / "jobs.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(self.jobs)
            rows.writerows(zip(*self.jobs.values(), strict=True))
