"""A run in real time as files: it comes back as it was, is replayed, and is a log of durations."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from asyncfl.commands.group import asyncfl
from fl_core.experiment import Experiment
from fl_core.live.saved import JOBS, RUN, SavedRun
from tests.fl_core.live.in_threads import Threads, prepared

PROBLEM = {"name": "quadratic", "clients": 3, "centres": [[-1.0], [0.0], [2.0]]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    experiment = Experiment.model_validate(
        {"scenario": {"problem": PROBLEM, "budget": {"updates": 12}}, "strategy": {"name": "ace"}}
    )
    run, transport = prepared(experiment), Threads(experiment, 2)
    assert len(list(run.events(transport))) == 12
    transport.stop()
    SavedRun.of(run).write(tmp_path)
    return tmp_path


def test_it_comes_back_and_is_replayed(folder: Path) -> None:
    run = SavedRun.unpack((folder / RUN).read_bytes())
    assert run.curve[-1]["updates"] == 12
    assert run.replay().bit_for_bit


def test_the_commands_read_it(folder: Path) -> None:
    replay = CliRunner().invoke(asyncfl, ["replay", str(folder / RUN)])
    assert replay.exit_code == 0, replay.output
    (folder / "other").write_bytes(b"no run")
    other = CliRunner().invoke(asyncfl, ["replay", str(folder / "other")])
    assert "other cannot be replayed" in str(other.exception)
    columns = ["--client", "client", "--start", "sent", "--end", "arrived"]
    trace = CliRunner().invoke(asyncfl, ["trace", "import", str(folder / JOBS), *columns])
    assert trace.exit_code == 0, trace.output
    assert len((folder / "jobs-trace.csv").read_text().splitlines()) >= 12
