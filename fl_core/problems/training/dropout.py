"""torch's dropout with masks from a key, so that a module of a user drops equal units under every execution.

`Task.forward` and `UserTask` run networks with torch's own dropout layers inside `KeyedMasks`.

Fixed: the masks of a key, under every execution.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from fl_core.problems.models.layers import WORD, mixed

SATURATED = -1.7580993408473766  # −λα of SELU, to which alpha dropout sets units (Klambauer et al., 2017)

# Number of axes with a decision for each entry, by the number of axes of the input; others are dropped whole.
SINGLY: dict[Callable[..., Any], Callable[[int], int]] = {
    functional.dropout: lambda axes: axes,
    functional.alpha_dropout: lambda axes: axes,
    functional.dropout1d: lambda axes: axes - 1,
    functional.dropout2d: lambda axes: 2,
    functional.dropout3d: lambda axes: axes - 3,
    functional.feature_alpha_dropout: lambda axes: 2,
}
ALPHA = (functional.alpha_dropout, functional.feature_alpha_dropout)


class KeyedMasks(TorchFunctionMode):
    """Context with masks from a key for all dropout of layers, functions and attention.

    Whether the c-th call drops unit u follows from the key, c and u alone. So the masks travel with the
    mini-batch, need no generator, and are the same under `torch.func.vmap`. Without a key nothing is dropped.
    """

    def __init__(self, key: Tensor | None) -> None:
        """Take `key`, an integer 0 … 2³² − 1, int64."""
        super().__init__()
        self.key = key
        self.calls = 0  # of dropout with a share above 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in SINGLY:
            func = partial(self._drop, func)
        elif func is functional.scaled_dot_product_attention:
            func = self._attend
        elif func is functional.multi_head_attention_forward:
            # torch's own function, with our dropout and attention in the place of the two that it calls
            ours = {
                "has_torch_function": lambda tensors: False,
                "dropout": partial(self._drop, functional.dropout),
                "scaled_dot_product_attention": self._attend,
            }
            func = FunctionType(func.__code__, func.__globals__ | ours, func.__name__, func.__defaults__)
        return func(*args, **(kwargs or {}))

    def _drop(
        self,
        function: Callable[..., Any],
        input: Tensor,  # noqa: A002 - as torch calls it
        p: float = 0.5,
        training: bool | None = None,
        inplace: bool = False,
    ) -> Tensor:
        """Return the kept units of `input`, scaled for unchanged expectations."""
        alpha = function in ALPHA
        if not p or not (not alpha if training is None else training):  # torch's defaults differ
            return input
        self.calls += 1
        if self.key is None:
            return input
        axes = SINGLY[function](input.dim())
        mask = self._kept((*input.shape[:axes], *[1] * (input.dim() - axes)), p, input.device)
        if p == 1:
            output = input * 0
        elif alpha:
            scale = ((1 - p) * (1 + p * SATURATED**2)) ** -0.5
            output = scale * torch.where(mask, input, SATURATED) - scale * SATURATED * p
        else:
            output = input * mask / (1 - p)
        return input.copy_(output) if inplace else output

    def _kept(self, shape: tuple[int, ...], p: float, device: torch.device) -> Tensor:
        """Return the kept units, as booleans of a shape."""
        assert self.key is not None
        units = torch.arange(torch.Size(shape).numel(), device=device)
        call = mixed(torch.full((), self.calls, device=device))
        drawn = mixed(mixed(units) ^ mixed(self.key ^ call))  # uniform on 0 … 2³² − 1
        return (drawn >= int(p * (WORD + 1))).view(shape)

    def _attend(  # noqa: PLR0917 - as torch calls it
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> Tensor:
        """Return attention with dropped weights; torch drops inside a fused call, by torch's generator."""
        attend = functional.scaled_dot_product_attention
        if not dropout_p:
            return attend(query, key, value, attn_mask, 0.0, is_causal, **options)
        length = key.shape[-2]
        one_hot = torch.eye(length, dtype=key.dtype, device=key.device).expand(
            *key.shape[:-2], length, length
        )
        weights = attend(query, key, one_hot, attn_mask, 0.0, is_causal, **options)
        return self._drop(functional.dropout, weights, dropout_p) @ value


def drops(network: nn.Module) -> bool:
    """Return whether a network has torch's dropout layers."""
    return any(
        layer.p > 0
        if isinstance(layer, nn.modules.dropout._DropoutNd)
        else isinstance(layer, nn.MultiheadAttention) and layer.dropout > 0
        for layer in network.modules()
    )
