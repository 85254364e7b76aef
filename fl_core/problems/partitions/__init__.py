"""Partitions: which data point belongs to which client.

"Dirichlet(α)" names several worlds in the literature; here each has its own name. Every random choice comes
from the stream "partition": under one seed all strategies meet the same split.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from fl_core.parts import Count, Part, Rate
from fl_core.problems.data import Data
from fl_core.problems.problem import Impossible
from fl_core.streams import stream


class Partition(Part):
    """How labelled data are dealt out to clients."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.problems.partitions",)
    may_repeat: ClassVar[bool] = False  # whether its paper samples with replacement
    may_leave_out: ClassVar[bool] = False  # whether its paper leaves some data points to nobody
    by_owner: ClassVar[bool] = False  # whether the data must come from clients already

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        """One sentence if so many data points of so many classes cannot be dealt out to so many clients."""
        if clients > samples and not self.leaves_empty():
            return f"{clients} clients cannot share {samples} data points: some would have none"
        return None

    def leaves_empty(self) -> bool:
        """Whether clients without data are asked for."""
        return False

    def divide(self, data: Data, clients: int, seed: int) -> list[np.ndarray]:
        """Ascending indices into the training data of each client's share; Impossible if it cannot be."""
        return self.split(data.y_train.numpy(), clients, seed)

    def split(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        """Ascending indices into `labels` of each client's data, checked; Impossible if it cannot be."""
        if reason := self.refuses(len(labels), len(np.unique(labels)), clients):
            raise Impossible(reason)
        parts = [np.sort(part) for part in self.deal(labels, clients, seed)]
        check(self, parts, len(labels), clients)
        return parts

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        """Indices of each client's data, unchecked and in any order."""
        raise NotImplementedError


def check(partition: Partition, parts: list[np.ndarray], samples: int, clients: int) -> None:
    """Raises unless `parts` deal out `samples` data points to `clients` as `partition` promises.

    Each point to exactly one client, unless its paper samples with replacement or leaves some out; no client
    without data, unless asked for: that is Impossible, all else a mistake of the partition, a ValueError.
    """
    name = partition.reference()
    if len(parts) != clients:
        raise ValueError(f"partition {name} made {len(parts)} parts for {clients} clients")
    held = np.concatenate(parts)
    if len(held) and not (held.min() >= 0 and held.max() < samples):
        raise ValueError(f"partition {name} deals out data points that do not exist")
    holders = np.bincount(held, minlength=samples)
    if not partition.may_repeat and holders.max() > 1:
        raise ValueError(f"partition {name} deals out data point {holders.argmax()} {holders.max()} times")
    if not (partition.may_repeat or partition.may_leave_out) and holders.min() < 1:
        raise ValueError(f"partition {name} leaves out {np.sum(holders < 1)} of {samples} data points")
    empty = [client for client, part in enumerate(parts) if not len(part)]
    if empty and not partition.leaves_empty():
        raise Impossible(
            f"partition {name} leaves client {empty[0]} of {clients} without data: lower clients"
        )


class IID(Partition):
    """Each client holds a random share, all of equal size up to one (McMahan et al., AISTATS 2017, §3)."""

    name: ClassVar[str] = "iid"

    def label(self) -> str:
        return "i.i.d."

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        order = stream(seed, "partition").permutation(len(labels))
        return np.array_split(order, clients)


class ClassDirichlet(Partition):
    """Each class is dealt out in shares drawn from Dir(α·1_n) over clients (Yurochkin et al., ICML 2019).

    Client sizes differ widely: this is the label *and* size skew that most papers call Dir(α). With `balance`
    a client that holds n_data/n already gets nothing of the next class (as in the published code of that
    paper and its descendants), so sizes differ less.

    A draw that leaves some client with fewer than `min_size` data points is drawn again, the t-th time from
    the stream ("partition", t), at most ATTEMPTS times; min_size = 0 admits clients without data.
    """

    name: ClassVar[str] = "class_dirichlet"
    ATTEMPTS: ClassVar[int] = 1000

    alpha: Rate = 0.1  # α: the smaller, the fewer clients share a class
    balance: bool = False
    min_size: int = Field(1, ge=0)

    def label(self) -> str:
        more = (" balanced" if self.balance else "") + (f" min {self.min_size}" if self.min_size != 1 else "")
        return f"Dirichlet {self.alpha:g}{more}"

    def leaves_empty(self) -> bool:
        return self.min_size == 0

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if clients * self.min_size > samples:
            return f"{clients} clients with at least {self.min_size} of {samples} data points each: too few"
        return super().refuses(samples, classes, clients)

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        sizes = np.array([len(members) for members in classes])
        for attempt in range(self.ATTEMPTS):
            random = stream(seed, "partition", attempt)
            counts = self._counts(sizes, clients, random)
            if counts is not None and counts.sum(0).min() >= self.min_size:
                return _cut(classes, counts, random)
        raise Impossible(
            f"partition {self.reference()} with alpha {self.alpha:g}: in {self.ATTEMPTS} draws some of the "
            f"{clients} clients always had fewer than {self.min_size} data points; raise alpha, or lower "
            "min_size or clients"
        )

    def _counts(self, sizes: np.ndarray, clients: int, random: np.random.Generator) -> np.ndarray | None:
        """How many data points of each class each client gets [classes, n]; None if a class has no taker."""
        counts = np.zeros((len(sizes), clients), int)
        for label, size in enumerate(sizes):
            share = random.dirichlet(np.full(clients, self.alpha))
            if self.balance:
                share = share * (counts.sum(0) < sizes.sum() / clients)
            if not share.sum() > 0:  # for tiny α all of a class may fall on clients that are full
                return None
            # Rounded, not cut off as in published code, where an error in the last bit costs a data point.
            ends = np.rint(np.cumsum(share / share.sum())[:-1] * size).astype(int)
            counts[label] = np.diff(ends, prepend=0, append=size)
        return counts


class ClientDirichlet(Partition):
    """Equal sizes; each client's class mix is drawn from Dir(α·p), p the mix of all (Hsu et al., 2019, §3.1).

    A client's data points are drawn one by one from its mix, without replacement; a class that is used up
    leaves the mix of those that come later.
    """

    name: ClassVar[str] = "client_dirichlet"

    alpha: Rate = 0.1  # α: the smaller, the fewer classes a client holds

    def label(self) -> str:
        return f"client-wise Dirichlet {self.alpha:g}"

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        random = stream(seed, "partition")
        classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        left = np.array([len(members) for members in classes])
        prior = left / left.sum()
        sizes = [len(part) for part in np.array_split(labels, clients)]
        counts = np.zeros((len(classes), clients), int)
        for client, size in enumerate(sizes):
            mix = random.dirichlet(self.alpha * prior)
            counts[:, client] = _draw(mix, left, size, random)
            left -= counts[:, client]
        return _cut(classes, counts, random)


class ClassesPerClient(Partition):
    """Each client holds exactly so many classes, shared equally with others (Li et al., ICDE 2022, "#C = k").

    Clients choose one after the other, at random among the classes with the fewest holders, so each class
    has equally many holders up to one; it is dealt out to them in equal shares up to one data point.
    """

    name: ClassVar[str] = "classes_per_client"

    classes: Count = 2

    def label(self) -> str:
        return f"{self.classes} {'class' if self.classes == 1 else 'classes'} a client"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if self.classes > classes:
            return f"{self.classes} classes a client, but there are only {classes} in the data"
        if clients * self.classes < classes:
            return (
                f"{clients} clients of {self.classes} classes each cannot hold all {classes} classes: "
                "raise clients or classes"
            )
        return super().refuses(samples, classes, clients)

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        random = stream(seed, "partition")
        classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        holds = np.zeros((len(classes), clients), bool)
        for client in range(clients):
            fewest_first = np.lexsort((random.random(len(classes)), holds.sum(1)))
            holds[fewest_first[: self.classes], client] = True
        counts = np.zeros(holds.shape, int)
        for label, members in enumerate(classes):
            holders = random.permutation(np.flatnonzero(holds[label]))
            counts[label, holders] = [len(part) for part in np.array_split(members, len(holders))]
        return _cut(classes, counts, random)


def _draw(mix: np.ndarray, left: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """Class counts of `size` draws from `mix` without replacement, `left` [classes] to be had.

    Draws of a class that is used up are drawn again. The law is that of drawing one by one.
    """
    counts = np.zeros_like(left)
    while missing := size - counts.sum():
        open_mix = mix * (counts < left)
        if not open_mix.sum() > 0:  # all that this client wants is gone: it takes what there is
            open_mix = left - counts
        counts = np.minimum(counts + random.multinomial(missing, open_mix / open_mix.sum()), left)
    return counts


def _cut(classes: list[np.ndarray], counts: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Shuffle each class and cut it into pieces of `counts` [classes, n]; a client gets one of each."""
    pieces = [
        np.split(random.permutation(members), np.cumsum(count)[:-1])
        for members, count in zip(classes, counts, strict=True)
    ]
    return [np.concatenate(own) for own in zip(*pieces, strict=True)]
