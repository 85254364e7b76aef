"""Networks: sizes against the papers, shapes, and what is refused."""

import pytest
import torch

from fl_core.problems.models.convolutional import McMahanCNN
from fl_core.problems.models.linear import Logistic
from fl_core.problems.models.model import Model


def size(model: Model, shape: tuple[int, ...]) -> int:
    return sum(p.numel() for p in model.build(shape, 10).parameters())


def test_sizes_are_those_of_the_papers() -> None:
    assert size(McMahanCNN(), (1, 28, 28)) == 1_663_370  # McMahan et al., §3
    assert size(Logistic(), (1, 28, 28)) == 7_850


@pytest.mark.parametrize("model", [Logistic(), McMahanCNN()])
@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 9, 13)])
def test_every_network_gives_one_logit_a_class(model: Model, shape: tuple[int, ...]) -> None:
    assert model.refuses(shape, 7) is None
    assert model.build(shape, 7)(torch.zeros(2, *shape)).shape == (2, 7)


def test_the_cnn_refuses_what_it_would_shrink_to_nothing() -> None:
    assert "4×4 or more, not 1×3×28" in (McMahanCNN().refuses((1, 3, 28), 10) or "")
    assert "not 20" in (McMahanCNN().refuses((20,), 10) or "")
