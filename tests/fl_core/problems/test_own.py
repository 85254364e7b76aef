"""Problems of the user's own: a LightningModule, a data function, a partition file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.problems.data import user_data
from fl_core.problems.problem import InvalidProblemError, Problem
from fl_core.recording.recorder import run

MINE = """
import torch
import torchmetrics
import pytorch_lightning as pl
from torch import nn
from fl_core.metrics import Metric


def line(points=40, seed=0):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(points, 3, generator=random)
    return x, x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * torch.randn(points, generator=random)


def by_client():
    return [line(20 + 5 * client, client) for client in range(4)]


def halves():
    return torch.utils.data.TensorDataset(*line()), torch.utils.data.TensorDataset(*line(seed=1))


class Huber(pl.LightningModule):
    metrics = (Metric("test/mae", "Mean absolute error", higher=False, unit="minutes"),)

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 1)
        self.mae = torchmetrics.MeanAbsoluteError()

    def forward(self, x):
        return self.line(x).squeeze(1)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.huber_loss(self(x), y)
        self.log("train/loss", loss)
        return loss

    def test_step(self, batch, index):
        x, y = batch
        self.mae(self(x), y)
        self.log("test/mae", self.mae)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Unoptimised(Huber):
    configure_optimizers = pl.LightningModule.configure_optimizers


class Branching(Huber):
    def training_step(self, batch, index):
        x, y = batch
        errors = (self(x) - y).abs()
        return errors.mean() if errors.mean().item() > 0 else errors.sum()


class Vector(Huber):
    def training_step(self, batch, index):
        x, y = batch
        return (self(x) - y).abs()


class Silent(Huber):
    def test_step(self, batch, index):
        pass


class Broken(Huber):
    def training_step(self, batch, index):
        return self.line(batch[0][:, :2]).mean()


class Empty(pl.LightningModule):
    def training_step(self, batch, index):
        return batch[0].mean()


class Needy(Huber):
    def __init__(self, width):
        super().__init__()


class Untitled(Huber):
    metrics = ("test/mae",)


def fails():
    raise OSError("no such disk")


def three():
    return line() + (torch.zeros(3),)


def uneven():
    x, y = line()
    return x, y[:-1]


def words():
    return "words"
"""


@pytest.fixture(scope="module", autouse=True)
def mine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine_own.py").write_text(dedent(MINE))
    sys.path.append(str(folder))
    yield folder
    sys.path.remove(str(folder))


def problem(module: str = "mine_own:Huber", data: str = "mine_own:line", **fields: Any) -> Problem:
    return Problem.model_validate({"name": "own", "module": module, "data": data, "clients": 4} | fields)


def huber(errors: np.ndarray) -> np.ndarray:
    """½ e² up to 1, |e| − ½ beyond."""
    size = np.abs(errors)
    return np.where(size < 1, size**2 / 2, size - 0.5)


def errors(model: Tensor, x: Tensor, y: Tensor) -> np.ndarray:
    found: np.ndarray = (x.double() @ model[:3] + model[3] - y.double()).numpy()
    return found


def test_the_modules_own_loss_is_descended_and_its_metrics_are_recorded() -> None:
    """Gradient of Huber's loss and MAE by hand."""
    w: Any = problem(dtype="float64").world(0)
    model = w.initial() + 0.3
    sample = w.samples(1, 0, 1, 8)[0]
    x, y = w.data.x_train[sample], w.data.y_train[sample]
    slope = np.clip(errors(model, x, y), -1, 1) / 8
    expected = np.append(slope @ x.double().numpy(), slope.sum())
    np.testing.assert_allclose(w.gradient(model, 1, sample), expected, rtol=1e-9, atol=1e-12)
    stacked = w.gradients(model[None], torch.tensor([1]), sample[None])[0]
    np.testing.assert_allclose(stacked, expected, rtol=1e-9, atol=1e-12)
    found = w.evaluate(model)
    test = errors(model, w.data.x_test, w.data.y_test)
    assert found.metrics["test/mae"] == pytest.approx(np.abs(test).mean(), rel=1e-6)
    assert found.metrics["test/loss"] == pytest.approx(huber(test).mean(), rel=1e-9)
    for client in range(4):
        rows = torch.from_numpy(w.shares.of(client))
        own = huber(errors(model, w.data.x_train[rows], w.data.y_train[rows])).mean()
        assert found.client_loss[client] == pytest.approx(own, rel=1e-9)


