"""Results of a user's data function, as `Data`; problem `own` calls `load`.

A function may return:

- one data set: tensors `(x, y)`, a torch `Dataset`, or tensors in another structure: `((a, b), y)`;
- two of these, `(train, test)`, or four tensors `(x_train, y_train, x_test, y_test)`;
- a list with one of the above for each client, alone or with test data for all as `(list, test)`;
- dicts with an entry `client`, which modules do not see.

Items of a Dataset may be tuples, dicts and lists of numbers and tensors, nested. Items that differ in shape
or hold anything else need `collate_fn`, which makes a mini-batch of a list of them. Where no test data are
given, a fifth is kept for testing: of each label, or of each client, drawn from the stream "own" and the same
for every seed. Partitions by label use integer and one-hot targets, and the deciles of other numbers; the
target is the last of a tuple, or a dict's `y`, `label`, `labels` or `target`. Numbers reach the module in the
problem's `dtype`, integers other than bytes as int64.

Fixed: what a function may return, since users have written theirs, and the fifth that is drawn.
"""

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import isnan
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import DataLoader, Dataset, IterableDataset

from fl_core.import_guard import place, text
from fl_core.parts import imported
from fl_core.problems.data.data import Data, deciles, drawn
from fl_core.problems.data.items import Items, as_column
from fl_core.problems.problem import InvalidProblemError
from fl_core.torchvision_repair import repair

TEST = 0.2  # share held out for testing
CLIENT = "client"  # entry of a dict with the client of a data point
EXPECTED = (
    "tensors (x, y), a torch Dataset, (train, test) of these, or a list with one of them for each client, "
    "alone or as (list, test)"
)
Collate = Callable[[list[Any]], Any]


class Half(NamedTuple):
    """Training or test data, and the client of each data point, where known."""

    items: Items
    clients: list[Any] | None = None
    rows: Tensor | None = None  # [N], indices among `published` data points, where some are kept for testing
    published: int = 0

    def take(self, mask: Tensor) -> Self:
        """Return the data points where `mask` [N] is true."""
        clients = self.clients and [name for name, taken in zip(self.clients, mask, strict=True) if taken]
        return self._replace(
            items=self.items.take(mask), clients=clients, rows=mask.nonzero().flatten(), published=len(mask)
        )


@functools.cache
def load(path: str, clients: int, collate: str | None = None) -> Data:
    """Return the data of a user's function, called once per process.

    Args:
        path: The function, package.module:function.
        clients: The number of clients.
        collate: The function that makes a mini-batch of a list of items, package.module:function.

    Raises:
        InvalidProblemError: The function fails, or returns something else than the forms above.
    """
    repair()  # the user's module may import Lightning, and nothing in this process has so far
    function: Callable[[], Any] = imported(path)
    collate_fn: Collate | None = imported(collate) if collate else None
    try:
        returned = function()
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {' '.join(text(error).split())}{place(error)}"
        raise InvalidProblemError(f"data {path} failed: {reason}") from error
    test = None
    pair = isinstance(returned, tuple) and len(returned) == 2 and not any(map(_is_array, returned))
    if pair and isinstance(returned[0], list):
        returned, test = returned
    if not isinstance(returned, list):
        train, test = _halves(path, returned, collate_fn)
        if test is None:
            labels = train.items.labels()
            kinds = _kinds(labels, labels) if train.clients is None else _places(train.clients, _names(train))
            train, test = _kept(path, train, kinds)
        return _data(path, train, test)
    if len(returned) != clients:
        raise InvalidProblemError(
            f"data {path} returns {len(returned)} data sets for {clients} clients: set clients to "
            "the number of data sets"
        )
    if test is not None:
        trains = [_half(f"{path}, client {at}", part, collate_fn) for at, part in enumerate(returned)]
        return _data(path, _joined(path, trains), _half(path, test, collate_fn))
    return _by_client(
        path,
        [_halves(f"{path}, client {at}", part, collate_fn) for at, part in enumerate(returned)],
    )


