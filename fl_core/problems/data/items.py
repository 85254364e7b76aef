"""Data points of any structure: tuples, dicts and lists of tensors, nested for the module of a user.

`user_data` makes them from the results of a user's function; `UserWorld` takes mini-batches from them.

Fixed: the order of points and `digest`, which is recorded. Free: which structures are accepted.
"""

import hashlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

TARGETS = ("y", "label", "labels", "target")  # the entries of dicts that may be labels


@dataclass(frozen=True, eq=False)
class Items:
    """N data points.

    Without `collate` all points have one shape, and are stored as a structure of tensors [N, ...]. With
    `collate` they are a list, and `collate` makes mini-batches of its entries.
    """

    values: Any
    collate: Callable[[list[Any]], Any] | None = None

    @classmethod
    def of(cls, points: Sequence[Any], collate: Callable[[list[Any]], Any] | None) -> Self:
        """Return the items of a list of points; ValueError if a necessary `collate` is missing."""
        if collate is not None:
            return cls(list(points), collate)
        parts = [tree_flatten(point) for point in points]
        if any(structure != parts[0][1] for _, structure in parts):
            raise ValueError("the items differ in structure")
        columns = zip(*(leaves for leaves, _ in parts), strict=True)
        try:
            stacked = [torch.stack([as_column(leaf) for leaf in column]) for column in columns]
        except RuntimeError as error:
            raise ValueError("the items differ in shape") from error
        return cls(tree_unflatten(stacked, parts[0][1]))

    @property
    def is_pair(self) -> bool:
        """Return whether a point is a tensor with a target."""
        values = self.values if self.collate is None else ()
        return isinstance(values, tuple | list) and [type(part) for part in values] == [Tensor, Tensor]

    def plain(self) -> Self:
        """Return a tensor and a target in common form: booleans as numbers, labels as int64."""
        if not self.is_pair:
            return self
        x, y = (part.float() if part.dtype is torch.bool else part for part in self.values)
        return replace(self, values=(x, y.long() if y.dtype is torch.uint8 else y))

    def __len__(self) -> int:
        return len(self.values if self.collate else tree_leaves(self.values)[0])

    def __getitem__(self, places: Tensor) -> Any:
        """Return a mini-batch of the points at `places` [B], int64."""
        if self.collate is not None:
            return self.collate([self.values[place] for place in places.tolist()])
        return tree_map(lambda column: column[places], self.values)

    def take(self, mask: Tensor) -> Self:
        """Return the points where `mask` [N] is true."""
        if self.collate is None:
            return replace(self, values=self[mask])
        return replace(self, values=[self.values[place] for place in mask.nonzero().flatten().tolist()])

    def joined(self, *parts: Self) -> Self:
        """Append other points; ValueError for a different structure or shape."""
        if self.collate is not None:
            return replace(self, values=self.values + [point for items in parts for point in items.values])
        try:
            values = tree_map(lambda *columns: torch.cat(columns), self.values, *(x.values for x in parts))
        except RuntimeError as error:
            raise ValueError(f"they differ in shape: {error}") from error
        return replace(self, values=values)

    def to(self, device: torch.device) -> Self:
        """Return the points with all tensors on `device`; a list is not moved."""
        return self if self.collate else replace(self, values=tree_map(lambda x: x.to(device), self.values))

    def labels(self) -> Tensor:
        """Return a number for each point [N]: the last of a tuple or list, or an entry named in `TARGETS`.

        A target of shape [1] counts as its number, a one-hot target as the number of the class. Zeros for
        other targets.
        """
        targets = [_target(point) for point in (self.values if self.collate else [self.values])]
        if self.collate is None:
            (labels,) = targets
        else:
            singles = [
                label.item() if np.size(label) == 1 and hasattr(label, "item") else label for label in targets
            ]
            numbers = all(isinstance(label, int | float) for label in singles)
            labels = torch.tensor(singles) if numbers else None
        if isinstance(labels, Tensor) and labels.ndim == 2:
            labels = _single(labels)
        if not isinstance(labels, Tensor) or labels.ndim != 1:
            return torch.zeros(len(self), dtype=torch.int64)
        return labels if labels.is_floating_point() else labels.long()

    def digest(self) -> bytes:
        """Return the SHA-256 of all points."""
        digest = hashlib.sha256()
        for leaf in tree_leaves(self.values):
            if isinstance(leaf, Tensor | np.ndarray):
                array = np.ascontiguousarray(leaf.detach().cpu() if isinstance(leaf, Tensor) else leaf)
                digest.update(f"{array.dtype}{array.shape}".encode())
                digest.update(array.tobytes())
            else:
                digest.update(pickle.dumps(leaf))
        return digest.digest()


def as_column(leaf: Any) -> Tensor:
    """Return numbers as a tensor, integers other than bytes as int64; TypeError for other values."""
    if not isinstance(leaf, Tensor | np.ndarray | np.number | float | int):
        raise TypeError(f"an item holds a {type(leaf).__name__}")
    try:
        column = torch.as_tensor(leaf).detach()
    except TypeError:
        raise TypeError(f"an item holds an array of {np.asarray(leaf).dtype}") from None
    is_number = column.is_floating_point() or column.is_complex() or column.dtype in {torch.uint8, torch.bool}
    return column if is_number else column.long()


def _single(targets: Tensor) -> Tensor | None:
    """Return targets [N, K] as numbers [N] if K is 1 or all rows are one-hot; otherwise None."""
    if targets.shape[1] == 1:
        return targets[:, 0]
    one_hot = ((targets == 0) | (targets == 1)).all() and (targets.sum(1) == 1).all()
    return targets.long().argmax(1) if one_hot else None


def _target(point: Any) -> Any:
    """Return the part of a data point that may be a label; None without any."""
    if isinstance(point, tuple | list):
        return point[-1] if point else None
    if isinstance(point, dict):
        return next((point[name] for name in TARGETS if name in point), None)
    return None
