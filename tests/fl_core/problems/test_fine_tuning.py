"""Fine-tuning: frozen layers stay as they are, what is trained is exchanged; the page's code runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor, nn

from fl_core.experiment import Experiment
from fl_core.lightning import pl
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.problem import Problem
from fl_core.problems.training.centralised_baseline import train

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "fine-tuning.md"


def line() -> tuple[Tensor, Tensor]:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    return x, x.sum(1)


class Normed(pl.LightningModule):
    """A frozen BatchNorm between two lines."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)
        with torch.no_grad():
            for value in (*self.norm.parameters(), self.norm.running_mean, self.norm.running_var):
                value.copy_(torch.rand(4) + 0.5)  # type: ignore[union-attr]
        self.norm.requires_grad_(False).eval()

    def normalised(self, x: Tensor) -> Any:
        return self.norm(x)

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = batch
        return (self.last(self.normalised(self.first(x))).squeeze(1) - y).square().mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD([p for p in self.parameters() if p.requires_grad], 0.1)


class ByHand(Normed):
    """The same as an affine function."""

    def normalised(self, x: Tensor) -> Any:
        norm: Any = self.norm
        return (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


class Training(Normed):
    """BatchNorm in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.norm.train()


def problem(module: str, **fields: Any) -> Problem:
    described = {"name": "own", "module": f"{__name__}:{module}", "data": f"{__name__}:line", "clients": 3}
    return Problem.model_validate({"dtype": "float64"} | described | fields)


def frozen(world: Any) -> dict[str, Tensor]:
    """All that is not trained, by name."""
    state = world.task.state_dict()
    return {name: value.clone() for name, value in state.items() if name not in world.flat.names}


def run(problem: Problem, updates: int) -> Simulation:
    strategy = {"name": "fedbuff", "buffer": 2, "local_lr": 0.05, "local": {"name": "sgd", "batch": 4}}
    scenario = {"problem": problem, "budget": {"updates": updates}}
    simulation = Simulation(Experiment.model_validate({"scenario": scenario, "strategy": strategy}))
    for _ in simulate(simulation):
        pass
    return simulation


def test_a_frozen_batch_norm_is_a_fixed_affine_function() -> None:
    """In gradients one by one and stacked, in evaluation and in the pooled baseline; its buffers stay."""
    w: Any = problem("Normed").world(0)
    hand: Any = problem("ByHand").world(0)
    model, sample = w.initial(), w.samples(0, 0, 1, 8)[0]
    assert w.d == 16 + 5
    expected = hand.gradient(model, 0, sample)
    torch.testing.assert_close(w.gradient(model, 0, sample), expected)
    stacked = w.gradients(model.expand(2, -1), torch.tensor([0, 0]), sample.expand(2, -1))
    torch.testing.assert_close(stacked[1], expected)
    before = frozen(w)
    assert w.evaluate(model).metrics == pytest.approx(hand.evaluate(model).metrics)
    assert w.task.network.last.training and not w.task.network.norm.training
    torch.testing.assert_close(train(w, 0, 5), train(hand, 0, 5))
    assert not w.task.network.norm.training
    assert all(torch.equal(value, before[name]) for name, value in frozen(w).items())


def test_a_batch_norm_in_training_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="BatchNorm1d"):
        problem("Training")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The page's module in a file, and the problem of its suite."""
    folder = tmp_path_factory.mktemp("tune")
    blocks = re.findall(r"```(python|yaml)\n# tune\.\w+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (folder / "tune.py").write_text("".join(text for kind, text in blocks if kind == "python"))
    sys.path.append(str(folder))
    (suite,) = [yaml.safe_load(text) for kind, text in blocks if kind == "yaml"]
    described: dict[str, Any] = suite["problem"]
    return described


def test_a_frozen_resnet_sends_its_head_alone(page: dict[str, Any]) -> None:
    described = Problem.model_validate(page)
    before = frozen(described.world(0))
    simulation = run(described, 2)
    w: Any = simulation.world
    assert w.d == 1539
    assert f"{w.d:,} parameters of the head" in PAGE.read_text()
    assert len(before) == 120  # 60 weights, 20 layers of BatchNorm with three buffers each
    assert all(torch.equal(value, before[name]) for name, value in frozen(w).items())
    assert simulation.server.model.shape == (1539,)
    assert not torch.equal(simulation.server.model, w.initial())


def test_adapters_alone_are_trained(page: dict[str, Any]) -> None:
    described = Problem.model_validate({**page, "module": "tune:Adapted"})
    before = frozen(described.world(0))
    simulation = run(described, 60)
    w: Any = simulation.world
    total = w.d + sum(value.numel() for value in before.values())
    assert f"{w.d:,} of {total:,}" in PAGE.read_text().replace("\n", " ")
    assert all(torch.equal(value, before[name]) for name, value in frozen(w).items())
    reached = w.test(simulation.server.model).metrics
    assert reached["test/accuracy"] > 0.9 and reached["test/loss"] < 0.5  # by guessing 1/3, and ln 3 = 1.099
