"""The state of a user's module besides trained parameters, for finding changes made by a step.

`module_trial` compares the states before and after: clients that work at the same time share one module.

Free: it only finds modules to refuse.
"""

from collections import deque
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from fl_core.lightning import pl, torchmetrics

SAME = 1e-6  # relative difference of two numbers that may be rounding
MAX_ITEMS = 1000  # of a container, which are compared one by one
LIBRARIES = ("torch", "torchmetrics", "pytorch_lightning", "lightning_fabric", "lightning", "numpy")
PLAIN = int | float | complex | str | bytes | None


@dataclass(frozen=True, slots=True)
class Container:
    """A list, deque or dictionary, and the number of items at first sight."""

    size: int
    items: Any

    def empty(self) -> None:
        """Remove the items added later."""
        while len(self.items) > self.size:
            self.items.popitem() if isinstance(self.items, dict) else self.items.pop()


State = Mapping[str, Any]  # values by the path of their attribute, such as "net.scale" or "losses[0]"


def metrics(network: nn.Module) -> list[torchmetrics.Metric]:
    """Return the torchmetrics of a module, also in plain lists and dictionaries."""
    values = (value for layer in network.modules() for value in [layer, *tree_leaves(vars(layer))])
    modules = (module for value in values if isinstance(value, nn.Module) for module in value.modules())
    return list(
        {id(module): module for module in modules if isinstance(module, torchmetrics.Metric)}.values()
    )


def state(network: pl.LightningModule) -> State:
    """Return numbers, texts, tensors and sizes of containers in a module, without metrics.

    Trained and frozen parameters stand for themselves by their sums and norms.
    """
    counted = {id(layer) for metric in metrics(network) for layer in metric.modules()}
    walk = _Walk({id(layer) for layer in network.modules()} | counted)
    internal = vars(pl.LightningModule()).keys() - {"training"}
    for prefix, layer in network.named_modules():
        attributes = {**vars(layer), **dict(layer.named_buffers(recurse=False))}
        for name, value in attributes.items() if id(layer) not in counted else ():
            if name not in internal:
                walk.enter(f"{prefix}.{name}" if prefix else name, value)
    kind = type(network)
    for owner in kind.__mro__[: kind.__mro__.index(pl.LightningModule)]:
        for name, value in vars(owner).items():
            if not name.startswith("__") and isinstance(value, PLAIN | Tensor | list | dict):
                walk.enter(name, value)
    return walk.found | {name: digest(value) for name, value in network.named_parameters()}


class _Walk:
    """A walk through attributes, collecting values by path."""

    def __init__(self, layers: set[int]) -> None:
        self.layers = layers  # by id, modules whose own attributes are visited elsewhere
        self.found: dict[str, Any] = {}
        self.seen: set[int] = set()

    def enter(self, path: str, value: Any) -> None:
        """Collect a value, or the values inside."""
        if isinstance(value, nn.Parameter):
            return
        if isinstance(value, Tensor):
            self.found[path] = value.detach().clone()
        elif isinstance(value, np.ndarray):
            self.found[path] = value.copy()
        elif isinstance(value, PLAIN):
            self.found[path] = value
        elif id(value) not in self.seen:
            self.seen.add(id(value))
            for name, part in self.parts(path, value):
                self.enter(name, part)

    def parts(self, path: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield the contents of a container or object, by path."""
        if isinstance(value, nn.Module):
            if id(value) not in self.layers:  # in a list, say, where torch does not see it
                yield from ((f"{path}.{name}", digest(part)) for name, part in value.state_dict().items())
        elif isinstance(value, MutableMapping):
            self.found[path] = Container(len(value), value)
            yield from ((f"{path}[{key!r}]", part) for key, part in list(value.items())[:MAX_ITEMS])
        elif isinstance(value, list | tuple | deque):
            self.found[path] = Container(len(value), value)
            yield from ((f"{path}[{place}]", value[place]) for place in range(min(len(value), MAX_ITEMS)))
        elif isinstance(value, set | frozenset):
            self.found[path] = len(value)
        elif hasattr(value, "__dict__") and not (callable(value) or shipped(value)):
            yield from ((f"{path}.{name}", part) for name, part in vars(value).items())


def digest(value: Any) -> Any:
    """Return numbers sensitive to a tensor's values: sum and norm."""
    if not isinstance(value, Tensor):
        return None
    numbers = value.detach().double()
    return torch.stack([numbers.sum(), numbers.norm()])


def shipped(value: Any) -> bool:
    """Return whether an object is of a library."""
    return type(value).__module__.partition(".")[0] in LIBRARIES


def changes(old: State, after: State) -> tuple[list[str], list[str]]:
    """Return the paths of different values, and of containers with only more items at the end."""
    differ = [path for path in after if path not in old or not same(old[path], after[path])] + [
        path for path in old if path not in after
    ]
    grown = [
        path
        for path in differ
        if isinstance(old.get(path), Container)
        and isinstance(after.get(path), Container)
        and not isinstance(after[path].items, tuple)
        and after[path].size > old[path].size
    ]
    inside = tuple(f"{path}[" for path in grown)
    different = [
        path for path in differ if path not in grown and not (path not in old and path.startswith(inside))
    ]
    return different, grown


def same(first: Any, second: Any) -> bool:
    """Return whether two values are equal up to rounding."""
    if isinstance(first, Container) and isinstance(second, Container):
        return first.size == second.size
    if isinstance(first, Tensor | np.ndarray) and isinstance(second, Tensor | np.ndarray):
        first, second = torch.as_tensor(first), torch.as_tensor(second)
        return first.shape == second.shape and torch.allclose(
            first.double(), second.double(), rtol=SAME, atol=0, equal_nan=True
        )
    if isinstance(first, int | float) and isinstance(second, int | float):
        return bool(np.isclose(first, second, rtol=SAME, atol=0, equal_nan=True))
    return type(first) is type(second) and bool(first == second)
