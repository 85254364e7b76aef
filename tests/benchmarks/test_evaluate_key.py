"""What a suite evaluates at its marks: as it says, or by what it shows; and in claims and records."""

from pathlib import Path
from typing import Any

import in_process
import numpy as np
import pandas as pd
import pytest
import yaml
from in_process import compute, curve_of
from mlflow import MlflowClient
from recorded import runs
from test_claims_files import CLAIM, written
from torch import Tensor

from benchmarks.claims.plan import ClaimPlan
from benchmarks.errors import UserError
from benchmarks.mlflow_store.delivery import Delivery
from benchmarks.mlflow_store.outbox import Announcement, Outbox
from benchmarks.mlflow_store.run_result import RunRequirements
from benchmarks.mlflow_store.store import Store
from benchmarks.mlflow_store.writer import Tracking
from benchmarks.runs.session import Session
from benchmarks.suite.suite import PlannedRun, load
from fl_core.problems.training.world import SupervisedWorld
from fl_core.recorded_names import Tag
from fl_core.recording import recorder
from reports.gate.baseline import take
from reports.records.seed_summaries import band
from reports.records.suite_reader import load as report
from tuning.plan import plan

SUITE = """
name: small
seeds: 2
problem: {name: digits, clients: 4}
budget: {updates: 40}
evaluations: 4
lr: 0.1
strategies: [asgd]
"""


def suite(folder: Path, more: str = "") -> Path:
    path = folder / "small.yaml"
    path.write_text(SUITE + more)
    return path


def record(path: Path, store: Store) -> None:
    """What is left of a suite, computed and in MLflow."""
    outbox, delivery = Outbox(store.outbox), Delivery(store, Outbox(store.outbox))
    found = load(str(path))
    session = Session(found, store, baselines=False)
    places = {task.key: task.place for task in session.tasks if isinstance(task, PlannedRun)}
    delivery.announce(Announcement(found.name, "", places))
    for task in session._remaining_tasks(delivery):
        in_process.compute(task, outbox, {Tag.COMMIT: "abc", Tag.VERSION: "1", Tag.VERSIONS: "{}"})
    delivery.send()
    delivery.close()


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("", "test"),
        ("show: [test/accuracy, worst_client/accuracy]", "test"),
        ("show: [test/accuracy, sp/std]", "clients"),
        ("evaluate: clients", "clients"),
        ("show: [fp/loss]\nevaluate: {sample: 300}", "sample of 300"),
        ("show: [fp/loss]\nevaluate: test", "test"),
    ],
)
def test_the_key_and_what_it_is_without_a_word(tmp_path: Path, more: str, what: str) -> None:
    assert {str(run.evaluate) for run in load(str(suite(tmp_path, more))).runs()} == {what}


def test_a_suite_that_is_ranked_by_a_training_loss_has_it_at_every_mark(tmp_path: Path) -> None:
    found = load(str(suite(tmp_path)), ["problem.metric=fp/loss"])
    assert {run.evaluate for run in found.runs()} == {"clients"}


def test_it_is_no_part_of_a_run_s_identity(tmp_path: Path) -> None:
    assert [run.key for run in load(str(suite(tmp_path))).runs()] == [
        run.key for run in load(str(suite(tmp_path, "evaluate: clients"))).runs()
    ]


def test_another_value_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"evaluate: "):
        load(str(suite(tmp_path, "evaluate: everything")))
    with pytest.raises(UserError, match=r"evaluate\.sample: "):
        load(str(suite(tmp_path, "evaluate: {sample: 0}")))


@pytest.mark.parametrize(
    ("recorded", "wanted", "enough"),
    [
        ("test", "test", True),
        ("test", "sample of 9", False),
        ("test", "clients", False),
        ("sample of 9", "test", True),
        ("sample of 9", "sample of 9", True),
        ("sample of 9", "sample of 10", False),
        ("sample of 9", "clients", False),
        ("clients", "test", True),
        ("clients", "sample of 9", True),
        ("clients", "clients", True),
    ],
)
def test_which_records_are_enough(recorded: str, wanted: str, *, enough: bool) -> None:
    assert RunRequirements(recorded, {}).serves(RunRequirements(wanted, {})) == enough


