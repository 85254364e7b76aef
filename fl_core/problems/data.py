"""Data sets as compact tensors, where they are looked for, and what is said when they are not there."""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fl_core.streams import stream

VALIDATION = 0.1  # the share of the training data that is held out for tuning


class DataMissing(FileNotFoundError):  # noqa: N818 - it is told to the user, not handled
    """A data set is not on this machine: which files, where they were looked for, how to get them."""


class DataDamaged(ValueError):  # noqa: N818
    """A data file is not what was published: which file, and what to do."""


@dataclass(frozen=True, eq=False)
class Data:
    """Labelled data as it is stored; `mean` and `std` are in units of the stored bytes.

    Symbols and counts have none: the network gets them as they are.
    """

    x_train: Tensor  # [N, channels, height, width], or [N, length] of symbols or counts, uint8
    y_train: Tensor  # [N], int64
    x_test: Tensor  # [M, ...], uint8
    y_test: Tensor  # [M], int64
    classes: int
    mean: tuple[float, ...] = ()  # one a channel
    std: tuple[float, ...] = ()  # one a channel
    owner_train: Tensor | None = None  # [N], who made a data point, where that is known
    owner_test: Tensor | None = None  # [M]

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of all data: SHA-256, the first 16 characters."""
        digest = hashlib.sha256()
        owners = (part for part in (self.owner_train, self.owner_test) if part is not None)
        for part in (self.x_train, self.y_train, self.x_test, self.y_test, *owners):
            digest.update(f"{part.dtype}{tuple(part.shape)}".encode())
            digest.update(np.ascontiguousarray(part.numpy()).data)
        return digest.hexdigest()[:16]


def data_dir() -> Path | None:
    """The folder of the user's data sets, ASYNCFL_DATA; None where it is not set."""
    folder = os.environ.get("ASYNCFL_DATA")
    return Path(folder).expanduser().absolute() if folder else None


def cache_dir() -> Path:
    """The folder for downloads where no data folder is given."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "asyncfl-bench"


def places() -> list[Path]:
    """Where data sets are looked for, the first first."""
    own = data_dir()
    return [cache_dir()] if own is None else [own, cache_dir()]


def stratified(x: Tensor, y: Tensor, share: float, purpose: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Split data that come without a test set: x_train, y_train, x_test, y_test.

    Of each class ⌊share · n_class + ½⌋ data points go to the test set, drawn from the stream (0, `purpose`,
    class): the same whatever the seed of a run. The order of the data is kept.
    """
    test = _chosen(y, share, purpose)
    return x[~test], y[~test], x[test], y[test]


@functools.cache
def placed(data: Data, device: torch.device) -> Data:
    """Inputs and labels on another device, once a process; who made them is asked for on the CPU alone."""
    parts = (data.x_train, data.y_train, data.x_test, data.y_test)
    x_train, y_train, x_test, y_test = (part.to(device) for part in parts)
    return replace(data, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)


@functools.cache
def held_out(data: Data) -> Data:
    """The training data alone, a tenth of it in the place of the test set, which is gone.

    The tenth of each class is drawn as in `stratified`, from the stream "validation"; where it is known who
    made a data point, it is the last tenth of what each owner made, since neighbours in a text overlap.
    """
    owner = data.owner_train
    chosen = _chosen(data.y_train, VALIDATION, "validation") if owner is None else _last(owner, VALIDATION)
    kept = ~chosen
    return replace(
        data,
        x_train=data.x_train[kept],
        y_train=data.y_train[kept],
        x_test=data.x_train[chosen],
        y_test=data.y_train[chosen],
        owner_train=None if owner is None else owner[kept],
        owner_test=None if owner is None else owner[chosen],
    )


def _chosen(y: Tensor, share: float, purpose: str) -> Tensor:
    """Which data points [N] are in the share that is drawn from each class."""
    mask = torch.zeros(len(y), dtype=torch.bool)
    for label in range(int(y.max()) + 1):
        members = np.flatnonzero(y.numpy() == label)
        drawn = stream(0, purpose, label).permutation(members)[: int(share * len(members) + 0.5)]
        mask[torch.from_numpy(drawn)] = True
    return mask


def _last(owner: Tensor, share: float) -> Tensor:
    """Which data points [N] are in the last share of their owner's."""
    mask = torch.zeros(len(owner), dtype=torch.bool)
    for one in range(int(owner.max()) + 1):
        members = torch.nonzero(owner == one).flatten()
        mask[members[len(members) - int(share * len(members) + 0.5) :]] = True
    return mask
