"""A run in real time as files: it comes back as it was, can be replayed, and is a log of durations."""

from collections import deque
from pathlib import Path

import pytest
from click.testing import CliRunner

from asyncfl.__main__ import main
from fl_core.experiment import Experiment
from fl_core.live.client import train
from fl_core.live.run import LiveRun
from fl_core.live.saved import JOBS, RUN, SavedRun
from fl_core.live.transport import JobMessage, UpdateMessage


class AtOnce:
    """A transport whose clients answer in the order in which they were asked."""

    def __init__(self, run: LiveRun) -> None:
        self.run, self.answers = run, deque[UpdateMessage]()

    def send(self, message: JobMessage) -> None:
        simulation = self.run.simulation
        self.answers.append(train(message, simulation.world, simulation.local))

    def poll(self, timeout: float) -> UpdateMessage | None:
        return self.answers.popleft() if self.answers else None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    problem = {"name": "quadratic", "clients": 3, "centres": [[-1.0], [0.0], [2.0]]}
    experiment = Experiment.model_validate(
        {"scenario": {"problem": problem, "budget": {"updates": 12}}, "strategy": {"name": "ace"}}
    )
    run = LiveRun(experiment, experiment.scenario.problem.world(0), unit=0.1)
    for _ in run.events(AtOnce(run)):
        pass
    SavedRun.of(run).write(tmp_path)
    return tmp_path


def test_it_comes_back_and_is_replayed(folder: Path) -> None:
    run = SavedRun.unpack((folder / RUN).read_bytes())
    assert run.curve[-1]["updates"] == 12
    assert run.replay().bit_for_bit


def test_the_commands_read_it(folder: Path) -> None:
    replay = CliRunner().invoke(main, ["replay", str(folder / RUN)])
    assert replay.exit_code == 0, replay.output
    columns = ["--client", "client", "--start", "began", "--end", "arrived"]
    trace = CliRunner().invoke(main, ["trace", "import", str(folder / JOBS), *columns])
    assert trace.exit_code == 0, trace.output
    assert (folder / "jobs-trace.csv").exists()