DIGITS: dict[str, Any] = {
    "seeds": 1,
    "problem": {"name": "digits", "clients": 4},
    "budget": {"updates": 40},
    "strategies": ["asgd", "ace"],
    "lr": 0.1,
}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"metric": "test/accuracy"}, "test"),
        ({"metric": "fp/loss"}, "clients"),  # where both have come to
        ({"metric": "fp/loss", "at": 20}, "clients"),
        ({"metric": "fp/loss", "at": "end"}, "test"),
        ({"metric": "sp/loss", "at": "end", "along": "mean"}, "clients"),
        ({"metric": "fp/std", "at": "end", "reach": 0.1}, "clients"),
    ],
)
def test_claims_get_what_they_read(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    claim = {**CLAIM, "where": {}, "scenario": "digits", "b": {"strategy": "ace"}, **change}
    paper = written(tmp_path, claim, digits=DIGITS)
    plan = ClaimPlan(paper, "small", tuple(paper.claims.values()))
    assert {run.evaluate for run in plan.runs()} == {what}


def test_a_run_that_serves_two_claims_has_what_either_reads(tmp_path: Path) -> None:
    """Whichever of them is judged first."""
    ends = {
        **CLAIM,
        "where": {},
        "scenario": "digits",
        "metric": "fp/loss",
        "at": "end",
        "b": {"strategy": "ace"},
    }
    ends["b"] = {"strategy": "ace"}
    along = {**ends, "id": "T-row/along", "a": {"strategy": "ace"}, "at": 20}
    paper = written(tmp_path, ends, along, digits=DIGITS)
    for claim in paper.claims.values():
        runs = ClaimPlan(paper, "small", (claim,)).runs()
        assert [(run.strategy, run.evaluate) for run in runs if run.strategy == "ACE"] == [("ACE", "clients")]


def test_what_was_not_evaluated_is_absent_everywhere(tmp_path: Path, store: Store) -> None:
    """From the file and MLflow's charts, of runs and of their mean; the report draws what is there."""
    path = suite(tmp_path, "show: [fp/loss, test/loss]\nevaluate: test")
    record(path, store)
    client = MlflowClient(store.tracking_uri)
    for kind, count in (("run", 2), ("group", 1)):
        found = runs(store, kind=kind)
        assert len(found) == count
        for run in found:
            losses = client.get_metric_history(run.info.run_id, "fp/loss")
            tested = client.get_metric_history(run.info.run_id, "test/loss")
            assert {point.step for point in losses} == {40} and {point.step for point in tested} >= {0, 40}
            assert all(0 < point.value < 3 for point in losses)
    found = report(store.tracking_uri, "small")
    (scenario,) = found.scenarios()
    (cell,) = scenario.cells
    for run in cell.runs:
        assert np.isnan(run.files.curve["fp/loss"]).tolist() == [True] * 4 + [False]
        assert 0 < run.final("fp/loss") < 3
    assert band(cell, "fp/loss", "updates").grid.tolist() == [40]
    assert band(cell, "test/loss", "updates").grid.tolist() == [0, 10, 20, 30, 40]
    golden = take(store.tracking_uri, load(str(path)).runs())
    assert [[updates for updates, _ in one.loss] for one in golden.runs] == [[40], [40]]


def test_runs_recorded_with_less_than_is_wanted_now_are_computed_again(tmp_path: Path, store: Store) -> None:
    record(suite(tmp_path), store)
    before = {run.data.tags["asyncfl.key"]: run.info.run_id for run in runs(store)}
    assert Tracking(store).finished("small", dict.fromkeys(before, RunRequirements("clients", {}))) == set()
    record(suite(tmp_path, "show: [fp/loss]"), store)
    after = {run.data.tags["asyncfl.key"]: run.info.run_id for run in runs(store)}
    assert after.keys() == before.keys() and not {*after.values()} & {*before.values()}
    assert Tracking(store).finished("small", dict.fromkeys(before, RunRequirements("clients", {}))) == {
        *before
    }
    for run in report(store.tracking_uri, "small").runs:
        assert np.isfinite(run.files.curve["fp/loss"]).tolist() == [True] * 5
    record(suite(tmp_path), store)  # and those with more serve a suite that wants less
    assert {run.info.run_id for run in runs(store)} == {*after.values()}


def test_means_of_curves_whose_columns_stand_in_another_order() -> None:
    from benchmarks.mlflow_store.entities import mean_curve

    one = pd.DataFrame({"iteration": [0, 1], "fp/loss": [1.0, 2.0], "test/loss": [5.0, 6.0]})
    other = pd.DataFrame({"iteration": [0, 1], "test/loss": [7.0, 8.0], "fp/loss": [None, 4.0]})
    mean = mean_curve([one, other])
    assert mean["test/loss"].tolist() == [6, 7]
    assert mean["fp/loss"].isna().tolist() == [True, False] and mean["fp/loss"].iloc[1] == 3


@pytest.mark.parametrize(("metric", "passes"), [("fp/loss", 5), ("test/accuracy", 0)])
def test_tuning_evaluates_its_metric_at_every_mark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, metric: str, passes: int
) -> None:
    judged: list[Tensor] = []
    plain = SupervisedWorld._on_training

    def counted(self: SupervisedWorld, model: Tensor) -> np.ndarray:
        judged.append(model)
        return plain(self, model)

    path = tmp_path / "tuned.yaml"
    tuning = {"metric": metric, "trials": 1, "seeds": 1, "space": {"local_lr": [0.1]}, "sampler": "grid"}
    suite = {"name": "s", **DIGITS, "budget": {"updates": 40}, "evaluations": 4, "strategies": ["asgd"]}
    path.write_text(yaml.safe_dump({**suite, "tuning": tuning}))
    (study,) = plan(load(str(path), tuned=False)).studies
    ((origin, values),) = study.first
    (run,) = study.runs(0, values, origin, study.seeds)
    expected = [row[metric] for row in recorder.run(run.experiment).curve]
    monkeypatch.setattr(SupervisedWorld, "_on_training", counted)
    outbox = Outbox(tmp_path / "outbox")
    compute(run, outbox)
    curve = curve_of(outbox, run)
    assert [row[metric] for row in curve] == pytest.approx(expected, rel=1e-5)
    assert len(judged) == passes
