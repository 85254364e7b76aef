"""What a user's data function may return, as `Data`.

- one data set: tensors `(x, y)`, or a torch `Dataset` of such pairs;
- two of these, `(train, test)`, or four tensors `(x_train, y_train, x_test, y_test)`;
- a list with one of the above for each client.

Where no test data are given, a fifth is kept for testing: of each label, or of each client, drawn from the
stream "own" and the same for every seed. Partitions by label use integer targets as they are, and the
deciles of other numbers. Numbers reach the module in the problem's `dtype`, integers other than bytes as
int64.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from fl_core.parts import imported
from fl_core.problems.data.data import Data, deciles, drawn
from fl_core.problems.problem import InvalidProblemError

TEST = 0.2  # the share that is kept for testing
Pair = tuple[Tensor, Tensor]  # inputs [N, ...] and targets [N, ...]
EXPECTED = (
    "tensors (x, y), a torch Dataset, (train, test) of these, or a list with one of them for each client"
)


@functools.cache
def load(path: str, clients: int) -> Data:
    """Return the data of a user's function, called once per process.

    Args:
        path: The function, package.module:function.
        clients: The number of clients.

    Raises:
        InvalidProblemError: The function fails, or returns something else than the forms above.
    """
    function: Callable[[], Any] = imported(path)
    try:
        returned = function()
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InvalidProblemError(f"data {path} failed: {type(error).__name__}: {reason}") from error
    if not isinstance(returned, list):
        train, test = _halves(path, returned)
        return _data(*(_kept(path, train, _kinds(train[1], train[1])) if test is None else (train, test)))
    if len(returned) != clients:
        raise InvalidProblemError(
            f"data {path} returns {len(returned)} data sets, and there are {clients} clients: set clients"
        )
    return _by_client(path, [_halves(f"{path}, client {at}", own) for at, own in enumerate(returned)])


def _halves(path: str, returned: Any) -> tuple[Pair, Pair | None]:
    """Return training data, and test data where there are any."""
    if isinstance(returned, tuple) and len(returned) == 4:
        return _pair(path, returned[:2]), _pair(path, returned[2:])
    if isinstance(returned, tuple) and len(returned) == 2 and not _is_array(returned[0]):
        return _pair(path, returned[0]), _pair(path, returned[1])
    return _pair(path, returned), None


def _pair(path: str, returned: Any) -> Pair:
    if isinstance(returned, Dataset):
        items = [returned[at] for at in range(len(returned))]  # type: ignore[arg-type]
        if not items or not all(isinstance(item, tuple | list) and len(item) == 2 for item in items):
            raise InvalidProblemError(
                f"data {path}: the items of a Dataset must be pairs of input and target"
            )
        returned = tuple(
            torch.stack([torch.as_tensor(part) for part in half]) for half in zip(*items, strict=True)
        )
    if not (isinstance(returned, tuple) and len(returned) == 2 and all(map(_is_array, returned))):
        raise InvalidProblemError(f"data {path} returns {_called(returned)}, not {EXPECTED}")
    x, y = (_stored(torch.as_tensor(part)) for part in returned)
    if not len(x) or len(x) != len(y):
        raise InvalidProblemError(
            f"data {path} returns {len(x)} inputs and {len(y)} targets; give each input one"
        )
    return x, y.long() if y.dtype is torch.uint8 else y


def _is_array(returned: Any) -> bool:
    return isinstance(returned, Tensor | np.ndarray) and returned.ndim > 0


def _called(returned: Any) -> str:
    if isinstance(returned, tuple):
        return f"a tuple of {', '.join(type(part).__name__ for part in returned) or 'nothing'}"
    return f"a {type(returned).__name__}"


def _stored(part: Tensor) -> Tensor:
    if part.dtype is torch.bool:
        return part.float()
    return part if part.is_floating_point() or part.dtype is torch.uint8 else part.long()


def _by_client(path: str, sets: list[tuple[Pair, Pair | None]]) -> Data:
    halves = [
        _kept(f"{path}, client {at}", train, torch.full((len(train[0]),), at))
        if test is None
        else (train, test)
        for at, (train, test) in enumerate(sets)
    ]
    trains, tests = zip(*halves, strict=True)
    owners = [
        torch.from_numpy(np.repeat(np.arange(len(half)), [len(x) for x, _ in half]))
        for half in (trains, tests)
    ]
    return _data(_joined(path, trains), _joined(path, tests), *owners)


def _kept(path: str, pair: Pair, kinds: Tensor) -> tuple[Pair, Pair]:
    """Return training and test data, a fifth of each kind kept for testing."""
    kept, (x, y) = drawn(kinds, TEST, "own"), pair
    if kept.all() or not kept.any():
        raise InvalidProblemError(
            f"data {path}: of {len(kept)} data points none can be kept for testing; return test data"
        )
    return (x[~kept], y[~kept]), (x[kept], y[kept])


def _joined(path: str, parts: Sequence[Pair]) -> Pair:
    try:
        x, y = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    except RuntimeError as error:
        raise InvalidProblemError(f"data {path}: the clients' data do not have one shape: {error}") from None
    return x, y


def _data(
    train: Pair, test: Pair, owner_train: Tensor | None = None, owner_test: Tensor | None = None
) -> Data:
    kinds = _kinds(train[1], train[1]), _kinds(test[1], train[1])
    classes = int(max(labels.max() for labels in kinds)) + 1
    return Data(
        *train,
        *test,
        classes,
        owner_train=owner_train,
        owner_test=owner_test,
        kind_train=kinds[0],
        kind_test=kinds[1],
    )


def _kinds(y: Tensor, among: Tensor) -> Tensor:
    """Return labels for partitions [N]: integers as they are, else deciles of `among`."""
    if y.ndim > 1:
        return torch.zeros(len(y), dtype=torch.int64)
    return deciles(y, among) if y.is_floating_point() else y - among.min().clamp(max=0)
