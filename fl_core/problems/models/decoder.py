"""A decoder-only transformer for the next symbol at every place of a text."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from fl_core.parts import Count
from fl_core.problems.models.layers import Embedding
from fl_core.problems.models.model import Model

DEVIATION = 0.02  # of the first weights, as in GPT-2


class Decoder(Model):
    """Decoder-only transformer, layer norms first, tied embedding (Radford et al., GPT-2, 2019).

    Learned places, no dropout. By default 61,000 parameters for 65 symbols and a context of 32.
    """

    name: ClassVar[str] = "decoder"
    pooled_steps: ClassVar[int] = 200
    pooled_lr: ClassVar[float] = 3e-3

    layers: Count = 2  # blocks of attention and a perceptron
    width: Count = 48  # of the states, divided among the heads
    heads: Count = 4  # of attention

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        if len(shape) != 1:
            return f"model decoder reads sequences of symbols, not inputs of {'×'.join(map(str, shape))}"
        if self.width % self.heads:
            return f"model decoder: width {self.width} must be a multiple of {self.heads} heads"
        return None

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return DecoderNetwork(classes, shape[0], self.layers, self.width, self.heads)


class DecoderNetwork(nn.Module):
    """The network: symbols [B, T] → logits [B, T, symbols] of the symbol after each."""

    mask: Tensor

    def __init__(self, symbols: int, length: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.symbols = Embedding(symbols, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("mask", torch.full((length, length), -torch.inf).triu(1))
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                into_stream = name.endswith("out.weight")  # two in each block
                nn.init.normal_(parameter, std=DEVIATION / (2 * layers) ** 0.5 if into_stream else DEVIATION)

    def forward(self, inputs: Tensor) -> Tensor:
        states = self.symbols(inputs.long()) + self.places.weight[: inputs.shape[-1]]
        for block in self.blocks:
            states = block(states, self.mask)
        return linear(self.norm(states), self.symbols.weight)


class TransformerBlock(nn.Module):
    """Attention to earlier places, and a perceptron; each is added to the input [B, T, width]."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.perceptron_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention_in, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron_in, self.perceptron_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        states = states + self.attend(self.attention_norm(states), mask)
        return states + self.perceptron_out(gelu(self.perceptron_in(self.perceptron_norm(states))))

    def attend(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the attention of each place to itself and to earlier places [B, T, width]."""
        size, length, width = states.shape
        parts = self.attention_in(states).view(size, length, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)  # [B, heads, T, width / heads] each
        scores = queries @ keys.transpose(-2, -1) * (width // self.heads) ** -0.5
        weights = torch.softmax(scores + mask[:length, :length], -1)
        return self.attention_out((weights @ values).transpose(1, 2).reshape(size, length, width))
