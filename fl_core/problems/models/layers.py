"""Layers for repeatable training: embeddings on a GPU, and dropout with masks from a key.

The networks beside this module are built with them, so that a run can be repeated bit for bit.

Fixed: the mask of a key, to the bit; gradients of an embedding repeat on a GPU.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

# Up to this number of symbols, PyTorch's kernel adds gradients in a fixed order; beyond, it does not.
MAX_REPEATABLE_SYMBOLS = 3072


class Embedding(nn.Embedding):
    """Embedding with gradients that repeat bit for bit on a GPU."""

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.is_cuda and inputs.numel() > MAX_REPEATABLE_SYMBOLS:
            return look_up(inputs, self.weight)
        return super().forward(inputs)


def look_up(inputs: Tensor, weight: Tensor, limit: int = MAX_REPEATABLE_SYMBOLS) -> Tensor:
    """Return the rows of `weight` [symbols, width] for inputs [...], at most `limit` symbols in a call."""
    parts = [embedding(part, weight) for part in torch.split(inputs.flatten(), limit)]
    return torch.cat(parts).view(*inputs.shape, -1)


WORD = 0xFFFFFFFF


class KeyedDropout(nn.Module):
    """Inverted dropout of each unit with probability `share` (Srivastava et al., JMLR 2014).

    Whether unit u of a data point is dropped follows from the data point's key, the layer's number and u
    alone. So the mask travels with the sample, needs no generator, and is the same under `torch.func.vmap`.
    """

    def __init__(self, share: float, layer: int) -> None:
        super().__init__()
        self.share, self.layer = share, layer

    def forward(self, inputs: Tensor, keys: Tensor | None = None) -> Tensor:
        """Return the inputs with units dropped; all of the inputs without keys.

        Args:
            inputs: [B, ...].
            keys: [B], int64 in 0 … 2³² − 1.
        """
        if keys is None or not self.share:
            return inputs
        units = torch.arange(inputs[0].numel(), device=inputs.device) + (self.layer << 24)
        drawn = mixed(mixed(units) ^ keys[:, None])  # [B, units], uniform on 0 … 2³² − 1
        mask = (drawn >= int(self.share * 2**32)).view(inputs.shape)
        return inputs * mask / (1 - self.share)


def mixed(words: Tensor) -> Tensor:
    """Return words of 32 bits mixed, a bijection with independent-looking neighbours (Wellons, 2018)."""
    words = ((words ^ (words >> 16)) * 0x7FEB352D) & WORD
    words = ((words ^ (words >> 15)) * 0x846CA68B) & WORD
    return words ^ (words >> 16)
