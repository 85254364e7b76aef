"""A run in real time as files: it comes back as it was, is replayed, and is a log of durations."""

import csv
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from benchmarks.commands.group import asyncfl
from fl_core.experiment import Experiment
from fl_core.live.run import CURVE, JOBS, RUN, SavedRun
from fl_core.loop.simulation import Simulation, simulate
from tests.fl_core.live.in_threads import Threads, prepared

PROBLEM = {"name": "quadratic", "clients": 3, "centres": [[-1.0], [0.0], [2.0]]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a run in real time has left its files."""
    experiment = Experiment.model_validate(
        {"scenario": {"problem": PROBLEM, "budget": {"updates": 12}}, "strategy": {"name": "ace"}}
    )
    run, transport = prepared(experiment), Threads(experiment, 2)
    assert len(list(run.events(transport))) == 12
    transport.stop()
    SavedRun.of(run).write(tmp_path / "deployed")
    return tmp_path / "deployed"


def test_it_comes_back_and_is_replayed(folder: Path) -> None:
    run = SavedRun.unpack((folder / RUN).read_bytes())
    assert run.curve[-1]["updates"] == 12
    assert run.replay().bit_for_bit


def commands() -> list[list[str]]:
    """Those of the how-to that lead back to the benchmark, without `asyncfl` and comments."""
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "deploy.md").read_text()
    section = page.partition("## Back to the benchmark")[2].partition("\n## ")[0]
    lines = re.findall(r"^asyncfl ([^#\n]+)", section, re.MULTILINE)
    return [line.split() for line in lines]


def test_the_commands_of_the_guide_lead_back_to_the_benchmark(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a suite with the law that the last one prints, jobs are as long as those of the log were."""
    monkeypatch.chdir(folder.parent)
    replay, import_log = commands()
    assert (
        CliRunner().invoke(asyncfl, replay).output.endswith("12 events and all models equal, bit for bit\n")
    )
    imported = CliRunner().invoke(asyncfl, import_log)
    assert imported.exit_code == 0, imported.output
    printed = yaml.safe_load(imported.output.partition("In a suite:")[2])
    experiment = Experiment.model_validate(
        {
            "scenario": {
                "problem": PROBLEM | printed["problem"],
                "timing": printed["timing"],
                "budget": {"updates": 9},
            },
            "strategy": {"name": "asgd"},  # sends a client its next job when one arrives
        }
    )
    simulation, arrived = Simulation(experiment), defaultdict[int, list[float]](lambda: [0.0])
    for event in simulate(simulation):
        assert event.client is not None
        arrived[event.client].append(simulation.time)
    logged = defaultdict[str, list[float]](list)
    with (folder / JOBS).open() as file:
        for job in sorted(csv.DictReader(file), key=lambda job: float(job["sent"])):
            if job["arrived"]:
                logged[job["client"]].append(float(job["arrived"]) - float(job["sent"]))
    for times in arrived.values():  # a log that is shorter repeats
        lengths = [later - sooner for sooner, later in pairwise(times)]
        assert any(
            log[: len(lengths)] == pytest.approx(lengths[: len(log)], abs=1e-5) for log in logged.values()
        )


def test_another_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"no run")
    other = CliRunner().invoke(asyncfl, ["replay", str(tmp_path / "other")])
    assert "other cannot be replayed" in str(other.exception)


def test_the_curve_is_a_table(folder: Path) -> None:
    with (folder / CURVE).open() as file:
        rows = list(csv.DictReader(file))
    curve = SavedRun.unpack((folder / RUN).read_bytes()).curve
    assert [{name: float(value) for name, value in row.items() if value} for row in rows] == curve
