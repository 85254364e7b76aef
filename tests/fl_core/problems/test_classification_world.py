"""The world of labelled data, against plain modules, finite differences and slow loops."""

import functools
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor, nn

from fl_core.problems.data.data import Data
from fl_core.problems.digits import Digits
from fl_core.problems.models.model import Model
from fl_core.problems.problem import Problem
from fl_core.problems.training.world import SupervisedWorld

SKEWED = {"name": "class_dirichlet", "alpha": 0.1}


def world(seed: int = 0, **fields: Any) -> SupervisedWorld:
    fields = {"name": "digits", "clients": 12, "partition": SKEWED, "dtype": "float64"} | fields
    return Problem.model_validate(fields).world(seed)


def rest(data: Data) -> Tensor:
    """Normalised training images, by the textbook formula."""
    return (data.x_train.double() - data.mean[0]) / data.std[0]


def plain(model: Tensor) -> nn.Module:
    """An ordinary softmax regression with the parameters `model`, written down anew."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)).to(model.dtype)
    nn.utils.vector_to_parameters(model, network.parameters())
    return network


def plain_loss(model: Tensor, x: Tensor, labels: Tensor) -> float:
    return F.cross_entropy(plain(model)(x), labels).item()


def plain_gradient(w: SupervisedWorld, model: Tensor, indices: Tensor) -> Tensor:
    network = plain(model)
    F.cross_entropy(network(rest(w.data)[indices]), w.data.y_train[indices]).backward()
    return torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])


def somewhere(w: SupervisedWorld, seed: int = 0) -> Tensor:
    """A model that is not the first one."""
    noise = torch.randn(w.d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return w.initial() + 0.05 * noise


def test_the_full_gradient_is_that_of_all_the_clients_data() -> None:
    w = world(clients=2)  # more data a client than a pass takes
    y = somewhere(w)
    for client in range(2):
        start = w.starts[client]
        held = torch.from_numpy(w.held[start : start + w.sizes[client]])
        torch.testing.assert_close(
            w.full_gradient(y, client), plain_gradient(w, y, held), rtol=1e-9, atol=1e-11
        )


def test_evaluation_is_that_of_a_slow_loop() -> None:
    w = world()
    y = somewhere(w)
    network, data = plain(y), w.data
    x_test = (data.x_test.double() - data.mean[0]) / data.std[0]
    right = [
        int(network(x[None]).argmax()) == int(label) for x, label in zip(x_test, data.y_test, strict=True)
    ]
    evaluation = w.evaluate(y)
    assert evaluation.metrics["test/accuracy"] == pytest.approx(np.mean(right), rel=1e-12)
    expected = plain_loss(y, x_test, data.y_test)
    assert evaluation.metrics["test/loss"] == pytest.approx(expected, rel=1e-9)
    parts = Digits(clients=12, partition=SKEWED).partition.split(data.y_train.numpy(), 12, 0)
    x_train = rest(data)
    assert w.labels is not None
    for client, part in enumerate(parts):
        labels = data.y_train[part]
        loss = plain_loss(y, x_train[part], labels)
        assert evaluation.client_loss[client] == pytest.approx(loss, rel=1e-9)
        of_class = [
            np.mean([r for r, y_ in zip(right, data.y_test, strict=True) if y_ == c]) for c in range(10)
        ]
        mixed = np.mean([of_class[int(label)] for label in labels])
        assert evaluation.client_metrics["test/accuracy"][client] == pytest.approx(mixed, rel=1e-9)
        assert w.labels[client].tolist() == torch.bincount(labels, minlength=10).tolist()


def test_the_loss_of_all_is_the_mean_of_the_clients_by_data() -> None:
    w = world(importance="data")
    y = somewhere(w)
    full = sum(w.p[client] * w.full_gradient(y, client) for client in range(w.n))
    torch.testing.assert_close(full, plain_gradient(w, y, torch.arange(1438)), rtol=1e-9, atol=1e-11)
    loss = plain_loss(y, rest(w.data), w.data.y_train)
    assert float(w.p @ w.evaluate(y).client_loss) == pytest.approx(loss, rel=1e-9)


@functools.cache
def shared() -> SupervisedWorld:
    return world()


@given(
    st.integers(0, 11),
    st.integers(0, 10**6),
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from([1, 5, 64]),
)
def test_samples_do_not_depend_on_how_many_steps_follow(
    client: int, job: int, fewer: int, more: int, batch: int
) -> None:
    w, (fewer, more) = shared(), sorted((fewer, more))
    short, long = (w.samples(client, job, steps, batch) for steps in (fewer, more))
    assert short.shape == (fewer, batch) and short.dtype == torch.int64
    assert torch.equal(short, long[:fewer])
    start = w.starts[client]
    assert set(long.flatten().tolist()) <= set(w.held[start : start + w.sizes[client]].tolist())


def test_samples_are_uniform_over_the_clients_data() -> None:
    """Chi-square over a client's data points, at 0.1 %."""
    from scipy.stats import chisquare

    w = shared()
    client = int(np.argsort(w.sizes)[6])
    drawn = torch.cat([w.samples(client, job, 20, 50).flatten() for job in range(40)])
    counts = np.bincount(drawn.numpy(), minlength=1438)
    start = w.starts[client]
    assert chisquare(counts[w.held[start : start + w.sizes[client]]]).pvalue > 1e-3


