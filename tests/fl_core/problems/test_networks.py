"""Networks: sizes, torch's own as reference, dropout by keys."""

from itertools import pairwise

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from fl_core.problems.models.convolutional import CNN7, AnarchicCNN, FraboniCNN, McMahanCNN, SmallCNN
from fl_core.problems.models.layers import KeyedDropout, mixed
from fl_core.problems.models.linear import Linear, Logistic
from fl_core.problems.models.lstm import LSTM, Layer
from fl_core.problems.models.model import Model
from fl_core.problems.models.resnet import ResNet8, ResNet18

COLOUR = (3, 32, 32)
RESNET8 = [  # its convolutions, each with a GroupNorm: channels in and out, side of the kernel
    *((3, 16, 3), (16, 16, 3), (16, 16, 3)),
    *((16, 32, 3), (32, 32, 3), (16, 32, 1)),
    *((32, 64, 3), (64, 64, 3), (32, 64, 1)),
]


def size(model: Model, shape: tuple[int, ...], classes: int = 10) -> int:
    return sum(p.numel() for p in model.build(shape, classes).parameters())


def dense(*widths: int) -> int:
    """Parameters of fully connected layers."""
    return sum((a + 1) * b for a, b in pairwise(widths))


@pytest.mark.parametrize(
    ("model", "shape", "parameters"),
    [
        # convolutions: (inputs · kernel + 1) · outputs
        (FraboniCNN(), COLOUR, 28 * 32 + (32 * 9 + 1) * 64 + (64 * 9 + 1) * 64 + dense(1024, 64, 10)),
        (FraboniCNN(layers=2), COLOUR, 28 * 32 + (32 * 9 + 1) * 64 + dense(64 * 36, 64, 10)),
        (AnarchicCNN(), COLOUR, 76 * 32 + (32 * 25 + 1) * 64 + dense(1600, 512, 128, 10)),
        (AnarchicCNN(), (1, 28, 28), 26 * 32 + (32 * 25 + 1) * 64 + dense(1024, 512, 128, 10)),
        (CNN7(), (1, 28, 28), 50 * 20 + (20 * 49 + 1) * 40 + dense(2560, 10)),
        (SmallCNN(), (1, 28, 28), 26 * 8 + (8 * 25 + 1) * 16 + dense(256, 10)),
        (LSTM(), (80,), 10 * 8 + 400 * (8 + 100 + 2) + 400 * (100 + 100 + 2) + dense(100, 10)),
        (Linear(), (4096,), dense(4096, 10)),
        (McMahanCNN(), (1, 28, 28), 1_663_370),  # McMahan et al., §3
        (Logistic(), (1, 28, 28), 7_850),
        (ResNet8(), COLOUR, sum((a * side**2 + 2) * b for a, b, side in RESNET8) + dense(64, 10)),
    ],
    ids=str,
)
def test_sizes_by_hand(model: Model, shape: tuple[int, ...], parameters: int) -> None:
    assert size(model, shape) == parameters


def test_the_resnet_is_torchvisions_with_another_stem() -> None:
    """11,689,512 parameters with 1,000 classes, 3×3 instead of 7×7, as many in GroupNorm as in BatchNorm."""
    assert size(ResNet18(), COLOUR, 1000) == 11_689_512 - 64 * 3 * (49 - 9)
    network = ResNet18(groups=2).build(COLOUR, 10)
    assert not [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d | nn.MaxPool2d)]
    norms = [layer for layer in network.modules() if isinstance(layer, nn.GroupNorm)]
    assert len(norms) == 20
    assert {norm.num_groups for norm in norms} == {2}
    before_pooling: list[torch.Size] = []
    network.avgpool.register_forward_hook(lambda _, inputs, __: before_pooling.append(inputs[0].shape))
    network(torch.zeros(1, *COLOUR))
    assert before_pooling == [(1, 512, 4, 4)]  # three halvings of 32, where the original has five


def test_groups_that_do_not_divide_the_channels_are_refused() -> None:
    with pytest.raises(ValidationError, match="must be a divisor of 64"):
        Model.model_validate({"name": "resnet18", "groups": 7})