def _halves(path: str, returned: Any, collate: Collate | None) -> tuple[Half, Half | None]:
    """Return training data, and test data if any."""
    if isinstance(returned, tuple) and len(returned) == 4 and all(map(_is_array, returned)):
        return _half(path, returned[:2], collate), _half(path, returned[2:], collate)
    if isinstance(returned, tuple) and len(returned) == 2 and not any(map(_is_array, returned)):
        return _half(path, returned[0], collate), _half(path, returned[1], collate)
    return _half(path, returned, collate), None


def _half(path: str, returned: Any, collate: Collate | None) -> Half:
    """Return a single data set."""
    if isinstance(returned, DataLoader):
        raise InvalidProblemError(
            f"data {path} returns a DataLoader: return its dataset, since each client draws its own "
            "mini-batches, and name its collate_fn as problem.collate_fn"
        )
    if isinstance(returned, IterableDataset):
        raise InvalidProblemError(
            f"data {path} returns an IterableDataset, whose data points have no numbers to draw: return a "
            "Dataset with __len__ and __getitem__"
        )
    if isinstance(returned, Dataset):
        return _of_points(path, _points(path, returned), collate)
    columns, clients = _without_clients(returned)
    leaves = tree_leaves(columns)
    if not isinstance(columns, tuple | dict) or not leaves or not all(map(_is_array, leaves)):
        raise InvalidProblemError(f"data {path} returns {_called(returned)}, not {EXPECTED}")
    lengths = [len(leaf) for leaf in leaves]
    if clients is not None:
        clients = _named(path, np.ravel(clients.cpu() if isinstance(clients, Tensor) else clients).tolist())
        lengths.append(len(clients))
    if not any(lengths):
        raise InvalidProblemError(f"data {path} returns no data points: return at least one")
    if len(set(lengths)) > 1:
        if len(lengths) == 2 and isinstance(columns, tuple):
            raise InvalidProblemError(
                f"data {path} returns {lengths[0]} inputs and {lengths[1]} targets: return one "
                "target for each input"
            )
        raise InvalidProblemError(
            f"data {path} returns tensors of {', '.join(map(str, lengths))} data points: return the "
            "same number in each"
        )
    items = _items(path, columns)
    if collate is not None:
        items = Items([items[torch.tensor(place)] for place in range(len(items))], collate)
    return Half(items, clients)


def _items(path: str, columns: Any) -> Items:
    """Return tensors of all data points as items; raise InvalidProblemError for other values."""
    try:
        return Items(tree_map(as_column, columns)).plain()
    except TypeError as error:
        raise InvalidProblemError(f"data {path}: {error}, not numbers") from None


def _points(path: str, dataset: Dataset[Any]) -> list[Any]:
    """Return all items of a Dataset, read by number."""
    try:
        points = [dataset[place] for place in range(len(dataset))]  # type: ignore[arg-type]
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(text(error).split())}{place(error)}"
        raise InvalidProblemError(
            f"data {path}: reading a data point of its Dataset failed: {reason}"
        ) from error
    if not points:
        raise InvalidProblemError(f"data {path} returns a Dataset without data points: return at least one")
    return points


def _of_points(path: str, points: list[Any], collate: Collate | None) -> Half:
    """Return the items of a Dataset, with the client of each if given."""
    pairs = [_without_clients(point) for point in points]
    clients = [client.item() if hasattr(client, "item") else client for _, client in pairs]
    try:
        items = Items.of([point for point, _ in pairs], collate).plain()
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(
            f"data {path}: {error}: set problem.collate_fn to a function, package.module:name, that "
            "makes a mini-batch from a list of items"
        ) from None
    unknown = all(client is None for client in clients)
    return Half(items, None if unknown else _named(path, clients))


def _named(path: str, clients: list[Any]) -> list[Any]:
    """Return the clients of data points, each a number or a text."""
    for client in clients:
        unnamed = isinstance(client, bool) or not isinstance(client, int | float | str)
        if unnamed or (isinstance(client, float) and isnan(client)):
            raise InvalidProblemError(
                f"data {path}: the client of a data point must be a number or a text, not {client!r}"
            )
    return clients


def _without_clients(structure: Any) -> tuple[Any, Any]:
    """Return a structure without the entry `client`, and the entry, or None."""
    if isinstance(structure, dict) and CLIENT in structure:
        return {name: part for name, part in structure.items() if name != CLIENT}, structure[CLIENT]
    return structure, None


def _is_array(part: Any) -> bool:
    return isinstance(part, Tensor | np.ndarray) and part.ndim > 0


