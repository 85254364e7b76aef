"""A stand-in for a GPU where there is none: a device of its own, whose tensors are computed on the CPU.

It is as strict as a GPU: an operation on tensors of both devices raises, and so does `.numpy()`. It is
stricter, too: an index on the CPU raises, for which a program would wait. For torch it is the device "meta",
which knows shapes and no numbers; every tensor there holds one on the CPU, with the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

CPU, THERE = torch.device("cpu"), torch.device("meta")
COPY = torch.ops.aten.copy_.default
CROSSING = {torch.ops.aten._to_copy.default, COPY}  # what moves tensors from one device to another
WAITING = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default}


class MixedDevicesError(RuntimeError):
    """An operation on tensors of both devices."""


class There(Tensor):
    """A tensor on the device; `held` is what is computed with."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, held: Tensor) -> Self:
        about = {"strides": held.stride(), "storage_offset": held.storage_offset(), "dtype": held.dtype}
        with torch.inference_mode(mode=False):  # a view of an ordinary tensor is one
            made: Self = Tensor._make_wrapper_subclass(cls, held.shape, device=THERE, **about)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return computed(func, args, kwargs or {})

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, value: There) -> None:
        assert self.shape == value.shape
        self.held = value.held


class StandIn(TorchDispatchMode):
    """While it is entered, `THERE` is a device that computes."""

    moved = 0  # tensors that came there from the CPU
    waited = 0  # times that something computed there was asked for

    def __enter__(self) -> Self:
        self._functions = WithNumbers()
        self._functions.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._functions.__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = computed(func, args, kwargs or {})
        there = isinstance(args[0], There) if args else False
        if func in CROSSING and isinstance(found, There) > there:
            self.moved += 1
        if there and (func in WAITING or (func in CROSSING and not isinstance(found, There))):
            self.waited += 1
        return found


class WithNumbers(TorchFunctionMode):
    """`torch.tensor` keeps its numbers, which it would not make at all for the device "meta"."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and kwargs.get("device") is not None:
            return func(*args, **{**kwargs, "device": CPU}).to(kwargs["device"])
        return func(*args, **kwargs)


def computed(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """The operation, computed on the CPU; its results are where the device would have them."""
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = any(isinstance(one, There) for one in given)
    if there and func not in CROSSING and any(not isinstance(one, There) and one.ndim for one in given):
        raise MixedDevicesError(f"{func}: {[(tuple(one.shape), str(one.device)) for one in given]}")
    asked = kwargs.get("device")
    if asked is not None:
        kwargs = {**kwargs, "device": CPU}
        there = torch.device(asked) == THERE
    elif func is COPY:
        there = isinstance(args[0], There)
    found = func(*tree_map(_held, args), **tree_map(_held, kwargs))
    if not there:
        return found
    if torch.Tag.inplace_view in func.tags:  # `unsqueeze_` and the like
        with no_dispatch():
            return func(*args, **kwargs)
    return tree_map(lambda one: There(one) if isinstance(one, Tensor) else one, found)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, There) else value
