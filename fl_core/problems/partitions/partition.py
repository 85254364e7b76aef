"""The partition interface: the client of each data point, and the guarantees of every partition.

In the literature "Dirichlet(α)" means several partitions; here each has its own name. Every random choice
comes from the stream "partition": under one seed all strategies get the same split.
"""

from typing import ClassVar

import numpy as np

from fl_core.parts import Part
from fl_core.problems.data.data import Data
from fl_core.problems.problem import InvalidProblemError


class Partition(Part):
    """A rule for dealing out labelled data to clients."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.problems.partitions",)
    may_repeat: ClassVar[bool] = False  # whether its paper samples with replacement
    may_leave_out: ClassVar[bool] = False  # whether its paper leaves some data points unused
    by_owner: ClassVar[bool] = False  # whether the data must come with owners
    by_label: ClassVar[bool] = False  # whether the data must come with labels, of two classes or more

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        """Return the reason why data of a size cannot be dealt out, or None.

        Args:
            samples: Training data points.
            classes: Labels.
            clients: n.
        """
        if clients > samples and not self.leaves_empty():
            return (
                f"{clients} clients cannot share {samples} data points: some would have none; lower clients"
            )
        return None

    def leaves_empty(self) -> bool:
        """Return whether clients without data are allowed."""
        return False

    def divide(self, data: Data, clients: int, seed: int) -> list[np.ndarray]:
        """Return each client's ascending indices into the training data.

        Raises:
            InvalidProblemError: The data cannot be divided among so many clients.
        """
        if self.by_label and data.classes < 2:
            raise InvalidProblemError(
                f"partition {self.reference()} divides data by label, and the targets have no labels: return "
                "one number a data point, or choose the partition iid"
            )
        return self.split(data.labels_train.numpy(), clients, seed)

    def split(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        """Return each client's ascending indices into `labels`, checked.

        Raises:
            InvalidProblemError: The labels cannot be divided among so many clients.
        """
        if reason := self.refuses(len(labels), len(np.unique(labels)), clients):
            raise InvalidProblemError(reason)
        parts = [np.sort(part) for part in self.deal(labels, clients, seed)]
        check(self, parts, len(labels), clients)
        return parts

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        """Return the indices of each client's data, unchecked and in any order."""
        raise NotImplementedError


def check(partition: Partition, parts: list[np.ndarray], samples: int, clients: int) -> None:
    """Raise unless `parts` deal out `samples` data points to `clients` as `partition` promises.

    Each point goes to exactly one client, unless the partition's paper samples with replacement or leaves
    some out; no client is without data, unless allowed.

    Raises:
        InvalidProblemError: A client has no data.
        ValueError: Any other fault, which is the partition's.
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
        raise InvalidProblemError(
            f"partition {name} leaves client {empty[0]} of {clients} without data: lower clients"
        )


def cut(classes: list[np.ndarray], counts: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Shuffle each class and cut into pieces of `counts` [classes, n]; a client gets a piece of each."""
    pieces = [
        np.split(random.permutation(members), np.cumsum(count)[:-1])
        for members, count in zip(classes, counts, strict=True)
    ]
    return [np.concatenate(pieces_of_client) for pieces_of_client in zip(*pieces, strict=True)]
