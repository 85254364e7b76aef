"""Partitions with a fixed number of labels for each client."""

from typing import ClassVar

import numpy as np

from fl_core.parts import Count
from fl_core.problems.partitions.partition import Partition, cut
from fl_core.streams import stream


class ClassesPerClient(Partition):
    """Each client holds exactly k classes, shared equally with others (Li et al., ICDE 2022, "#C = k").

    Clients choose one after the other, at random among the classes with the fewest holders, so each class
    has equally many holders up to one; it is dealt out to them in equal shares up to one data point.
    """

    name: ClassVar[str] = "classes_per_client"
    by_label: ClassVar[bool] = True

    classes: Count = 2  # k, classes each client holds

    def label(self) -> str:
        return f"{self.classes} {'class' if self.classes == 1 else 'classes'} a client"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if self.classes > classes:
            return f"{self.classes} classes a client, but there are only {classes} in the data: lower classes"
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
        return cut(classes, counts, random)


class CyclicLabels(Partition):
    """Each client holds k labels, assigned cyclically, all equal sizes (Alahyane et al., 2025, G.3).

    Client i holds the labels i·k, …, i·k + k − 1, modulo the number of classes. Each (client,
    label) gets equally many data points, as many as the scarcest label allows; the rest is unused.
    """

    name: ClassVar[str] = "cyclic_labels"
    by_label: ClassVar[bool] = True
    may_leave_out: ClassVar[bool] = True

    labels: Count = 3  # k, labels each client holds

    def label(self) -> str:
        return f"{self.labels} {'label' if self.labels == 1 else 'labels'} a client, cyclically"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if self.labels > classes:
            return f"{self.labels} labels a client, but there are only {classes} in the data: lower labels"
        return super().refuses(samples, classes, clients)

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        held = np.zeros((len(classes), clients), int)
        for client in range(clients):
            held[(client * self.labels + np.arange(self.labels)) % len(classes), client] = 1
        holders = held.sum(1)
        piece = min(len(members) // count for members, count in zip(classes, holders, strict=True) if count)
        random = stream(seed, "partition")
        dealt = [
            random.permutation(members)[: piece * count]
            for members, count in zip(classes, holders, strict=True)
        ]
        return cut(dealt, held * piece, random)


class DisjointLabels(Partition):
    """No label is held by two clients: client i has the i-th piece of them (Alahyane et al., 2025, G.3).

    With ten clients and ten labels, one each; where labels do not divide evenly, the first hold one more.
    """

    name: ClassVar[str] = "disjoint_labels"
    by_label: ClassVar[bool] = True

    def label(self) -> str:
        return "disjoint labels"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if clients > classes:
            return f"{clients} clients cannot hold disjoint labels: there are only {classes}; lower clients"
        return super().refuses(samples, classes, clients)

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        pieces = np.array_split(np.unique(labels), clients)
        return [np.flatnonzero(np.isin(labels, piece)) for piece in pieces]


class SharedTypes(Partition):
    """Clients of J < M types share J distributions of data (Fraboni et al., JMLR 2023, §2.6 and §3.3).

    Client i is of type i modulo J. Labels are divided among the types, the first types holding one more where
    they do not divide evenly; the data of a type are dealt at random to its clients, in equal shares up to
    one. So one client of each type together have the same optimum as all.
    """

    name: ClassVar[str] = "shared_types"
    by_label: ClassVar[bool] = True

    types: Count = 2  # J, distributions of data

    def label(self) -> str:
        return f"{self.types} {'type' if self.types == 1 else 'types'} of client"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if self.types > min(classes, clients):
            return (
                f"{self.types} types, but there are only {classes} classes and {clients} clients: lower types"
            )
        return super().refuses(samples, classes, clients)

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        random = stream(seed, "partition")
        parts: list[np.ndarray] = [np.array([], int)] * clients
        for kind, piece in enumerate(np.array_split(np.unique(labels), self.types)):
            members = range(kind, clients, self.types)
            shuffled = random.permutation(np.flatnonzero(np.isin(labels, piece)))
            for client, share in zip(members, np.array_split(shuffled, len(members)), strict=True):
                parts[client] = share
        return parts
