"""A long short-term memory for the next character, with torch's kernel or step by step under `vmap`."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from fl_core.parts import Count
from fl_core.problems.models.layers import Embedding
from fl_core.problems.models.model import Model


class LSTM(Model):
    """Embedding of 8, two LSTM layers of 100, next character (Caldas et al., LEAF, 2019, arXiv 1812.01097).

    There are as many input symbols as classes; the prediction is made from the last output.
    """

    name: ClassVar[str] = "lstm"
    pooled_steps: ClassVar[int] = 1000

    embedding: Count = 8  # width of a character's embedding
    hidden: Count = 100  # width of the hidden state
    layers: Count = 2  # stacked LSTM layers

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        if len(shape) != 1:
            return f"model lstm reads sequences of symbols, not inputs of {'×'.join(map(str, shape))}"
        return None

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        widths = [self.embedding, *[self.hidden] * (self.layers - 1)]
        return NextSymbolNetwork(classes, self.embedding, [Layer(width, self.hidden) for width in widths])


class NextSymbolNetwork(nn.Module):
    """The network: symbols [B, T] → logits [B, symbols] of the next symbol."""

    def __init__(self, symbols: int, embedding: int, layers: list[Layer]) -> None:
        super().__init__()
        self.embedding = Embedding(symbols, embedding)
        self.layers = nn.ModuleList(layers)
        self.head = nn.Linear(layers[-1].hidden, symbols)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs = self.embedding(inputs.long()).unbind(1)
        for layer in self.layers:
            outputs = layer(torch.stack(outputs, 1))
        return self.head(outputs[-1])


class Layer(nn.Module):
    """A layer of nn.LSTM; step by step under `torch.func.vmap`, not supported by torch's kernel."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        bound = hidden**-0.5  # torch's initialisation
        sizes = ((4 * hidden, width), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,))
        first = [nn.Parameter(torch.empty(size).uniform_(-bound, bound)) for size in sizes]
        self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh = first

    def forward(self, inputs: Tensor) -> list[Tensor]:
        """Return T outputs [B, hidden] for inputs [B, T, width]."""
        weights: list[Tensor] = [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]
        if isinstance(self.weight_ih, nn.Parameter):  # not stacked: torch's kernel takes half the time
            zeros = inputs.new_zeros(1, len(inputs), self.hidden)
            outputs, *_ = torch.lstm(
                inputs, (zeros, zeros), weights, True, 1, 0.0, self.training, False, True
            )
            return list(outputs.unbind(1))
        driven = linear(inputs, self.weight_ih, self.bias_ih + self.bias_hh)
        h = c = inputs.new_zeros(len(inputs), self.hidden)
        states = []
        for x in driven.unbind(1):
            i, f, g, o = (x + linear(h, self.weight_hh)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return states
