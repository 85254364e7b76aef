"""Logistic regression by hand against autograd on a plain torch loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fl_core.problems.data.data import Data
from fl_core.problems.digits import Digits
from fl_core.problems.models.linear import UnitLength
from fl_core.problems.training.linear_gradients import LinearGradients, sparse_inputs
from fl_core.problems.training.tasks import Classifier

# MNIST's and CIFAR-10's, in units of the stored bytes
NORMAL = {1: ((33.3,), (78.6,)), 3: ((125.3, 123.0, 113.9), (63.0, 62.1, 66.7))}


@pytest.fixture(scope="module", params=[1, 3], ids=["grey", "colour"])
def data(request: pytest.FixtureRequest) -> Data:
    """Noise of 784 pixels, or 16 × 16 pixels in three colours."""
    channels, side = request.param, {1: 28, 3: 16}[request.param]
    random = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (500, channels, side, side), dtype=torch.uint8, generator=random)
    y = torch.randint(0, 10, (500,), generator=random)
    mean, std = NORMAL[channels]
    return Data(x, y, x[:20], y[:20], classes=10, mean=mean, std=std)


def linear(data: Data, dtype: torch.dtype = torch.float32) -> nn.Linear:
    """A layer for such images."""
    return nn.Linear(data.x_train[0].numel(), 10, dtype=dtype)


def classifier(*layers: nn.Module) -> Classifier:
    """The cross-entropy of a network of these layers."""
    return Classifier(nn.Sequential(*layers), lr=0.1)


def by_autograd(data: Data, model: Tensor, sample: Tensor) -> Tensor:
    """Gradient [d] of the mean cross-entropy of nn.Linear on normalised inputs."""
    layer = linear(data, model.dtype)
    weight, bias = model.split([model.numel() - 10, 10])
    layer.load_state_dict({"weight": weight.view(10, -1), "bias": bias})
    mean, std = (torch.tensor(values, dtype=model.dtype)[:, None, None] for values in (data.mean, data.std))
    inputs = (data.x_train[sample].to(model.dtype) - mean) / std
    cross_entropy(layer(inputs.flatten(1)), data.y_train[sample]).backward()
    return torch.cat([layer.weight.grad.reshape(-1), layer.bias.grad])


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
@pytest.mark.parametrize("jobs", [1, 7])
def test_the_gradient_is_that_of_autograd(data: Data, dtype: torch.dtype, bound: float, jobs: int) -> None:
    """For each of J models on a mini-batch of its own; entries are of order 0.1."""
    random = torch.Generator().manual_seed(jobs)
    layer = linear(data, dtype)
    models = 0.1 * torch.randn(jobs, layer.weight.numel() + 10, dtype=dtype, generator=random)
    samples = torch.randint(0, 500, (jobs, 64), generator=random)
    expected = torch.stack([by_autograd(data, *pair) for pair in zip(models, samples, strict=True)])
    by_hand = LinearGradients(classifier(nn.Flatten(), layer), data)
    alone = torch.stack([by_hand.one(*pair)[0] for pair in zip(models, samples, strict=True)])
    for found in (by_hand(models, samples)[0], alone):
        torch.testing.assert_close(found, expected, rtol=0, atol=bound)
    assert float(expected.abs().max()) > 0.05


def test_large_logits_do_not_overflow(data: Data) -> None:
    """A diverging model: gradients stay finite and equal to autograd's."""
    layer = linear(data)
    models = 50 * torch.randn(2, layer.weight.numel() + 10, generator=torch.Generator().manual_seed(1))
    samples = torch.arange(8).reshape(2, 4)
    expected = torch.stack([by_autograd(data, *pair) for pair in zip(models, samples, strict=True)])
    found = LinearGradients(classifier(nn.Flatten(), layer), data)(models, samples)[0]
    assert bool(found.isfinite().all())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_logits_are_those_of_the_layer(data: Data) -> None:
    """On stored images, which the layer gets normalised."""
    layer = linear(data, torch.float64)
    model = torch.cat([layer.weight.reshape(-1), layer.bias]).detach()
    found = LinearGradients(classifier(nn.Flatten(), layer), data).logits(model, data.x_test)
    colours = zip(data.x_test.double().unbind(1), data.mean, data.std, strict=True)
    inputs = torch.stack([(values - mean) / std for values, mean, std in colours], 1)
    torch.testing.assert_close(found, layer(inputs.flatten(1)), rtol=0, atol=1e-12)


