"""A module as one vector: order, views, stacks."""

import torch
from torch import nn
from torch.func import functional_call

from fl_core.flat import Flat


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_the_vector_is_torchs_own() -> None:
    module = network()
    assert torch.equal(Flat(module).vector(module), nn.utils.parameters_to_vector(module.parameters()))


def test_views_share_memory_and_give_the_module_back() -> None:
    module, x = network(), torch.randn(5, 3)
    flat = Flat(module)
    vector = flat.vector(module)
    views = flat.views(vector)
    assert torch.equal(functional_call(module, views, x), module(x))
    vector.zero_()
    assert all(not view.any() for view in views.values())


def test_stacked_views_are_the_views_of_each_row() -> None:
    module = network()
    flat = Flat(module)
    stack = torch.randn(6, flat.d)
    stacked = flat.views(stack)
    for row in range(6):
        for name, view in flat.views(stack[row]).items():
            assert torch.equal(stacked[name][row], view)


def test_a_bound_module_follows_its_vector() -> None:
    module, other, x = network(), network(), torch.randn(5, 3)
    flat = Flat(module)
    bound = flat.bind(module)
    new = torch.randn(flat.d)
    bound.copy_(new)
    nn.utils.vector_to_parameters(new, other.parameters())
    assert torch.equal(module(x), other(x))
    vector = flat.vector(module)
    assert torch.equal(vector, new)
    bound.zero_()
    assert vector.any()  # a copy


def test_frozen_parameters_and_buffers_stay_out() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2, bias=False))
    module[0].requires_grad_(False)
    flat = Flat(module)
    assert flat.names == ["1.weight", "1.bias", "2.weight"]
    assert flat.d == 4 + 4 + 8
