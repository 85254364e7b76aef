"""Flower apps as problems, as far as Flower itself is not needed."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from fl_core.execution.one_by_one import OneByOne
from fl_core.experiment import Experiment
from fl_core.import_guard import AppPackages, guarded
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.flower import Flower
from fl_core.problems.problem import InvalidProblemError
from fl_core.problems.quadratic import Quadratic
from fl_core.scenario import Budget, Scenario, Timing
from fl_core.server.jobs import Job
from fl_core.strategies.fedbuff import FedBuff

PROJECT = """
[tool.flwr.app.components]
clientapp = "mine.client_app:app"
[tool.flwr.app.config]
rate = 0.5
nested.epochs = 2
"""


def app(folder: Path, project: str = PROJECT, **modules: str) -> Path:
    package = folder / "mine"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(project)
    for name, text in {"__init__": "", **modules}.items():
        (package / f"{name}.py").write_text(text)
    return folder


def flower(folder: Path, **fields: Any) -> Flower:
    return Flower(app=folder, initial="mine.task:initial", **fields)


@pytest.mark.parametrize(
    ("project", "part"),
    [
        ("", "tool.flwr.app"),
        ("[tool.flwr.app.components]\nserverapp = 'mine.server:app'", "clientapp"),
        ("[tool.flwr.app.components]\nclientapp = 'mine'", "clientapp"),
        ("[tool.flwr", "pyproject.toml"),
    ],
)
def test_a_folder_without_a_client_app_is_refused(tmp_path: Path, project: str, part: str) -> None:
    with pytest.raises(ValidationError) as error:
        flower(app(tmp_path / "app", project))
    assert "app: " in str(error.value) and part in str(error.value)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="nowhere"):
        flower(tmp_path / "nowhere")


def test_code_is_part_of_the_key_and_other_files_are_not(tmp_path: Path) -> None:
    folder = app(tmp_path / "app", task="x = 1\n")
    before = flower(folder)
    (folder / "notes.md").write_text("Notes")
    (folder / "mine" / "__pycache__").mkdir()
    (folder / "mine" / "__pycache__" / "task.py").write_text("")
    assert flower(folder).digest == before.digest
    (folder / "mine" / "task.py").write_text("x = 2\n")
    after = flower(folder)
    assert after.digest != before.digest
    with pytest.raises(InvalidProblemError):
        before.check(0)


def test_a_recorded_problem_needs_no_folder(tmp_path: Path) -> None:
    described = flower(app(tmp_path / "app"), config={"rate": 1}).model_dump(mode="json")
    assert described["config"] == {"rate": 1}
    elsewhere = Flower.model_validate({**described, "app": "gone"})
    assert elsewhere.digest == described["digest"]
    assert hash(elsewhere) == hash(Flower.model_validate({**described, "app": "gone"}))


def test_code_of_others_is_not_imported(tmp_path: Path) -> None:
    folder = app(tmp_path / "app")
    with guarded("it is another's"), pytest.raises(ValidationError, match="another's"):
        flower(folder)


@pytest.mark.parametrize(
    "fields", [{"examples": [3, 4]}, {"importance": "data"}, {"config": {"rate": [1]}}, {"metric": "fp/loss"}]
)
def test_fields_that_do_not_fit_are_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        flower(app(tmp_path / "app"), clients=3, **fields)


@pytest.mark.skipif(find_spec("flwr") is not None, reason="Flower is installed")
def test_without_flower_a_line_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblemError, match=r"\[flower\]"):
        flower(app(tmp_path / "app")).check(0)


def test_problem_and_local_work_go_together(tmp_path: Path) -> None:
    budget, of_app = Budget(updates=3), flower(app(tmp_path / "app"))
    assert Experiment(
        scenario=Scenario(problem=of_app, budget=budget), strategy=FedBuff(local="client_app")
    ).key
    for problem, local in ((of_app, "sgd"), (Quadratic(), "client_app")):
        with pytest.raises(ValidationError, match="client_app"):
            Experiment(scenario=Scenario(problem=problem, budget=budget), strategy=FedBuff(local=local))
    with pytest.raises(ValidationError, match="batch"):
        FedBuff(local={"name": "client_app", "batch": 8})


def test_apps_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    """Imports at first use, too; and neither is left behind, nor shadows a module of the same name."""
    found = []
    folders = [
        app(
            tmp_path / name,
            task=f"name = {name!r}\ndef late():\n    import mine.other\n    return mine.other.x",
        )
        for name in "ab"
    ]
    for number, folder in enumerate(folders):
        (folder / "mine" / "other.py").write_text(f"x = {number}")
    apps = [AppPackages(folder, ["mine"]) for folder in folders]
    sys.modules["mine"] = foreign = type(sys)("mine")
    try:
        for _ in range(2):
            for packages in apps:
                with packages.in_use():
                    task = __import__("mine.task").task
                    found.append((task.name, task.late()))
                assert sys.modules["mine"] is foreign and "mine.task" not in sys.modules
    finally:
        del sys.modules["mine"]
    assert found == [("a", 0), ("b", 1)] * 2


class Timed(Quadratic):
    """Quadratics whose jobs take two seconds each, as is claimed."""

    def world(self, seed: int) -> Any:
        world = super().world(seed)
        world.measured, world.seconds = True, 2.0
        return world


@pytest.mark.parametrize("unit", [1, 2])
def test_a_measured_job_takes_its_seconds_times_the_length_by_the_law(unit: int) -> None:
    timing = Timing(durations={"name": "fixed", "times": [1, "3/2"]}, unit=unit)
    scenario = Scenario(problem=Timed(), timing=timing, budget=Budget(updates=12))
    simulation = Simulation(Experiment(scenario=scenario, strategy="asgd"))
    served: dict[int, set[float]] = {0: set(), 1: set()}
    for event in simulate(simulation, OneByOne()):
        assert event.client is not None and event.began is not None
        served[event.client].add((event.time - event.began) * float(simulation.lengths.clock.unit))
    assert served == {0: {2 / unit}, 1: {3 / unit}}


def test_measured_jobs_are_not_computed_again() -> None:
    """What a job's length is measured on is its result."""
    jobs: list[Job] = []
    scenario = Scenario(problem=Timed(), budget=Budget(updates=5))
    simulation = Simulation(Experiment(scenario=scenario, strategy="asgd"))
    begin = simulation.service.begin

    def kept(job: Job) -> None:
        begin(job)
        jobs.append(job)

    simulation.service.begin = kept  # type: ignore[method-assign]
    for event in simulation.events():
        assert type(event).__name__ == "Event"  # no request
    assert len(jobs) >= 5 and all(job.delta is not None for job in jobs)
    assert np.isfinite(simulation.server.model.numpy()).all()
