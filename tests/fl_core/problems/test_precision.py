"""`precision` of a problem, and the layout of images: what they change, and what they must not."""

from __future__ import annotations

import re
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fl_core.experiment import Experiment
from fl_core.problems.classification import Classification
from fl_core.problems.models.model import Model
from fl_core.problems.precision import gradients
from fl_core.problems.problem import InvalidProblemError, Problem
from fl_core.problems.training.world import SupervisedWorld
from fl_core.recording.recorder import run

CNN = {"name": "digits", "model": "cnn", "clients": 4}


def problem(**keys: Any) -> Classification:
    found = Problem.model_validate({**CNN, **keys})
    assert isinstance(found, Classification)
    return found


def world(**keys: Any) -> SupervisedWorld:
    return problem(**keys).world(0)


def experiment(seed: int, **keys: Any) -> Experiment:
    return Experiment.model_validate(
        {
            "scenario": {
                "problem": {**CNN, **keys},
                "timing": {"durations": "exponential"},
                "budget": {"updates": 240},
                "evaluations": 4,
            },
            "strategy": {"name": "asgd", "local_lr": 0.05, "local": {"name": "sgd", "batch": 16}},
            "seed": seed,
        }
    )


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


def test_a_gradient_repeats_bit_for_bit() -> None:
    first, again = (world().gradient(world().initial(), 0, torch.arange(16)) for _ in range(2))
    assert torch.equal(first, again)


def test_the_default_is_no_part_of_an_identity() -> None:
    plain, named, mixed = (experiment(0, **keys) for keys in ({}, {"precision": "float32"}, BFLOAT16))
    assert "precision" not in plain.scenario.problem.identity()
    assert plain.key == named.key != mixed.key
    assert mixed.scenario.problem.identity()["precision"] == "bfloat16"
    assert Experiment.model_validate(mixed.description()) == mixed


BFLOAT16 = {"precision": "bfloat16"}


@pytest.mark.parametrize("model", ["cnn", "logistic"])
def test_products_have_eight_bits_and_gradients_thirty_two(model: str) -> None:
    """Rounding to 8 bits errs by up to 2⁻⁹ of each factor; to none of it would be float32 by mistake."""
    exact, mixed = world(model=model), world(model=model, **BFLOAT16)
    theta, sample = exact.initial() + 0.01, torch.arange(64)
    wanted, found = (of.gradient(theta, 0, sample) for of in (exact, mixed))
    assert found.dtype is torch.float32
    error = float((found - wanted).norm() / wanted.norm())
    assert 2.0**-14 < error < (0.02 if model == "logistic" else 0.2)
    judged = pytest.approx(
        exact.evaluate(theta).metrics, rel=1e-7
    )  # one of them from bytes, as its gradients
    assert mixed.evaluate(theta).metrics == judged  # in float32


def test_logistic_regression_is_that_of_rounded_factors() -> None:
    """Worked by hand in float64: products of rounded images and weights, then of rounded errors."""
    of = world(model="logistic", **BFLOAT16)
    theta, sample = of.initial() + torch.linspace(-0.1, 0.1, of.d), torch.arange(32)
    images, labels = of.batch(sample)
    x, weight, bias = (
        part.bfloat16().double() for part in (images.flatten(1), theta[:640].view(10, 64), theta[640:])
    )
    logits = (x @ weight.T + bias).bfloat16().double()
    error = (logits.softmax(1) - torch.eye(10, dtype=torch.double)[labels]) / 32
    wanted = torch.cat([(error.bfloat16().double().T @ x).flatten(), error.sum(0)])
    found = of.gradient(theta, 0, sample).double()
    # What is left is the rounding of results to 8 bits, 2⁻⁹ each, and of a logit that lies between two.
    assert (found - wanted).norm() <= 2.0**-7 * wanted.norm()


def test_stacked_jobs_have_the_same_precision() -> None:
    """Their products are rounded in another order: no closer than rounding, and no further."""
    of = world(**BFLOAT16)
    samples = of.samples(0, 0, 2, 16)
    stacked = of.gradients(of.initial().expand(2, -1), torch.zeros(2, dtype=torch.long), samples)
    for row, sample in zip(stacked, samples, strict=True):
        alone = of.gradient(of.initial(), 0, sample)
        assert (row - alone).norm() <= 0.2 * alone.norm()
    assert of.kind != world().kind  # jobs of both never share a stack


@pytest.mark.slow
def test_it_learns_along_the_curve_of_float32() -> None:
    """The mean difference of five seeds, paired, is within what the spread over seeds allows.

    Were precisions alike, single seeds' losses would differ no more than those of different seeds do: with
    standard deviation s of float32 over n seeds, a mean of n differences stays below 4 s √(2/n).
    """
    seeds = range(5)
    exact, mixed = (
        np.array([[row["test/loss"] for row in run(experiment(seed, **keys)).curve] for seed in seeds])
        for keys in ({}, BFLOAT16)
    )
    assert (mixed[:, -1] < log(10) / 2).all()  # ln 10 is the loss of guessing
    bound = 4 * exact.std(0, ddof=1) * sqrt(2 / len(seeds))
    assert (np.abs((mixed - exact).mean(0)) <= bound)[1:].all()
    assert (mixed[:, 1:] != exact[:, 1:]).all()


def test_what_cannot_be_is_refused_in_a_line() -> None:
    with pytest.raises(InvalidProblemError, match=r"^precision tf32 needs a GPU: use --device cuda"):
        world(precision="tf32").gradient(world().initial(), 0, torch.arange(4))
    with pytest.raises(ValidationError, match="precision bfloat16 is incompatible with dtype float64"):
        problem(precision="bfloat16", dtype="float64")
    with pytest.raises(ValidationError, match=re.escape("Input should be 'float32', 'tf32' or 'bfloat16'")):
        problem(precision="float16")
    with pytest.raises(ValidationError, match="precision"):
        Problem.model_validate({"name": "quadratic", "clients": 2, "precision": "bfloat16"})


def test_tensor_cores_are_used_for_gradients_alone() -> None:
    """Afterwards the settings of torch are those of before."""
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    with gradients("tf32", torch.device("cuda")):
        assert products.allow_tf32 and convolutions.allow_tf32
    assert (products.allow_tf32, convolutions.allow_tf32) == before


def test_networks_that_gain_by_it_say_so() -> None:
    """As measured, docs/speed.md."""
    gain = {name for name, member in Model.members().items() if member.channels_last}
    assert gain == {"cnn", "fraboni_cnn", "afl_cnn", "cnn7", "alahyane_cnn"}
