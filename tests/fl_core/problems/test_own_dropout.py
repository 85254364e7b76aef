"""Dropout by torch's own layers and functions: it drops, as torch does, and the same in every execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional

from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.lightning import pl
from fl_core.problems.digits import Digits
from fl_core.problems.models.model import Model
from fl_core.problems.problem import InvalidProblemError, Problem
from fl_core.problems.training.centralised_baseline import train
from fl_core.problems.training.dropout import KeyedMasks
from fl_core.problems.training.keyed_world import VARIANTS, crop_and_flip
from fl_core.recording.recorder import run

KEY = torch.tensor(7)


def line() -> tuple[Tensor, Tensor]:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    return x, x.sum(1)


class Dropping(pl.LightningModule):
    """A layer, a function and attention that drop, in one network."""

    share = 0.4

    def __init__(self) -> None:
        super().__init__()
        self.deep = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(self.share))
        self.attention = nn.TransformerEncoderLayer(8, 2, 8, self.share, batch_first=True)
        self.out = nn.Linear(8, 1)

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = batch
        units = functional.dropout(self.attention(self.deep(x)[:, None])[:, 0], self.share, self.training)
        return functional.mse_loss(self.out(units).squeeze(1), y)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


class Keeping(Dropping):
    share = 0.0


class Recurrent(Dropping):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 3, 2, dropout=0.1)


class Plain(Model):
    """A network whose torch layer drops; without a loss of its own."""

    share: float = 0.5

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Dropout(self.share), nn.Linear(64, classes))


class Squares(pl.LightningModule):
    """Squared error on one-hot labels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Any:
        return self.layer(x.flatten(1))

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = batch
        return functional.mse_loss(self(x), functional.one_hot(y, 10).to(x.dtype))


