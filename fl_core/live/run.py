"""A run in real time: simulation, transport, log and recorder together, and its file.

`asyncfl live` (`benchmarks/runs/live.py`) and Flower's ServerApp (`flower`) iterate over `LiveRun.events`.

Fixed: the files and fields of `SavedRun`, which `asyncfl replay FOLDER` reads again. Free: the form of
`save`; a checkpoint of another form is refused.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.live.log import RunLog
from fl_core.live.real_time import RealTime
from fl_core.live.replay import ReplayComparison, replay
from fl_core.live.transport import Packed, Transport
from fl_core.loop.simulation import Event, Simulation
from fl_core.problems.problem import World
from fl_core.recording import checkpoint
from fl_core.recording.evaluation import Evaluate
from fl_core.recording.recorder import Clocks, Record, Recorder

RUN, JOBS, CURVE = "run.live", "jobs.csv", "curve.csv"  # files of a saved run


def refuses(experiment: Experiment) -> str | None:
    """Return the reason why an experiment cannot run in real time, or None."""
    scenario, timing = experiment.scenario, experiment.scenario.timing
    reasons = {
        "timing.server is simulated time, but the server's time is real: leave out timing.server": (
            timing.server
        ),
        "timing.power is for simulated phases: leave out timing.power, and measure the energy": timing.power,
        "timing.network is simulated, but messages take real time: leave out timing.network": (
            timing.network
        ),
        "its durations count server iterations, not time: choose other durations": (
            timing.durations.together or None
        ),
        "its arrangement prescribes the order of updates, which real time decides: leave out arrangement": (
            scenario.arrangement
        ),
        "its budget ends at a target, but models are evaluated after the run: leave out budget.target": (
            scenario.budget.target
        ),
    }
    return next((reason for reason, setting in reasons.items() if setting is not None), None)


class LateRecorder(Recorder):
    """A recorder that keeps the models at marks, and evaluates them at the end of the run.

    So an evaluation does not delay the server's answers to clients.
    """

    def __init__(self, simulation: Simulation, evaluate: Evaluate) -> None:
        self.kept: list[tuple[Tensor, Clocks]] = []
        self.over = False
        super().__init__(simulation, evaluate=evaluate)

    def end(self) -> None:
        """Evaluate all kept models, and the end."""
        self.over = True
        if all(self._evaluate(model, clocks) for model, clocks in self.kept):  # stops at a diverged model
            super().end()

    def _evaluate(self, model: Tensor, clocks: Clocks) -> bool:
        if self.over:
            return super()._evaluate(model, clocks)
        self.kept.append((model, clocks))
        return True


class LiveRun:
    """A run in real time; can be saved between two events, and continued with another transport."""

    def __init__(
        self,
        experiment: Experiment,
        world: World,
        unit: float,
        *,
        evaluate: Evaluate = "clients",
        stopping: Callable[[], bool] = bool,
    ) -> None:
        """Prepare a run.

        Args:
            experiment: Scenario, strategy, seed.
            world: The problem under that seed.
            unit: Seconds in a unit of virtual time.
            evaluate: The data for evaluations before the end.
            stopping: Returns True when the run must stop: then `events` raises `StoppedError`.
        """
        self.log = RunLog()
        self.service = RealTime(unit, self.log, stopping)
        self.simulation = Simulation(experiment, world, self.service)
        self.recorder = LateRecorder(self.simulation, evaluate)

    def events(self, transport: Transport) -> Iterator[Event]:
        """Yield each past event."""
        if not self.simulation.state.started:
            self.recorder.start()
        self.service.start(transport)
        for event in self.simulation.events():
            assert isinstance(event, Event)
            self.recorder.see(event)
            self.log.see(event, self.simulation)
            yield event

    @property
    def in_service(self) -> list[tuple[int, int]]:
        """Client and index of each job in service."""
        first = (jobs[0] for jobs in self.simulation.state.flight.values())
        return [(job.client, job.index) for job in first if job.began is not None]

    def finish(self) -> Record:
        """Evaluate the run; return the record."""
        self.service.stop()
        return self.recorder.finish()

    def save(self, path: Path, extra: Any = None) -> None:
        """Write the run to a file; raises as `checkpoint.save`."""
        log, evaluations = self.log, [(model, tuple(clocks)) for model, clocks in self.recorder.kept]
        resent = list(self.service.sent_again)
        checkpoint.save(self.recorder, path, (extra, evaluations, log.jobs, log.events, log.slips, resent))

    def load(self, path: Path) -> Any:
        """Put a fresh run into the saved state; return the caller's `extra`. Raises as `checkpoint.load`."""
        extra, evaluations, jobs, events, slips, resent = checkpoint.load(self.recorder, path)
        self.recorder.kept = [(model, Clocks(*clocks)) for model, clocks in evaluations]
        self.log.jobs |= jobs
        self.log.events |= events
        self.log.slips |= slips
        self.service.sent_again = set(resent)
        return extra


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun(Packed):
    """A finished run in real time as a file, for a replay or a machine without MLflow."""

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
