"""The yardstick is the loop it claims to be, and simulations count what they compute."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from workloads import Noise, endless

from benchmarks import speed as measurement
from benchmarks import speed as yardstick
from benchmarks.speed import simulations
from fl_core.execution.auto import Auto
from fl_core.execution.execution import Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight


def test_the_yardstick_of_one_client_is_stochastic_gradient_descent() -> None:
    """One client, always up to date: the same as SGD written down without clients, heap or optimiser."""
    random = torch.Generator().manual_seed(3)
    images, labels = torch.rand(40, 6, generator=random), torch.arange(40) % 4
    network = nn.Linear(6, 4)
    weight, bias = (p.detach().clone().requires_grad_() for p in network.parameters())
    found = yardstick.simulate(network, images, labels, [np.arange(40)], updates=12, batch=5, lr=0.3)
    draws = np.random.default_rng(0)
    draws.exponential()
    for _ in range(12):
        chosen = torch.from_numpy(draws.choice(np.arange(40), 5))
        draws.exponential()
        loss = cross_entropy(images[chosen] @ weight.T + bias, labels[chosen])
        by_weight, by_bias = torch.autograd.grad(loss, (weight, bias))
        with torch.no_grad():
            weight -= 0.3 * by_weight
            bias -= 0.3 * by_bias
    torch.testing.assert_close(found, [weight.detach(), bias.detach()])


def test_the_yardstick_keeps_the_model_that_was_sent() -> None:
    """Two updates of two clients: both are made from the first model, and both are added to the server's."""
    images, labels = torch.eye(20), torch.arange(20) % 3
    network = nn.Linear(20, 3)
    first = [p.detach().clone() for p in network.parameters()]
    draws = np.random.default_rng(0)
    arrivals = draws.exponential(size=20)
    draws.choice(1, 1)
    earliest, second = np.argsort(arrivals)[:2]
    assert arrivals[earliest] + draws.exponential() > arrivals[second]  # so it is not the same client again
    parts = [np.array([client]) for client in range(20)]
    found = yardstick.simulate(network, images, labels, parts, updates=2, batch=1, lr=0.1)
    weight, bias = (p.clone().requires_grad_() for p in first)
    heard = [int(earliest), int(second)]
    loss = cross_entropy(images[heard] @ weight.T + bias, labels[heard], reduction="sum")
    steps = torch.autograd.grad(loss, (weight, bias))
    torch.testing.assert_close(found, [p - 0.1 * g for p, g in zip(first, steps, strict=True)])


@pytest.mark.parametrize(
    "execution", [OneByOne(), AllInFlight(8), Auto()], ids=lambda each: type(each).__name__
)
def test_a_simulation_counts_what_it_computes(execution: Execution) -> None:
    """At least as many updates as asked for, and less than a stack beyond; `auto` is measured beforehand."""
    compute = simulations([endless(Noise(clients=10))], execution)
    assert not getattr(execution, "measuring", False)
    for _ in range(3):
        assert 40 <= compute(40) < 40 + 64


def test_a_rate_is_updates_over_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A millisecond an update, and a stack of 8 more than asked for."""
    now = 0.0

    def compute(updates: int) -> int:
        nonlocal now
        now += (updates + 8) / 1000
        return updates + 8

    monkeypatch.setattr(measurement, "process_time", lambda: now)
    assert measurement.rate(compute, 60) == pytest.approx(1000)