@pytest.mark.parametrize(
    "name", ["fraboni_cnn", "afl_cnn", "cnn7", "small_cnn", "alahyane_cnn", "resnet8", "resnet18"]
)
def test_the_smallest_image_works_and_what_is_no_image_is_refused(name: str) -> None:
    model = Model.model_validate(name)
    assert model.refuses((80,), 10)
    least = model.least  # type: ignore[attr-defined]
    assert model.refuses((1, least - 1, least), 10)
    assert model.build((1, least, least), 3)(torch.zeros(2, 1, least, least)).shape == (2, 3)


@pytest.mark.parametrize(
    ("model", "shape"),
    [(McMahanCNN(), (1, 3, 28)), (McMahanCNN(), (20,)), (LSTM(), COLOUR), (Linear(), COLOUR)],
)
def test_inputs_of_another_kind_are_refused(model: Model, shape: tuple[int, ...]) -> None:
    assert model.refuses(shape, 10)


def test_the_lstm_is_torchs() -> None:
    layer, inputs = Layer(5, 7).double(), torch.randn(3, 11, 5, dtype=torch.float64)
    own = nn.LSTM(5, 7, batch_first=True).double()
    own.load_state_dict({f"{name}_l0": value for name, value in layer.state_dict().items()})
    outputs, _ = own(inputs)
    torch.testing.assert_close(torch.stack(layer(inputs), 1), outputs, rtol=0, atol=1e-14)


def test_the_next_symbol_depends_on_the_first() -> None:
    network = LSTM().build((80,), 80).double()
    text = torch.arange(80, dtype=torch.float64)[None]
    other = text.clone()
    other[0, 0] = 5
    assert not torch.equal(network(text), network(other))


def test_word_counts_are_scaled_to_unit_length() -> None:
    scale, _ = Linear().build((3,), 2)
    scaled = scale(torch.tensor([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]))
    torch.testing.assert_close(scaled[0], torch.tensor([0.0, 1.0, 2.0]) / 5**0.5)  # log 4 = 2 log 2
    assert scaled[1].tolist() == [0, 0, 0]


def test_a_share_of_the_units_is_dropped_and_the_mean_kept() -> None:
    """Binomial: 4 standard errors, over all, over each unit, over each data point."""
    keys = torch.randint(0, 2**32, (400,), generator=torch.Generator().manual_seed(0))
    kept = KeyedDropout(0.25, 1)(torch.ones(400, 30, 10, dtype=torch.float64), keys)
    assert set(kept.unique().tolist()) == {0.0, 1 / 0.75}
    kept = kept.flatten(1)
    for along, count in ((None, 120_000), (0, 400), (1, 300)):
        found = kept.mean() if along is None else kept.mean(along)
        error = (0.25 / 0.75 / count) ** 0.5  # of the mean of a unit that is 0 or 4/3
        assert ((found - 1).abs() < (4 if along is None else 5) * error).all()


def test_masks_of_neighbouring_keys_layers_and_units_are_uncorrelated() -> None:
    ones = torch.ones(200, 500, dtype=torch.float64)
    first = KeyedDropout(0.5, 0)(ones, torch.arange(200)) - 1
    others = {
        "next key": KeyedDropout(0.5, 0)(ones, torch.arange(1, 201)) - 1,
        "next layer": KeyedDropout(0.5, 1)(ones, torch.arange(200)) - 1,
        "next unit": first.roll(1, 1),
    }
    for other in others.values():
        assert abs((first * other).mean().item()) < 5 / 100_000**0.5


def test_masks_follow_from_keys_alone() -> None:
    drop, inputs = KeyedDropout(0.5, 0), torch.rand(6, 40)
    keys = torch.tensor([1, 2, 3, 1, 2, 2**32 - 1])
    torch.manual_seed(0)
    whole = drop(inputs, keys)
    torch.manual_seed(1)
    torch.testing.assert_close(drop(inputs[3:], keys[3:]), whole[3:], rtol=0, atol=0)
    stacked = torch.func.vmap(drop)(inputs.view(2, 3, 40), keys.view(2, 3))
    torch.testing.assert_close(stacked.view(6, 40), whole, rtol=0, atol=0)
    assert torch.equal(whole[0] == 0, whole[3] == 0)
    assert drop(inputs) is inputs


def test_mixing_is_a_bijection_on_a_sample() -> None:
    words = torch.cat([torch.arange(2**16), 2**32 - 1 - torch.arange(2**16)])
    found = mixed(words)
    assert found.unique().numel() == words.numel()
    assert found.min() >= 0 and found.max() < 2**32
