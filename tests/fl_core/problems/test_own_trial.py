"""The trial of a user's module: what depends on more than parameters, batch and key is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fl_core.lightning import pl, torchmetrics
from fl_core.problems.problem import InvalidProblemError, Problem


def line() -> tuple[Tensor, Tensor]:
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    return x, x.sum(1)


def problem(module: str, **fields: Any) -> Problem:
    described = {"name": "own", "module": f"{__name__}:{module}", "data": f"{__name__}:line", "clients": 2}
    return Problem.model_validate(described | fields)


class Plain(pl.LightningModule):
    """Squared error of a line; the others differ from it in one thing."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(3, 1)
        self.calls = 0
        self.own = np.random.default_rng(0)
        self.register_buffer("scale", torch.ones(()))
        self.mae = torchmetrics.MeanAbsoluteError()

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = batch
        errors = self.line(x).squeeze(1) - y
        self.mae.update(errors.detach(), torch.zeros_like(y))  # metrics may count
        return errors.square().mean() * self.factor()

    def factor(self) -> Any:
        return 1


class OfTorch(Plain):
    def factor(self) -> Any:
        return torch.rand(())


class OfNumPy(Plain):
    def factor(self) -> Any:
        return np.random.rand()  # noqa: NPY002 - what is refused


class OfPython(Plain):
    def factor(self) -> Any:
        return random.random()


class OfItsOwnGenerator(Plain):
    def factor(self) -> Any:
        return self.own.random()


class Counting(Plain):
    """Its loss changes only after many calls: the counter itself gives it away."""

    def factor(self) -> Any:
        self.calls += 1
        return 1 if self.calls < 1000 else 0.1


class Buffering(Plain):
    scale: Tensor

    def factor(self) -> Any:
        self.scale.mul_(0.9)
        return self.scale.clone()


class NoisyTest(Plain):
    def test_step(self, batch: Any, index: int) -> None:
        self.log("test/noise", np.random.rand())  # noqa: NPY002 - what is refused


@pytest.mark.parametrize(
    ("module", "cause"),
    [
        ("OfTorch", "training_step .* torch's"),
        ("OfNumPy", "training_step .* NumPy's"),
        ("OfPython", "training_step .* Python's"),
        ("OfItsOwnGenerator", "training_step "),
        ("Counting", "training_step .* self.calls"),
        ("Buffering", "training_step .* self.scale"),
        ("NoisyTest", "test_step .* NumPy's"),
    ],
)
def test_what_changes_between_two_calls_is_refused_with_its_cause(module: str, cause: str) -> None:
    states = str((torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()))  # noqa: NPY002
    with pytest.raises(InvalidProblemError, match=cause) as told:
        problem(module).check(0)
    assert "\n" not in str(told.value)
    assert states == str((torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()))  # noqa: NPY002


def test_a_module_that_repeats_itself_is_accepted() -> None:
    problem("Plain").check(0)


class WithoutIndex(pl.LightningModule):
    """As Lightning allows: a step takes the batch alone, or whatever it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(3, 1)

    def training_step(self, rows: Any) -> Tensor:
        return self.off(rows).square().mean()

    def test_step(self, *given: Any) -> None:
        rows, _ = given
        self.log("test/mae", self.off(rows).abs().mean())

    def off(self, rows: Any) -> Tensor:
        return self.line(rows[0]).squeeze(1) - rows[1]


def test_steps_may_leave_out_the_index() -> None:
    w: Any = problem("WithoutIndex").world(0)
    model, sample = w.initial(), w.samples(0, 0, 1, 8)[0]
    same: Any = problem("Plain").world(0)
    torch.testing.assert_close(w.gradient(model, 0, sample), same.gradient(model, 0, sample))
    x, y = w.data.x_test, w.data.y_test
    expected = (x @ model[:3] + model[3] - y).abs().mean()
    assert w.evaluate(model).metrics["test/mae"] == pytest.approx(float(expected))


class Hooked(Plain):
    """What a Trainer would call, and what it counts."""

    def training_step(self, batch: Any, index: int) -> Tensor:
        loss = super().training_step(batch, index) * 0.9**self.current_epoch
        self.log("train/loss", loss)
        return loss

    def configure_gradient_clipping(self, *arguments: Any, **options: Any) -> None:
        raise AssertionError("no one calls it")

    def on_train_batch_start(self, batch: Any, index: int) -> None:
        raise AssertionError("no one calls it")

    def setup(self, stage: str) -> None:
        raise AssertionError("no one calls it")


class Summed(Plain):
    def factor(self) -> Any:
        return self.points

    def training_step(self, batch: Any, index: int) -> Tensor:
        self.points = len(batch[1])
        return super().training_step(batch, index)


class ByHand(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False


def test_what_is_ignored_is_said_by_name() -> None:
    hooks, counters, logged = problem("Hooked").remarks(0)
    assert all(name in hooks for name in ("configure_gradient_clipping", "setup", "on_train_batch_start"))
    assert "current_epoch" in counters and "train/loss" in logged
    assert not problem("Plain").remarks(0)


def test_a_sum_in_place_of_a_mean_is_noticed() -> None:
    (remark,) = problem("Summed").remarks(0)
    assert "test_own_trial:Summed" in remark


def test_manual_optimisation_is_refused() -> None:
    with pytest.raises(ValueError, match="ByHand"):
        problem("ByHand")