def test_it_serves_the_world_where_it_fits_only(data: Data) -> None:
    """One linear layer, all of it trained; anything else goes through autograd."""

    def fits(*layers: nn.Module) -> bool:
        return LinearGradients.fits(classifier(*layers), data)

    layer = linear(data)
    assert fits(nn.Flatten(), layer)
    assert not fits(nn.Flatten(), nn.Linear(layer.in_features, 10, bias=False))
    assert not fits(nn.Flatten(), layer, nn.ReLU())
    assert not fits(UnitLength(), layer)  # of images
    cropped = classifier(nn.Flatten(), layer)
    cropped.augments = True
    assert not LinearGradients.fits(cropped, data)
    layer.bias.requires_grad_(False)
    assert not fits(nn.Flatten(), layer)


def test_a_client_without_data_has_gradient_zero_in_a_stack() -> None:
    """Beside clients that have some."""
    world = Digits(clients=3).world(0)
    models = world.initial().expand(3, -1)
    samples = torch.stack([world.samples(client, 0, 1, 8)[0] for client in range(3)])
    samples[1] = -1  # what `samples` answers for a client without data
    found = world.gradients(models, torch.arange(3), samples)
    assert not found[1].any()
    for client in (0, 2):
        torch.testing.assert_close(found[client], world.gradient(models[client], client, samples[client]))


def counts(share: float) -> Tensor:
    """How often each of 50 words occurs in 300 texts [300, 50], each in about this share of them."""
    random = torch.Generator().manual_seed(3)
    occurs = torch.rand(300, 50, generator=random) < share
    return occurs * torch.randint(1, 256, (300, 50), dtype=torch.uint8, generator=random)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-15), (torch.float32, 1e-6)])
def test_the_gradient_on_word_counts_is_that_of_autograd(dtype: torch.dtype, bound: float) -> None:
    """On log-scaled counts of unit length, texts without a word among them; and so are the logits."""
    random = torch.Generator().manual_seed(4)
    stored, labels = counts(0.05), torch.randint(0, 4, (300,), generator=random)
    layer = nn.Linear(50, 4, dtype=dtype)
    task = classifier(UnitLength(), layer)
    data = Data(stored, labels, stored, labels, classes=4)
    assert LinearGradients.fits(task, data)
    by_hand = LinearGradients(task, data)
    samples = torch.randint(0, 300, (5, 32), generator=random)
    model = torch.cat([layer.weight.detach().flatten(), layer.bias.detach()])
    for found, sample in zip(by_hand(model.expand(5, -1), samples)[0], samples, strict=True):
        layer.zero_grad()
        counted = torch.log1p(stored[sample].to(dtype))
        outputs = layer(counted / counted.norm(dim=1, keepdim=True).clamp(min=1e-12))
        cross_entropy(outputs, labels[sample]).backward()
        expected = torch.cat([layer.weight.grad.flatten(), layer.bias.grad])
        torch.testing.assert_close(found, expected, rtol=0, atol=bound)
        torch.testing.assert_close(by_hand.one(model, sample)[0], expected, rtol=0, atol=bound)
        torch.testing.assert_close(by_hand.logits(model, stored[sample]), outputs, rtol=0, atol=10 * bound)
    assert float(expected.abs().max()) > 0.01


def test_sparse_inputs_give_the_logits_of_dense_ones() -> None:
    """Those of W x + b with x of unit length, by NumPy; texts without a word among them."""
    stored = counts(0.05)
    assert (stored.sum(1) == 0).any()
    layer = nn.Linear(50, 4).double()
    inputs = sparse_inputs(Classifier(nn.Sequential(UnitLength(), layer), 0.1), stored)
    assert inputs.layout is torch.sparse_csr
    x = np.log1p(stored.numpy().astype(float))
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    expected = x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    assert np.abs(layer(inputs).detach().numpy() - expected).max() < 1e-13


def test_inputs_that_are_no_gain_stay_dense() -> None:
    linear = nn.Linear(50, 4)
    scaled = Classifier(nn.Sequential(UnitLength(), linear), 0.1)
    many, wide = counts(0.2), counts(0.05).int()
    assert sparse_inputs(scaled, many) is many
    assert sparse_inputs(scaled, wide) is wide
    few = counts(0.05)
    for layers in ([linear], [nn.Linear(50, 50), linear], [UnitLength(), linear, nn.ReLU()]):
        assert sparse_inputs(Classifier(nn.Sequential(*layers), 0.1), few) is few


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_losses_are_log_sum_exp_less_the_labels_logit(dtype: torch.dtype, bound: float) -> None:
    random = torch.Generator().manual_seed(5)
    logits, labels = torch.randn(300, 7, dtype=dtype, generator=random), torch.arange(300) % 7
    z = logits.double().numpy()
    expected = np.log(np.exp(z).sum(1)) - z[np.arange(300), labels.numpy()]
    found = Classifier(nn.Identity(), 0.1).losses(logits, labels)
    assert found.shape == (300,) and np.abs(found.double().numpy() - expected).max() < bound