def test_data_given_by_client_stay_so_and_the_worst_client_is_known() -> None:
    """Four fifths of 20, 25, 30, 35 points for training; each client's MAE on its own test data, by hand."""
    w: Any = problem(data="mine_own:by_client", metric="test/mae").world(0)
    assert w.sizes.tolist() == [16, 20, 24, 28]
    found = w.evaluate(w.initial())
    owner = w.data.owner_test
    model = w.initial().double()
    for client in range(4):
        own = errors(model, w.data.x_test[owner == client], w.data.y_test[owner == client])
        assert found.client_metrics["test/mae"][client] == pytest.approx(np.abs(own).mean(), rel=1e-5)
    described = {"problem": problem(data="mine_own:by_client", metric="test/mae"), "budget": {"updates": 30}}
    strategy = {"name": "fedbuff", "buffer": 2, "local_lr": 0.1, "local": {"name": "sgd", "batch": 8}}
    record = run(Experiment.model_validate({"scenario": described, "strategy": strategy}))
    assert record.curve[-1]["test/mae"] < record.curve[0]["test/mae"]
    assert record.curve[-1]["worst_client/mae"] == max(record.clients["mae"])


def test_the_worst_client_is_refused_as_the_metric_where_clients_have_no_test_data() -> None:
    problem(data="mine_own:by_client", metric="worst_client/mae").check(0)
    with pytest.raises(InvalidProblemError, match="mine_own:halves"):
        problem(data="mine_own:halves", metric="worst_client/mae").check(0)


def test_test_data_that_are_given_are_used() -> None:
    w: Any = problem(data="mine_own:halves").world(0)
    assert (len(w.data.x_train), len(w.data.x_test)) == (40, 40)


def test_without_an_optimiser_there_is_no_baseline() -> None:
    assert problem().has_baseline and not problem("mine_own:Unoptimised").has_baseline


def test_the_pooled_baseline_uses_the_modules_own_optimiser() -> None:
    """A step of SGD at 0.1 on all data."""
    from fl_core.problems.training.centralised_baseline import train

    w: Any = problem(dtype="float64").world(0)
    first = w.initial()
    moved = train(w, 0, steps=1, batch=1000)
    total = sum(w.full_gradient(first, client) * int(w.sizes[client]) for client in range(4))
    torch.testing.assert_close(moved, first - 0.1 * total / int(w.sizes.sum()), rtol=1e-9, atol=1e-12)


def test_a_module_that_cannot_be_stacked_is_computed_job_by_job() -> None:
    w: Any = problem("mine_own:Branching", dtype="float64").world(0)
    models = torch.stack([w.initial(), w.initial() + 1])
    samples = torch.stack([w.samples(client, 0, 1, 4)[0] for client in (0, 2)])
    stacked = w.gradients(models, torch.tensor([0, 2]), samples)
    assert torch.equal(stacked[1], w.gradient(models[1], 2, samples[1]))
    assert stacked.abs().sum() > 0


def test_a_lightning_module_from_a_model_keeps_its_loss_and_the_problem_scores_it() -> None:
    """Digits with squared error on one-hot labels in place of cross-entropy; accuracy as ever."""
    w: Any = Problem.model_validate(
        {"name": "digits", "clients": 3, "model": f"{__name__}:Brier", "dtype": "float64"}
    ).world(0)
    sample = w.samples(0, 0, 1, 8)[0]
    x, labels = w.batch(sample)
    weight, bias = w.initial()[:640].view(10, 64), w.initial()[640:]
    error = x.flatten(1) @ weight.T + bias - torch.eye(10, dtype=torch.float64)[labels]
    expected = torch.cat([(error.T @ x.flatten(1)).flatten(), error.sum(0)]) * 2 / 80
    torch.testing.assert_close(w.gradient(w.initial(), 0, sample), expected, rtol=1e-9, atol=1e-12)
    found = w.evaluate(w.initial())
    inputs = w.normalise(w.data.x_test).flatten(1)
    right = (inputs @ weight.T + bias).argmax(1) == w.data.y_test
    assert found.metrics["test/accuracy"] == pytest.approx(float(right.double().mean()))
    assert found.client_metrics["test/accuracy"].shape == (3,)


@pytest.mark.parametrize(
    "fields",
    [
        *({"module": f"mine_own:{name}"} for name in ("Nobody", "line", "Needy", "Empty", "Untitled")),
        *({"data": f"mine_own:{name}"} for name in ("nothing", "MINUTES")),
        {"module": "nowhere:Net"},
        {"metric": "test/mea"},
    ],
    ids=str,
)
def test_what_is_known_before_data_are_loaded_is_said_then(fields: dict[str, Any]) -> None:
    (value,) = fields.values()
    with pytest.raises(ValidationError, match=value):
        problem(**fields)


