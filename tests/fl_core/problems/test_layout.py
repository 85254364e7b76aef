"""The layout of images: what it changes, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fl_core.problems.problem import Problem
from fl_core.problems.supervised import Classification
from fl_core.problems.training.world import SupervisedWorld

CNN = {"name": "digits", "model": "cnn", "clients": 4}


def problem(**keys: Any) -> Classification:
    found = Problem.model_validate({**CNN, **keys})
    assert isinstance(found, Classification)
    return found


def world(**keys: Any) -> SupervisedWorld:
    return problem(**keys).world(0)


def plain_gradient(of: SupervisedWorld, network: nn.Module, sample: Tensor) -> Tensor:
    """By torch alone, images in rows: no world, no flat vector."""
    network.load_state_dict({name[len("network.") :]: p for name, p in of.task.state_dict().items()})
    images = of.data.x_train[sample].to(torch.float32)
    if of.data.mean:
        mean, std = (torch.tensor(values)[:, None, None] for values in (of.data.mean, of.data.std))
        images = (images - mean) / std
    loss = cross_entropy(network(images), of.data.y_train[sample])
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(network.parameters()))])


def test_channels_lie_together_where_that_is_faster() -> None:
    of = world()
    (images, _) = of.batch(of.samples(0, 0, 1, 8)[0])
    assert images.stride() == (64, 1, 8, 1)  # [8, 1, 8, 8]: the channel, though alone, is the innermost
    assert of.memory_format == "channels last"
    for other in (world(model="logistic"), world(dtype="float64"), world(model="resnet18")):
        assert other.memory_format == "contiguous"


@pytest.mark.parametrize("model", ["cnn", "alahyane_cnn"])
def test_the_layout_changes_no_more_than_rounding(model: str) -> None:
    """Against plain torch with images in rows; ReLU and pooling have no kink nearby, or it would show."""
    keys = {"name": model, "dropout": 0} if model == "alahyane_cnn" else model
    of = world(model=keys)
    sample = of.samples(0, 0, 1, 16)[0]
    network = problem(model=keys).model.build((1, 8, 8), 10)
    found, wanted = of.gradient(of.initial(), 0, sample), plain_gradient(of, network, sample)
    assert (found - wanted).norm() <= 1e-5 * wanted.norm()
