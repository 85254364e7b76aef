"""A torch module as a function of a flat vector [d], the form in which strategies see models.

The worlds of problems with networks (`problems/training/world.py`) convert with it.

Fixed: the order of the numbers, since sums over a vector and random codings depend on it.
"""

import torch
from torch import Tensor, nn


class Flat:
    """Map between d numbers and the trained parameters of a module, in the module's order.

    Buffers and frozen parameters are not part of the vector.
    """

    def __init__(self, module: nn.Module) -> None:
        trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.names = list(trained)
        self.shapes = [p.shape for p in trained.values()]
        self.sizes = [p.numel() for p in trained.values()]
        self.d = sum(self.sizes)

    def parameters(self, module: nn.Module) -> list[nn.Parameter]:
        """Return the parameters of `module` in the vector's order."""
        named = dict(module.named_parameters())
        return [named[name] for name in self.names]

    def vector(self, module: nn.Module) -> Tensor:
        """Return the parameters of `module` as a new vector [d]."""
        return self.join([p.detach() for p in self.parameters(module)])

    def join(self, tensors: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
        """Concatenate tensors by parameter, values or gradients, into a new vector [d]."""
        return torch.cat([tensor.reshape(-1) for tensor in tensors])

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the parameters by name, views of `flat` [..., d], for `torch.func.functional_call`."""
        pieces = torch.split(flat, self.sizes, -1)
        return {
            name: piece.view(flat.shape[:-1] + shape)
            for name, shape, piece in zip(self.names, self.shapes, pieces, strict=True)
        }

    def bind(self, module: nn.Module) -> Tensor:
        """Make the parameters of `module` views of a single vector [d], and return the vector.

        Writing into that vector sets the whole module: 2 µs where `functional_call` costs 40.
        """
        flat = self.vector(module)
        for p, view in zip(self.parameters(module), self.views(flat).values(), strict=True):
            p.data = view
        return flat