def test_a_seed_fixes_the_world_and_the_global_generator_plays_no_part() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = world(3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    other, different = world(3), world(4)
    assert torch.equal(one.initial(), other.initial())
    assert one.fingerprint == other.fingerprint
    assert torch.equal(one.samples(2, 9, 3, 4), other.samples(2, 9, 3, 4))
    assert not torch.equal(one.initial(), different.initial())
    assert one.fingerprint["partition"] != different.fingerprint["partition"]
    assert one.fingerprint["data"] == different.fingerprint["data"]


def test_calls_leave_no_trace() -> None:
    """Every answer is a function of its arguments alone, whatever was asked before."""
    w = world()
    a, b, sample = somewhere(w, 1), somewhere(w, 2), w.samples(0, 0, 1, 8)[0]
    kept = a.clone()
    g, e = w.gradient(a, 0, sample), w.evaluate(a)
    first = w.initial()
    w.gradient(b, 0, sample)
    w.evaluate(b)
    w.initial().zero_()
    assert torch.equal(w.gradient(a, 0, sample), g)
    assert w.evaluate(a).metrics == e.metrics
    assert torch.equal(w.initial(), first)
    assert torch.equal(a, kept)
    assert not g.requires_grad and not w.initial().requires_grad


def test_clients_without_data_have_neither_loss_nor_gradient() -> None:
    w = world(clients=40, partition={**SKEWED, "alpha": 0.01, "min_size": 0}, importance="data")
    (empty, *_), full = np.flatnonzero(w.sizes == 0).tolist(), int(w.sizes.argmax())
    y = somewhere(w)
    nothing, something = (w.samples(client, 0, 1, 8)[0] for client in (empty, full))
    assert not w.gradient(y, empty, nothing).any()
    assert not w.full_gradient(y, empty).any()
    stacked = w.gradients(torch.stack([y, y]), torch.tensor([empty, full]), torch.stack([nothing, something]))
    assert not stacked[0].any()
    torch.testing.assert_close(stacked[1], w.gradient(y, full, something), rtol=1e-9, atol=1e-11)
    evaluation = w.evaluate(y)
    assert evaluation.client_loss[empty] == 0 == w.p[empty]
    assert evaluation.client_metrics["test/accuracy"][empty] == pytest.approx(
        evaluation.metrics["test/accuracy"]
    )


def test_a_model_that_is_not_finite_is_evaluated_as_such() -> None:
    w = world()
    evaluation = w.evaluate(torch.full((w.d,), torch.nan, dtype=torch.float64))
    assert np.isnan(evaluation.metrics["test/loss"])
    assert np.isnan(evaluation.client_loss).all()


class Tiny(Model):
    """A user's own network."""

    layer: ClassVar[type[nn.Module]] = nn.Identity

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 6), self.layer(), nn.Linear(6, classes))


class Normed(Tiny):
    """Keeps running statistics."""

    layer: ClassVar[Any] = staticmethod(lambda: nn.BatchNorm1d(6))


def test_a_users_network_is_named_by_its_path() -> None:
    w = world(model=f"{__name__}:Tiny")
    assert w.d == 65 * 6 + 70
    sample = w.samples(0, 0, 1, 8)[0]
    g = w.gradients(w.initial()[None], torch.tensor([0]), sample[None])[0]
    torch.testing.assert_close(g, w.gradient(w.initial(), 0, sample), rtol=1e-9, atol=1e-11)


def test_a_network_whose_loss_is_not_pure_is_refused() -> None:
    """At validation, before anything is loaded."""
    with pytest.raises(ValidationError, match="BatchNorm1d"):
        Digits(model=Normed())


@pytest.mark.parametrize(
    "fields",
    [
        {"clients": 1439},
        {"partition": {"name": "classes_per_client", "classes": 11}},
        {"importance": [1, 2]},
        {"importance": [0] * 12},
        {"dtype": "float16"},
        {"partition": "class_dirichlett"},
        {"model": "logistics"},
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused_before_data_are_loaded(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Problem.model_validate({"name": "digits", "clients": 12} | fields)


@pytest.mark.data("MNIST/raw")
def test_mnist_learns_with_plain_steps() -> None:
    w = world(name="mnist", partition="iid", dtype="float32")
    y = w.initial()
    for job in range(150):
        y = y - 0.1 * w.gradient(y, job % 12, w.samples(job % 12, job, 1, 64)[0])
    assert w.evaluate(y).metrics["test/accuracy"] > 0.84
