"""The yardstick of a whole run: what one would write for this one experiment, evaluations included.

Asynchronous SGD with local steps: nn.Module, autograd, torch.optim.SGD, a heap of arrivals. Data are
normalised once and dealt out evenly; evaluations pass 1,000 data points at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

PASS = 1000  # data points of an evaluation at a time
RATE = 0.01  # no cost depends on it

Loss = Callable[[Tensor, Tensor], Tensor]  # of outputs and targets, the mean


class Split(NamedTuple):
    """Inputs [N, ...] and targets [N]."""

    inputs: Tensor
    targets: Tensor

    def at(self, chosen: Tensor | slice) -> Split:
        """These data points."""
        return Split(self.inputs[chosen], self.targets[chosen])


class Distance(nn.Module):
    """θ − c [B, d] for centres c [B, d]."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.model = nn.Parameter(torch.zeros(d, dtype=torch.float64))

    def forward(self, centres: Tensor) -> Tensor:
        """The distances of the model to the centres."""
        return self.model - centres


def half_square(outputs: Tensor, _: Tensor) -> Tensor:
    """The loss of a quadratic: ‖θ − c‖²/2."""
    return outputs.square().sum(1).mean() / 2


def simulate(
    network: nn.Module,
    loss: Loss,
    train: Split,
    parts: list[np.ndarray],
    evaluate: Callable[[], None],
    *,
    updates: int,
    steps: int,
    batch: int,
    marks: int,
) -> None:
    """Train with so many updates; `evaluate` is called for the first model and at each mark."""
    random = np.random.default_rng(0)
    optimizer = torch.optim.SGD(network.parameters(), RATE)
    server = [p.detach().clone() for p in network.parameters()]
    queue = [(random.exponential(), client, server) for client in range(len(parts))]
    heapq.heapify(queue)
    evaluate()
    for update in range(1, updates + 1):
        now, client, start = heapq.heappop(queue)
        _load(network, start)
        for _ in range(steps):
            mini = train.at(torch.from_numpy(random.choice(parts[client], batch)))
            optimizer.zero_grad()
            loss(network(mini.inputs), mini.targets).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            moved = zip(server, network.parameters(), start, strict=True)
            server = [value + (p - before) for value, p, before in moved]
        heapq.heappush(queue, (now + random.exponential(), client, server))
        if update * marks // updates > (update - 1) * marks // updates:
            _load(network, server)
            evaluate()


def judge(network: nn.Module, loss: Loss, data: Split) -> tuple[float, float]:
    """Mean loss and accuracy of the network on these data."""
    whole, right = 0.0, 0.0
    with torch.no_grad():
        for begin in range(0, len(data.targets), PASS):
            some = data.at(slice(begin, begin + PASS))
            outputs = network(some.inputs)
            whole += float(loss(outputs, some.targets)) * len(some.targets)
            right += float((outputs.argmax(1) == some.targets).sum())
    return whole / len(data.targets), right / len(data.targets)


class Curve:
    """The evaluations of a run: of the test data each time, of every client's data in the last ones."""

    def __init__(
        self, network: nn.Module, loss: Loss, test: Split, clients: list[Split], *, tests: int, trainings: int
    ) -> None:
        self.network, self.loss, self.test, self.clients = network, loss, test, clients
        self.without = tests - trainings  # evaluations before the losses of all clients are judged
        self.rows: list[tuple[float, ...]] = []

    def __call__(self) -> None:
        """Append test loss, accuracy and the mean of the clients' losses; NaN where these are left out."""
        losses = [float("nan")]
        if len(self.rows) >= self.without:
            losses = [judge(self.network, self.loss, own)[0] for own in self.clients]
        self.rows.append((*judge(self.network, self.loss, self.test), sum(losses) / len(losses)))


CROSS_ENTROPY: Loss = cross_entropy


def _load(network: nn.Module, values: list[Tensor]) -> None:
    with torch.no_grad():
        for p, value in zip(network.parameters(), values, strict=True):
            p.copy_(value)
