"""Regression and multi-label problems, against closed forms, plain formulas and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, r2_score
from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.problems.multilabel import attributes
from fl_core.problems.problem import Problem
from fl_core.problems.regression import Diabetes
from fl_core.problems.training.world import SupervisedWorld
from fl_core.recording.recorder import run

SKEWED = {"name": "class_dirichlet", "alpha": 0.3}


def world(name: str, seed: int = 0, **fields: Any) -> SupervisedWorld:
    described = {"name": name, "clients": 5, "dtype": "float64"} | fields
    found = Problem.model_validate(described).world(seed)
    assert isinstance(found, SupervisedWorld)
    return found


def somewhere(w: SupervisedWorld) -> Tensor:
    return w.initial() + 0.1 * torch.randn(w.d, generator=torch.Generator().manual_seed(1)).double()


def outputs(w: SupervisedWorld, model: Tensor, x: np.ndarray, count: int) -> np.ndarray:
    """x Wᵀ + b by hand."""
    weight, bias = model[:-count].view(count, -1).numpy(), model[-count:].numpy()
    return x @ weight.T + bias


def test_the_optimum_of_linear_regression_is_that_of_least_squares_on_weighted_rows() -> None:
    """Independently: lstsq on rows scaled by √(p_i / n_i), and no gradient left there."""
    w = world("linear_regression", importance=[0.4, 0.3, 0.1, 0.1, 0.1])
    x, y = w.data.x_train.numpy(), w.data.y_train.numpy()
    owner = np.repeat(np.arange(5), 50)
    scale = np.sqrt(w.p[owner] / 50)
    design = np.column_stack([x, np.ones(250)])
    expected = np.linalg.lstsq(scale[:, None] * design, scale * y, rcond=None)[0]
    np.testing.assert_allclose(w.optimum, expected, rtol=1e-9)  # type: ignore[attr-defined]
    slope = sum(w.p[i] * w.full_gradient(torch.from_numpy(expected), i) for i in range(5))
    assert float(slope.norm()) < 1e-10  # type: ignore[union-attr]
    found = w.evaluate(torch.from_numpy(expected))
    assert found.metrics["distance"] < 1e-8
    assert found.metrics["excess_loss"] == pytest.approx(0, abs=1e-12)
    errors = (design @ expected - y) ** 2
    np.testing.assert_allclose(found.client_loss, [errors[owner == i].mean() for i in range(5)], rtol=1e-9)


def test_regression_is_measured_as_by_hand() -> None:
    """MAE, squared error, R² by scikit-learn; a client's MAE is that of its own mix of tenths."""
    w = world("diabetes", partition=SKEWED)
    model, data = somewhere(w), w.data
    predicted = outputs(w, model, data.x_test.numpy(), 1)[:, 0]
    errors = np.abs(predicted - data.y_test.numpy())
    found = w.evaluate(model)
    assert found.metrics["test/mae"] == pytest.approx(errors.mean(), rel=1e-12)
    assert found.metrics["test/loss"] == pytest.approx((errors**2).mean(), rel=1e-12)
    assert found.metrics["test/r2"] == pytest.approx(r2_score(data.y_test.numpy(), predicted), rel=1e-9)
    assert data.kind_train is not None and data.kind_test is not None
    for client in range(5):
        mix = np.bincount(data.kind_train[w.shares.of(client)].numpy(), minlength=10) / w.sizes[client]
        of_kind = [errors[data.kind_test.numpy() == kind].mean() for kind in range(10)]
        assert found.client_metrics["test/mae"][client] == pytest.approx(mix @ of_kind, rel=1e-9)


def test_the_worst_client_is_the_one_of_the_largest_error() -> None:
    """Lower is better: the maximum over clients is recorded, under the name of the task's metric."""
    scenario = {"problem": {"name": "diabetes", "clients": 5, "partition": SKEWED}, "budget": {"updates": 6}}
    described = Experiment.model_validate(
        {"scenario": scenario, "strategy": {"name": "asgd", "local_lr": 0.01}}
    )
    record = run(described)
    end = record.curve[-1]
    assert end["worst_client/mae"] == max(record.clients["mae"]) > end["test/mae"]
    assert {one.name for one in described.scenario.problem.recorded()} == {
        key
        for key in end
        if key not in ("iteration", "updates", "time", "uploads_bytes", "downloads_bytes", "bytes")
    }


def test_diabetes_is_standardised_by_its_training_data() -> None:
    data = Diabetes().load()
    assert data.x_train.shape == (Diabetes.samples, 10)
    np.testing.assert_allclose(data.x_train.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(data.y_train.std(), 1, rtol=1e-12)
    assert data.kind_train is not None
    assert set(data.kind_train.tolist()) == set(range(10))


def test_the_attributes_of_the_digits() -> None:
    """even, at least five, prime, multiple of three, encloses a hole."""
    by_hand = {0: "10011", 2: "10100", 3: "00110", 7: "01100", 8: "11001", 9: "01011"}
    table = attributes(torch.arange(10))
    for digit, row in by_hand.items():
        assert "".join(str(int(value)) for value in table[digit]) == row


def test_the_multi_label_loss_and_metrics_by_hand() -> None:
    """−Σ [t log σ(z) + (1 − t) log(1 − σ(z))] / labels; exact match, share of right labels, macro F1."""
    w = world("digit_attributes", partition=SKEWED)
    model, data = somewhere(w), w.data
    x = (data.x_test.flatten(1).double().numpy() - data.mean[0]) / data.std[0]
    logits, t = outputs(w, model, x, 5), data.y_test.numpy().astype(float)
    sigma = 1 / (1 + np.exp(-logits))
    loss = -(t * np.log(sigma) + (1 - t) * np.log(1 - sigma)).mean()
    right = (sigma > 0.5) == (t > 0.5)
    found = w.evaluate(model).metrics
    assert found["test/loss"] == pytest.approx(loss, rel=1e-9)
    assert found["test/accuracy"] == pytest.approx(right.mean(), rel=1e-12)
    assert found["test/exact_match"] == pytest.approx(right.all(1).mean(), rel=1e-12)
    assert found["test/f1"] == pytest.approx(f1_score(t, sigma > 0.5, average="macro"), rel=1e-6)


@pytest.mark.parametrize("name", ["diabetes", "linear_regression", "digit_attributes"])
def test_gradients_are_finite_differences_one_by_one_and_stacked(name: str) -> None:
    w = world(name)
    y, sample = somewhere(w), w.samples(2, 0, 1, 9)[0]
    single = w.gradient(y, 2, sample)
    stacked = w.gradients(y[None], torch.tensor([2]), sample[None])[0]
    torch.testing.assert_close(stacked, single, rtol=1e-9, atol=1e-12)
    for coordinate in (0, w.d // 2, w.d - 1):
        step = torch.zeros_like(y)
        step[coordinate] = 1e-6
        with torch.no_grad():
            ahead, behind = (float(w.at(y + s).loss(w.batch(sample))) for s in (step, -step))
        assert float(single[coordinate]) == pytest.approx((ahead - behind) / 2e-6, rel=1e-6, abs=1e-8)


@pytest.mark.slow
def test_pooled_training_nears_the_least_squares_of_all_data() -> None:
    """Linear regression of scikit-learn on the same split; test errors within 2 %."""
    from sklearn.linear_model import LinearRegression

    data = Diabetes().load()
    fitted = LinearRegression().fit(data.x_train.numpy(), data.y_train.numpy())
    error = np.abs(fitted.predict(data.x_test.numpy()) - data.y_test.numpy()).mean()
    assert Diabetes().pooled(0)["test/mae"] == pytest.approx(error, rel=0.02)
