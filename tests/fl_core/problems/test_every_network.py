"""Every network that a suite can name: gradients one by one, stacked, and by a plain module's backward."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.problems.data.data import Data
from fl_core.problems.models.model import Model
from fl_core.problems.models.transformer import Transformer
from fl_core.problems.supervised import Classification
from fl_core.problems.training.world import SupervisedWorld
from fl_core.recording.recorder import run
from fl_core.streams import torch_stream

SMALL: dict[str, dict[str, Any]] = {
    "distilbert": {"length": 8, "width": 8, "vocabulary": 30},
    "bert": {"length": 8, "width": 8, "vocabulary": 30},
}
SIDE = 18
CLASSIFIERS = [name for name in Model.members() if name != "decoder"]  # whose targets are texts
NETWORKS = [pytest.param(name, marks=pytest.mark.slow if name == "resnet18" else ()) for name in CLASSIFIERS]
DRAWING = [pytest.param(name, marks=() if name in SMALL else pytest.mark.slow) for name in CLASSIFIERS]


class Made(Classification):
    """Thirty inputs of three classes in whatever shape the model takes: images, a text, counts."""

    name: ClassVar[str] = "made"
    classes: ClassVar[int] = 3
    samples: ClassVar[int] = 30

    @property
    def shape(self) -> tuple[int, ...]:
        image = (2, SIDE, SIDE)
        if isinstance(self.model, Transformer):
            return (self.model.length,)
        return image if self.model.refuses(image, 3) is None else (8,)

    def load(self) -> Data:
        return made(self.shape)


@functools.cache
def made(shape: tuple[int, ...]) -> Data:
    """Bytes for images (two channels, so that no gradient is by hand), symbols 0, 1, 2 for the rest."""
    image = len(shape) == 3
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 256 if image else 3, (30, *shape), np.uint8))
    y = torch.arange(30) % 3
    return Data(x, y, x[:9], y[:9], 3, *((((120.0,) * 2, (60.0,) * 2)) if image else ()))


def model_named(name: str) -> Model:
    if name in SMALL and find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    return Model.model_validate({"name": name, **SMALL.get(name, {})})


def problem(name: str) -> Made:
    return Made(model=model_named(name), clients=3, dtype="float64")


@functools.cache
def world(name: str) -> SupervisedWorld:
    return problem(name).world(0)


def plain_gradient(name: str, model: Tensor, indices: Tensor) -> Tensor:
    """A network of its own, not the world's, its parameters set to `model`; loss.backward()."""
    data = made(Made(model=model_named(name)).shape)
    network = model_named(name).build(data.x_train.shape[1:], 3).double()
    nn.utils.vector_to_parameters(model, network.parameters())
    inputs = data.x_train[indices].double()
    if data.mean:
        inputs = (inputs - 120) / 60
    cross_entropy(network(inputs), data.y_train[indices]).backward()
    return torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in network.parameters()]
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_one_by_one_stacked_and_by_a_plain_module(name: str) -> None:
    """Three jobs, three models; relative 1e-10 in float64. Indices alone: what a key would drop is kept."""
    w = world(name)
    random = torch_stream(0, "test")
    models = w.initial() + 0.05 * torch.randn(3, w.d, generator=random, dtype=torch.float64)
    clients = torch.tensor([0, 1, 2])
    samples = torch.stack([SupervisedWorld.samples(w, client, 4, 1, 5)[0] for client in range(3)])
    plain = torch.stack([plain_gradient(name, *pair) for pair in zip(models, samples, strict=True)])
    alone = torch.stack([w.gradient(models[client], client, samples[client]) for client in range(3)])
    stacked = w.gradients(models, clients, samples)
    for found in (alone, stacked):
        assert (found - plain).norm() < 1e-10 * plain.norm()
    assert plain.norm() > 0


@pytest.mark.parametrize("name", DRAWING)
def test_runs_one_by_one_and_stacked(name: str) -> None:
    """FedBuff, two steps a job, with keys where the network draws at random: curves to 1e-7."""
    w = world(name)
    described = Experiment.model_validate(
        {
            "scenario": {"problem": problem(name), "budget": {"updates": 12}, "evaluations": 2},
            "strategy": {
                "name": "fedbuff",
                "buffer": 2,
                "concurrency": 3,
                "local_lr": 0.01,
                "local": {"name": "sgd", "steps": 2, "batch": 3},
            },
        }
    )
    plain, stacked = run(described, w), run(described, w, AllInFlight())
    for one, other in zip(plain.curve, stacked.curve, strict=True):
        assert one == pytest.approx(other, rel=1e-7)
    assert plain.curve[-1]["test/loss"] != plain.curve[0]["test/loss"]


def test_first_and_last_model_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is what would be computed; another model, or one with NaN, is judged anew."""
    w = Made(clients=3, dtype="float64").world(1)
    judged: list[Tensor] = []
    original, on_training = SupervisedWorld._on_test, SupervisedWorld._on_training

    def counted(self: SupervisedWorld, model: Tensor) -> Any:
        judged.append(model)
        return original(self, model)

    def counted_too(self: SupervisedWorld, model: Tensor) -> Any:
        passes.append(model)
        return on_training(self, model)

    passes: list[Tensor] = []
    monkeypatch.setattr(SupervisedWorld, "_on_test", counted)
    monkeypatch.setattr(SupervisedWorld, "_on_training", counted_too)
    first, other = w.initial(), w.initial() + 1
    for model in (first, other, other.clone(), first, other):
        assert w.evaluate(model).metrics == original(w, model).metrics
    assert len(judged) == len(passes) == 2
    for model in (first, other):
        assert w.test(model).client_loss is None  # whatever was evaluated before
        assert (w.evaluate(model).client_loss == w.losses(model)).all()
    assert len(judged) == len(passes) == 2
    other += 1  # written to by someone: not the model that was judged
    assert w.evaluate(other).metrics == original(w, other).metrics
    assert len(judged) == 3
    for _ in range(2):
        w.evaluate(other * torch.nan)
    assert len(judged) == 5