class Squared(Model):
    """A LightningModule from a model."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return Squares()


class Cropped(Digits):
    """Digits that are cropped and flipped."""

    def augments(self) -> bool:
        return True


def own(module: str, **fields: Any) -> Problem:
    described = {"name": "own", "module": f"{__name__}:{module}", "data": f"{__name__}:line", "clients": 3}
    return Problem.model_validate({"dtype": "float64"} | described | fields)


def digits(share: float) -> Problem:
    model = {"name": f"{__name__}:Plain", "share": share}
    return Problem.model_validate({"name": "digits", "clients": 3, "model": model, "dtype": "float64"})


@pytest.mark.parametrize(
    ("function", "shape", "together"),
    [
        (functional.dropout, (40, 50), 0),
        (functional.alpha_dropout, (40, 50), 0),
        (functional.dropout1d, (40, 50, 5), 1),
        (functional.dropout1d, (400, 5), 1),
        (functional.dropout2d, (40, 50, 3, 4), 2),
        (functional.dropout3d, (40, 50, 2, 3, 2), 3),
        (functional.dropout3d, (400, 2, 3, 2), 3),
        (functional.feature_alpha_dropout, (40, 50, 3, 4), 2),
    ],
)
def test_what_is_dropped_is_what_torch_drops(
    function: Callable[..., Tensor], shape: tuple[int, ...], together: int
) -> None:
    """Of ones it leaves the two values that torch leaves, channels whole, the share of one in four."""
    ones = torch.ones(shape, dtype=torch.float64)
    with KeyedMasks(KEY):
        left, again = function(ones, 0.25, True), function(ones, 0.25, True)
        into = ones.clone()
        assert function(into, 0.25, True, True) is into and not torch.equal(into, ones)
        assert torch.equal(function(ones, 0.25, False), ones)
        assert not function(ones, 1.0, True).any()
    values = sorted(set(left.flatten().tolist()))
    assert values == pytest.approx(sorted(set(function(ones, 0.25, True).flatten().tolist())))
    units = left.flatten(-together) if together else left[..., None]
    assert (units == units[..., :1]).all()
    share = (units[..., 0] == values[0]).double().mean()
    assert share == pytest.approx(0.25, abs=4 * (0.1875 / units[..., 0].numel()) ** 0.5)
    assert not torch.equal(left, again)


def test_attention_drops_its_weights() -> None:
    """softmax(Q Kᵀ / √d), causal, each weight kept and scaled or dropped as a unit, times V."""
    q, k, v = torch.randn(3, 2, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with KeyedMasks(KEY):
        found = functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5, is_causal=True)
    with KeyedMasks(KEY):
        kept = functional.dropout(torch.ones(2, 5, 5, dtype=torch.float64))
    scores = (q @ k.transpose(1, 2) / 2).masked_fill(~torch.ones(5, 5).tril().bool(), float("-inf"))
    torch.testing.assert_close(found, scores.softmax(-1) * kept @ v)


def test_masks_are_those_of_the_key_under_vmap_too() -> None:
    def masks(key: Tensor) -> Tensor:
        with KeyedMasks(key):
            return functional.dropout(torch.ones(30), 0.5)

    keys = torch.tensor([1, 2, 2**32 - 1])
    stacked = vmap(masks)(keys)
    assert torch.equal(stacked, torch.stack([masks(key) for key in keys]))
    assert (stacked[0] != stacked[1]).any() and (stacked[1] != stacked[2]).any()


@pytest.mark.parametrize("problem", [own("Dropping"), digits(0.5)])
def test_jobs_drop_the_same_one_by_one_and_stacked(problem: Problem) -> None:
    scenario = {"problem": problem, "budget": {"updates": 12}}
    strategy = {"name": "fedbuff", "buffer": 2, "local_lr": 0.1, "local": {"name": "sgd", "steps": 3}}
    experiment = Experiment.model_validate({"scenario": scenario, "strategy": strategy})
    torch.manual_seed(0)
    curve = [row["test/loss"] for row in run(experiment, execution=OneByOne()).curve]
    torch.manual_seed(1)  # which must not matter
    stacked = [row["test/loss"] for row in run(experiment, execution=AllInFlight()).curve]
    assert stacked == pytest.approx(curve, rel=1e-9)


@pytest.mark.parametrize(
    ("dropping", "keeping"), [(own("Dropping"), own("Keeping")), (digits(0.9), digits(0.0))]
)
def test_training_drops_and_evaluation_does_not(dropping: Problem, keeping: Problem) -> None:
    drops: Any = dropping.world(0)
    keeps: Any = keeping.world(0)
    model, sample = drops.initial(), drops.samples(0, 0, 1, 8)[0]
    assert torch.equal(model, keeps.initial())
    assert torch.equal(sample[:, 0], keeps.samples(0, 0, 1, 8)[0])  # the same data points
    dropped, whole = drops.gradient(model, 0, sample), keeps.gradient(model, 0, sample[:, 0])
    assert (dropped - whole).norm() > 0.1 * whole.norm()
    torch.testing.assert_close(drops.losses(model), keeps.losses(model))
    assert drops.test(model).metrics == pytest.approx(keeps.test(model).metrics)
    torch.testing.assert_close(drops.full_gradient(model, 0), keeps.full_gradient(model, 0))


def test_the_pooled_baseline_of_a_module_drops_reproducibly() -> None:
    worlds: Any = [own(module).world(0) for module in ("Dropping", "Dropping", "Keeping")]
    first, again, kept = (train(world, 0, steps=3, batch=16) for world in worlds)
    assert torch.equal(first, again) and not torch.equal(first, kept)


def test_dropout_out_of_reach_of_keys_is_refused() -> None:
    with pytest.raises(ValueError, match=r"layer lstm \(LSTM\)"):
        own("Recurrent")


def test_a_network_has_keys_or_torchs_dropout() -> None:
    class Keyed(Plain):
        def keyed(self) -> bool:
            return True

    with pytest.raises(InvalidProblemError, match="must not be keyed"):
        digits(0.5).model_copy(update={"model": Keyed()}).world(0)


def test_a_module_of_ones_own_gets_the_images_that_the_keys_crop_and_flip() -> None:
    described = {
        "name": f"{__name__}:Cropped",
        "clients": 3,
        "model": f"{__name__}:Squared",
        "dtype": "float64",
    }
    w: Any = Problem.model_validate(described).world(0)
    model, sample = w.initial(), w.samples(0, 0, 1, 8)[0]
    images = w.normalise(crop_and_flip(w.data.x_train[sample[:, 0]], sample[:, 1] % VARIANTS)).flatten(1)
    labels = torch.eye(10, dtype=torch.float64)[w.data.y_train[sample[:, 0]]]
    error = images @ model[:640].view(10, 64).T + model[640:] - labels
    expected = torch.cat([(error.T @ images).flatten(), error.sum(0)]) * 2 / 80
    torch.testing.assert_close(w.gradient(model, 0, sample), expected)
    torch.testing.assert_close(w.gradients(model[None], torch.tensor([0]), sample[None])[0], expected)


@pytest.mark.parametrize("weights", [True, False])
def test_attention_as_a_layer_drops_by_the_key_beside_other_modes(weights: bool) -> None:
    """`torch.device` as a context is a mode as well; torch's generator stays where it is."""
    layer, x = nn.MultiheadAttention(4, 2, dropout=0.5), torch.ones(3, 2, 4)
    state = torch.get_rng_state()
    with KeyedMasks(KEY):
        alone, _ = layer(x, x, x, need_weights=weights)
    with torch.device("cpu"), KeyedMasks(KEY):
        beside, _ = layer(x, x, x, need_weights=weights)
    assert torch.equal(alone, beside) and torch.equal(state, torch.get_rng_state())
    assert not torch.equal(alone, layer.eval()(x, x, x)[0])