@pytest.mark.parametrize(
    ("module", "data", "place"),
    [
        ("Vector", "line", "training_step"),
        ("Silent", "line", "test/mae"),
        ("Broken", "line", "mine_own:Broken"),
        ("Huber", "fails", r"no such disk \(.*\.py:\d+\)"),
        ("Huber", "three", "40, 40, 3"),
        ("Huber", "uneven", "40 inputs and 39"),
        ("Huber", "words", "str"),
    ],
)
def test_what_the_check_before_a_run_finds_is_one_line(module: str, data: str, place: str) -> None:
    with pytest.raises(InvalidProblemError, match=place) as told:
        problem(f"mine_own:{module}", f"mine_own:{data}").check(0)
    assert "\n" not in str(told.value)


def test_as_many_data_sets_as_clients() -> None:
    with pytest.raises(InvalidProblemError, match="4 data sets"):
        problem(data="mine_own:by_client", clients=5).check(0)


PARTS = {"0": [3, 1], "1": [0, 7, 5], "2": [30]}


def with_parts(path: Path, **fields: Any) -> Problem:
    described = {"name": "digits", "clients": 3, "partition": {"name": "file", "path": str(path)}}
    return Problem.model_validate(described | fields)


@pytest.mark.parametrize("form", ["object", "list", "csv"])
def test_a_partition_file_says_who_holds_what(tmp_path: Path, form: str) -> None:
    path = tmp_path / ("parts.csv" if form == "csv" else "parts.json")
    rows = [f"{client},{index}" for client, own in PARTS.items() for index in own]
    texts = {
        "object": json.dumps(PARTS),
        "list": json.dumps(list(PARTS.values())),
        "csv": "\n".join(["client,index", *rows]),
    }
    path.write_text(texts[form])
    w: Any = with_parts(path).world(0)
    assert [w.shares.of(client).tolist() for client in range(3)] == [[1, 3], [0, 5, 7], [30]]
    key = with_parts(path).model_dump(mode="json")
    path.write_text(texts[form].replace("30", "31"))
    assert with_parts(path).model_dump(mode="json") != key  # what it says is part of a run's identity


def test_a_partition_file_holds_under_validation_data_too(tmp_path: Path) -> None:
    """What is held out is nobody's; all else stays with its client."""
    path = tmp_path / "parts.json"
    path.write_text(json.dumps([list(range(700)), list(range(700, 1400)), list(range(1400, 1438))]))
    whole: Any = with_parts(path).world(0)
    part: Any = with_parts(path, evaluate_on="validation").world(0)
    for client in range(3):
        before = whole.data.x_train[whole.shares.of(client)]
        after = part.data.x_train[part.shares.of(client)]
        kept = part.data.rows[part.shares.of(client)]
        assert 0.8 < len(after) / len(before) < 1
        assert set(kept.tolist()) <= set(whole.shares.of(client).tolist())
        assert torch.equal(after, whole.data.x_train[kept])


@pytest.mark.parametrize(
    "text", ["[[0], [1], [1438]]", "[[0], [1], [0]]", "[[0], [1]]", "[[0], [1], [1.5]]", "{", None]
)
def test_a_partition_file_that_is_wrong_or_missing_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "parts.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=r"parts\.json"):
        with_parts(path).check(0)


def __getattr__(name: str) -> Any:
    """`Brier`, made when it is asked for: Lightning is imported after torchvision was mended."""
    if name != "Brier":
        raise AttributeError(name)
    import pytorch_lightning as pl

    from fl_core.problems.models.model import Model

    class Net(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 10)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.layer(x.flatten(1))
            return out

        def training_step(self, batch: Any, index: int) -> Tensor:
            x, y = batch
            return torch.nn.functional.mse_loss(self(x), torch.nn.functional.one_hot(y, 10).to(x.dtype))

    class Brier(Model):
        """Squared error on one-hot labels."""

        def build(self, shape: tuple[int, ...], classes: int) -> torch.nn.Module:
            return Net()

    return Brier


def test_torchvision_is_repaired_before_data_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that got a problem from another has imported no Lightning, and the user's module may."""
    done = []

    def imported(path: str) -> Any:
        done.append(path)
        return lambda: (torch.ones(20, 1), torch.ones(20, 1))

    monkeypatch.setattr(user_data, "repair", lambda: done.append("repair"))
    monkeypatch.setattr(user_data, "imported", imported)
    user_data.load.__wrapped__("mine:line", 2)
    assert done == ["repair", "mine:line"]
