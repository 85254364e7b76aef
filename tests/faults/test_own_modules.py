"""Modules and data of users that once gave wrong results in silence, or a traceback."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faulty_modules import MeanTeacher, Reductions, blobs_tested

import asyncfl
from benchmarks.errors import UserError
from fl_core.execution.stacked import AllInFlight
from fl_core.lightning import pl
from fl_core.metrics import name_fault
from fl_core.parts import imported
from fl_core.problems.problem import InvalidProblemError, Problem
from fl_core.problems.training.centralised_baseline import train
from fl_core.recording.recorder import run


def problem(module: str, data: str = "blobs", clients: int = 5, **fields: Any) -> dict[str, Any]:
    named = {"module": f"faulty_modules:{module}", "data": f"faulty_modules:{data}", "clients": clients}
    return {"name": "own", **named, **fields}


def described(module: str, data: str = "blobs", updates: int = 8, seed: int = 1) -> dict[str, Any]:
    durations = {"name": "two_speed", "share": 0.2, "slow": 5}
    local = {"name": "sgd", "steps": 3, "batch": 8}
    scenario = {"problem": problem(module, data), "timing": {"durations": durations}, "evaluations": 4}
    strategy = {"name": "fedbuff", "buffer": 2, "concurrency": 4, "local_lr": 0.1, "local": local}
    return {"scenario": {**scenario, "budget": {"updates": updates}}, "strategy": strategy, "seed": seed}


def world(*arguments: Any, seed: int = 0, **fields: Any) -> Any:
    return Problem.model_validate(problem(*arguments, **fields)).world(seed)


def curve(*arguments: Any, **others: Any) -> list[dict[str, float]]:
    return asyncfl.simulate(described(*arguments, **others)).record.curve


def test_simulations_in_threads_are_those_of_serial_calls() -> None:
    def losses(seed: int) -> list[float]:
        return [row["test/loss"] for row in curve("Base", updates=4, seed=seed)]

    serial = [losses(seed) for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(losses, range(6))) == serial


@pytest.mark.parametrize("module", ["LogsTime", "LogsUpdates", "RecallAt5"])
def test_names_of_clocks_and_names_that_mlflow_refuses_are_refused(module: str) -> None:
    with pytest.raises(InvalidProblemError):
        Problem.model_validate(problem(module)).check(0)


def test_reserved_and_invalid_names_have_a_fault() -> None:
    reserved = ["time", "updates", "bytes", "clock/updates", "fp/loss", "worst_client/acc", "std/x"]
    invalid = ["test/recall@5", "a//b", "../a", "/a", "", "a\nb", "x" * 300]
    assert all(map(name_fault, [*reserved, *invalid]))
    assert not any(map(name_fault, ["test/loss", "test/accuracy", "distance", "test/top 5", "F1-score"]))


@pytest.mark.parametrize("data", ["column", "onehot"])
def test_labels_in_a_column_or_one_hot_are_divided_as_numbers_are(data: str) -> None:
    skewed = {"name": "class_dirichlet", "alpha": 0.1}
    plain, other = (world("Base", each, 6, partition=skewed).shares for each in ("blobs", data))
    assert [plain.of(i).tolist() for i in range(6)] == [other.of(i).tolist() for i in range(6)]
    np.testing.assert_array_equal(plain.labels, other.labels)


def test_targets_without_labels_are_not_divided_by_label() -> None:
    skewed = {"name": "class_dirichlet", "alpha": 0.1}
    with pytest.raises(InvalidProblemError):
        world("Base", "images", partition=skewed)


def test_metrics_in_a_dictionary_are_of_the_last_evaluation() -> None:
    for row in curve("MetricsInDict", "blobs_tested"):
        assert row["test/acc"] == pytest.approx(row["test/acc_by_hand"])


def test_logged_values_are_reduced_as_lightning_does() -> None:
    w = world("Reductions", "blobs_tested")
    found = w.evaluate(w.first).metrics
    module = Reductions()
    module.load_state_dict(w.at(w.first).network.state_dict())
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*blobs_tested()[1]), 128)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = pl.Trainer(accelerator="cpu", enable_checkpointing=False, **quiet)
    (expected,) = trainer.test(module, loader, verbose=False)
    assert len(expected) == 3
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("module", ["MeanTeacher", "HiddenTeacher", "CountsInClass", "Complex", "Lazy"])
def test_modules_with_hidden_state_or_without_real_parameters_are_refused(module: str) -> None:
    with pytest.raises(ValueError, match=r"self\.|network's"):
        world(module)


def test_a_value_that_is_only_written_is_no_hidden_state() -> None:
    assert world("RemembersLoss").remarks == []


@pytest.mark.parametrize("module", ["KeepsOutputs", "KeepsOutputsByName"])
def test_outputs_that_a_step_keeps_are_emptied_and_remarked(module: str) -> None:
    w = world(module)
    assert any("outputs" in remark for remark in w.remarks)
    for _ in range(3):
        w.gradient(w.first, 0, torch.arange(8))
    assert not w.task.network.kept()


def test_kept_outputs_change_no_result() -> None:
    experiment = asyncfl.Experiment.model_validate(described("KeepsOutputs"))
    one, stacked = run(experiment), run(experiment, execution=AllInFlight())
    plain = run(asyncfl.Experiment.model_validate(described("WideBase")))
    assert one.curve == plain.curve
    assert stacked.curve[-1]["test/loss"] == pytest.approx(one.curve[-1]["test/loss"], rel=1e-5)


def test_a_parameter_without_axes_is_trained() -> None:
    first, *_, last = curve("Temperature", updates=40)
    assert last["test/loss"] < first["test/loss"]


def test_a_step_without_a_loss_is_refused() -> None:
    with pytest.raises(UserError):
        asyncfl.simulate(described("SkipsBatches", updates=40))


@pytest.mark.parametrize("data", ["codes", "hashes"])
def test_labels_may_be_any_integers(data: str) -> None:
    coded, plain = (Problem.model_validate(problem("Base", each)).load() for each in (data, "blobs"))
    assert coded.classes == plain.classes == 3
    assert coded.labels_train.tolist() == plain.labels_train.tolist()


def test_a_label_of_test_data_alone_is_a_class_of_its_own() -> None:
    data = world("Base", "unknown_in_test").data
    assert data.classes == 4
    assert (data.labels_test == 3).sum() == 20
    assert data.labels_train.max() == 2


def test_indices_of_a_partition_file_count_the_points_that_the_function_returned(tmp_path: Path) -> None:
    path = tmp_path / "parts.json"
    path.write_text(str([list(range(350)), list(range(350, 1000))]))
    w = world("Base", "numbered", 2, partition={"name": "file", "path": str(path)})
    first, second = (w.data.x_train[w.shares.of(client)][:, 0] for client in range(2))
    assert first.max() < 350 <= second.min()
    assert len(first) + len(second) == len(w.data.y_train) == 799


def test_a_baseline_is_evaluated_at_step_0() -> None:
    annealed = world("Annealed")
    model = train(annealed, 0, 20)
    assert annealed.evaluate(model).metrics["test/loss"] < 3
    assert annealed.evaluate(model).metrics["test/loss"] == world("Base").evaluate(model).metrics["test/loss"]


def test_a_module_that_sets_the_seed_is_remarked() -> None:
    (remark,) = world("SeedsItself").remarks
    assert "seed" in remark
    models = [world("Base", seed=seed).first for seed in range(3)]
    assert not any(torch.equal(*pair) for pair in pairwise(models))


def test_the_parts_are_what_they_say() -> None:
    assert imported("faulty_modules:MeanTeacher") is MeanTeacher
