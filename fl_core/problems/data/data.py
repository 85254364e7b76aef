"""Data sets as compact tensors (`Data`), and parts of them held out for testing and tuning.

Every supervised problem returns a `Data` from `load`.

Fixed: `fingerprint`, which is recorded with runs, and the points held out: tuned values and the board follow
from them.
"""

import functools
import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fl_core.problems.data.items import Items
from fl_core.streams import stream

VALIDATION = 0.1  # share of the training data held out for tuning


@dataclass(frozen=True, eq=False)
class Data:
    """A data set as stored; `mean` and `std` are in units of the stored bytes.

    Symbols, counts and plain numbers have neither: the network gets them unchanged.
    """

    x_train: Tensor  # [N, channels, height, width] of bytes; [N, length] of symbols, counts or numbers
    y_train: Tensor  # [N] labels, int64; or [N, ...] other targets
    x_test: Tensor  # [M, ...]
    y_test: Tensor  # [M, ...]
    classes: int  # of labels
    mean: tuple[float, ...] = ()  # one per channel
    std: tuple[float, ...] = ()  # one per channel
    owner_train: Tensor | None = None  # [N], the owner of each data point, if known
    owner_test: Tensor | None = None  # [M]
    kind_train: Tensor | None = None  # [N], labels for partitions if the target is no label
    kind_test: Tensor | None = None  # [M]
    items: Items | None = None  # data of another structure: then x_train and x_test are indices into these
    rows: Tensor | None = None  # [N], indices into the published training data, if some are held out
    published: int = 0  # number of training data points before any was held out; 0 stands for all of y_train

    def __post_init__(self) -> None:
        if not self.published:
            object.__setattr__(self, "published", len(self.y_train))

    @property
    def labels_train(self) -> Tensor:
        """Labels for partitions [N], int64, 0 … classes − 1."""
        return self.y_train if self.kind_train is None else self.kind_train

    @property
    def labels_test(self) -> Tensor:
        """The labels of the test data [M], int64, 0 … classes − 1."""
        return self.y_test if self.kind_test is None else self.kind_test

    @cached_property
    def fingerprint(self) -> str:
        """The hex digest of all data: SHA-256, the first 16 characters."""
        digest = hashlib.sha256()
        labels = (self.owner_train, self.owner_test, self.kind_train, self.kind_test)
        rest = (part for part in labels if part is not None)
        for part in (self.x_train, self.y_train, self.x_test, self.y_test, *rest):
            digest.update(f"{part.dtype}{tuple(part.shape)}".encode())
            digest.update(np.ascontiguousarray(part.numpy()).data)
        if self.items is not None:
            digest.update(self.items.digest())
        return digest.hexdigest()[:16]


def stratified(x: Tensor, y: Tensor, share: float, purpose: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Split data without a test set, as `drawn` does: x_train, y_train, x_test, y_test."""
    test = drawn(y, share, purpose)
    return x[~test], y[~test], x[test], y[test]


def drawn(labels: Tensor, share: float, purpose: str) -> Tensor:
    """Return a mask [N] of the share of data points reserved for testing.

    Of each class ⌊share · n_class + ½⌋ data points are drawn from the stream (0, `purpose`, class): the same
    whatever the seed of a run.
    """
    mask = torch.zeros(len(labels), dtype=torch.bool)
    for label in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels.numpy() == label)
        chosen = stream(0, purpose, label).permutation(members)[: int(share * len(members) + 0.5)]
        mask[torch.from_numpy(chosen)] = True
    return mask


def deciles(values: Tensor, among: Tensor | None = None) -> Tensor:
    """Return the decile of each of `values` [N] among all values, or among the masked: 0 … 9, int64."""
    edges = np.quantile((values if among is None else among).double().numpy(), np.arange(0.1, 0.95, 0.1))
    return torch.from_numpy(np.searchsorted(edges, values.double().numpy()))


@functools.cache
def placed(data: Data, device: torch.device) -> Data:
    """Return data with inputs and targets on another device, copied once per process; owners stay."""
    parts = (data.x_train, data.y_train, data.x_test, data.y_test)
    x_train, y_train, x_test, y_test = (part.to(device) for part in parts)
    items = None if data.items is None else data.items.to(device)
    return replace(data, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test, items=items)


@functools.cache
def held_out(data: Data) -> Data:
    """Return the training data alone, a tenth held out in place of the published test set.

    The tenth of each class is drawn as in `stratified`, from the stream "validation"; where owners are
    known, it is the last tenth of each owner's data, since neighbours in a text overlap.
    """
    owner = data.owner_train
    labels, kinds = data.labels_train, data.kind_train
    chosen = drawn(labels, VALIDATION, "validation") if owner is None else _last(owner, VALIDATION)
    training = ~chosen
    return replace(
        data,
        x_train=data.x_train[training],
        y_train=data.y_train[training],
        x_test=data.x_train[chosen],
        y_test=data.y_train[chosen],
        owner_train=None if owner is None else owner[training],
        owner_test=None if owner is None else owner[chosen],
        rows=torch.nonzero(training).flatten() if data.rows is None else data.rows[training],
        kind_train=None if kinds is None else kinds[training],
        kind_test=None if kinds is None else kinds[chosen],
    )


@functools.cache
def half_tested(data: Data, half: Literal["first_half", "second_half"]) -> Data:
    """Return the data with half of the test set; halves are cut by class as in `drawn`."""
    first = drawn(data.labels_test, 0.5, "halves")
    chosen = first if half == "first_half" else ~first
    return replace(
        data,
        x_test=data.x_test[chosen],
        y_test=data.y_test[chosen],
        owner_test=None if data.owner_test is None else data.owner_test[chosen],
        kind_test=None if data.kind_test is None else data.kind_test[chosen],
    )


def _last(owner: Tensor, share: float) -> Tensor:
    """Return a mask [N] of the last share of each owner's data points."""
    mask = torch.zeros(len(owner), dtype=torch.bool)
    for number in range(int(owner.max()) + 1):
        members = torch.nonzero(owner == number).flatten()
        mask[members[len(members) - int(share * len(members) + 0.5) :]] = True
    return mask