def _called(returned: Any) -> str:
    """Return the type of a wrong result in words."""
    if isinstance(returned, tuple):
        return f"a tuple of {', '.join(type(part).__name__ for part in returned) or 'nothing'}"
    return f"a {type(returned).__name__}"


def _by_client(path: str, halves: list[tuple[Half, Half | None]]) -> Data:
    """Return the data of a list with training, and perhaps test data for each client."""
    pairs = [
        _kept(f"{path}, client {client}", train, torch.full((len(train.items),), client))
        if test is None
        else (train, test)
        for client, (train, test) in enumerate(halves)
    ]
    trains, tests = zip(*pairs, strict=True)
    return _data(path, _joined(path, trains), _joined(path, tests))


def _kept(path: str, half: Half, kinds: Tensor) -> tuple[Half, Half]:
    """Return training and test data, a fifth of each kind kept for testing."""
    test_mask = drawn(kinds, TEST, "own")
    if test_mask.all() or not test_mask.any():
        raise InvalidProblemError(
            f"data {path}: {len(test_mask)} data points are too few to keep some for testing: "
            "return more, or test data as well"
        )
    return half.take(~test_mask), half.take(test_mask)


def _joined(path: str, halves: Sequence[Half]) -> Half:
    """Return all clients' data, concatenated."""
    first, *rest = (half.items for half in halves)
    try:
        items = first.joined(*rest)
    except ValueError as error:
        raise InvalidProblemError(f"data {path}: the data of the clients differ in shape: {error}") from None
    sizes = [half.published or len(half.items) for half in halves]
    rows = [
        begin + (torch.arange(len(half.items)) if half.rows is None else half.rows)
        for begin, half in zip(accumulate(sizes, initial=0), halves, strict=False)
    ]
    clients = [client for client, half in enumerate(halves) for _ in range(len(half.items))]
    return Half(items, clients, torch.cat(rows), sum(sizes))


def _data(path: str, train: Half, test: Half) -> Data:
    """Return training and test data as `Data`, with labels for partitions and owners."""
    labels = train.items.labels(), test.items.labels()
    kinds = [_kinds(labels[0], labels[0]), _kinds(labels[1], labels[0])]
    fields: dict[str, Any] = {
        "classes": int(max(kind_values.max() for kind_values in kinds)) + 1,
        "kind_train": kinds[0],
        "kind_test": kinds[1],
        "rows": train.rows,
        "published": train.published or len(train.items),
    }
    if train.clients is not None:
        names = _names(train)
        if unknown := set(test.clients or ()) - set(names):
            raise InvalidProblemError(
                f"data {path}: client {min(unknown)} has test data, but no training data"
            )
        fields["owner_train"] = _places(train.clients, names)
        fields["owner_test"] = None if test.clients is None else _places(test.clients, names)
    if train.items.is_pair and test.items.is_pair:
        return Data(*train.items.values, *test.items.values, **fields)
    try:
        items = train.items.joined(test.items)
    except ValueError as error:
        raise InvalidProblemError(f"data {path}: training and test data differ: {error}") from None
    numbers = torch.arange(len(items))  # x of data in other forms than tensors: an index among `items`
    first = len(train.items)
    return Data(numbers[:first], labels[0], numbers[first:], labels[1], items=items, **fields)


def _names(half: Half) -> list[Any]:
    """Return the clients' names, sorted: numbers before texts."""
    return sorted(set(half.clients or ()), key=lambda name: (isinstance(name, str), name))


def _places(clients: list[Any], names: list[Any]) -> Tensor:
    """Return the place of each data point's client among all names [N]."""
    place = {name: at for at, name in enumerate(names)}
    return torch.tensor([place[client] for client in clients])


def _kinds(y: Tensor, train: Tensor) -> Tensor:
    """Return labels for partitions [N]: the ranks of integers among the labels of `train`, or deciles.

    Integers that `train` does not have come after them.
    """
    if y.is_floating_point():
        return deciles(y, train)
    values = torch.unique(train)
    unseen = torch.unique(y[~torch.isin(y, values)])
    return torch.where(
        torch.isin(y, values), torch.searchsorted(values, y), len(values) + torch.searchsorted(unseen, y)
    )
