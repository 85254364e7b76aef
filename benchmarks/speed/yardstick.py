"""Yardsticks: the loop that a researcher would write for this one experiment, and nothing else.

Asynchronous SGD with exponential delays, a heap, one thread. `simulate` is the plain one: nn.Module,
autograd, torch.optim.SGD. `simulate_tightly` is the same after a day of tuning: no optimiser, no copies, and
the local step made on the server's model.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


class CharLSTM(nn.Module):
    """Embedding of 8, two layers of nn.LSTM of 100, next symbol from the last output."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, 8)
        self.lstm = nn.LSTM(8, 100, num_layers=2, batch_first=True)
        self.head = nn.Linear(100, symbols)

    def forward(self, inputs: Tensor) -> Tensor:
        """Symbols [B, T] → logits [B, symbols]."""
        outputs, _ = self.lstm(self.embedding(inputs))
        return self.head(outputs[:, -1])


def simulate(
    network: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    parts: list[np.ndarray],
    *,
    updates: int,
    batch: int,
    lr: float,
) -> list[Tensor]:
    """The parameters after so many updates; every client holds one part of the data and is always at work."""
    random = np.random.default_rng(0)
    optimizer = torch.optim.SGD(network.parameters(), lr)
    server = [p.detach().clone() for p in network.parameters()]
    queue = [(random.exponential(), client, server) for client in range(len(parts))]
    heapq.heapify(queue)
    for _ in range(updates):
        now, client, start = heapq.heappop(queue)
        with torch.no_grad():
            for p, value in zip(network.parameters(), start, strict=True):
                p.copy_(value)
        chosen = torch.from_numpy(random.choice(parts[client], batch))
        optimizer.zero_grad()
        loss = cross_entropy(network(inputs[chosen]), labels[chosen])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            pairs = zip(server, network.parameters(), start, strict=True)
            server = [value + (p - before) for value, p, before in pairs]
        heapq.heappush(queue, (now + random.exponential(), client, server))
    return server


Parameters = tuple[Tensor, ...]
Gradient = Callable[[Parameters, Tensor, Tensor], Parameters]  # of parameters, inputs, labels


def simulate_tightly(
    gradient: Gradient,
    first: Parameters,
    inputs: Tensor,
    labels: Tensor,
    parts: list[np.ndarray],
    *,
    updates: int,
    batch: int,
    lr: float,
) -> Parameters:
    """The same parameters as `simulate` from `first`, up to rounding; inputs are normalised floats."""
    random = np.random.default_rng(0)
    server = tuple(p.detach().clone() for p in first)
    queue = [(random.exponential(), client, server) for client in range(len(parts))]
    heapq.heapify(queue)
    for _ in range(updates):
        now, client, start = queue[0]
        held = parts[client]
        chosen = torch.from_numpy(held[random.integers(len(held), size=batch)])  # the draws of `choice`
        step = gradient(start, inputs.index_select(0, chosen), labels.index_select(0, chosen))
        server = torch._foreach_add(server, step, alpha=-lr)
        heapq.heapreplace(queue, (now + random.exponential(), client, server))
    return server


def by_autograd(network: nn.Module) -> Gradient:
    """The gradient of any network: its parameters are pointed at those of a model, none is copied."""
    own = list(network.parameters())

    def gradient(parameters: Parameters, inputs: Tensor, labels: Tensor) -> Parameters:
        for p, value in zip(own, parameters, strict=True):
            p.data = value
        return torch.autograd.grad(cross_entropy(network(inputs), labels), own)

    return gradient


def by_hand(parameters: Parameters, inputs: Tensor, labels: Tensor) -> Parameters:
    """The gradient of logistic regression, W [classes, D] and b [classes], written down."""
    weight, bias = parameters
    flat = inputs.flatten(1)
    error = torch.addmm(bias, flat, weight.T).softmax(1)
    error[torch.arange(len(labels)), labels] -= 1
    error /= len(labels)
    return error.T @ flat, error.sum(0)
