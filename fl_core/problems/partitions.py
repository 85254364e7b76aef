"""Partitions: rules for dealing out training data to clients, and the guarantees of every rule.

A supervised problem has one in its field `partition`, and calls `divide` (`supervised.py`).
In the literature "Dirichlet(α)" means several partitions; here each has its own name. Every random choice
comes from the stream "partition": under one seed all strategies get the same split.

Fixed: names, fields and defaults (keys of runs), and which data points each client gets.
"""

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fl_core import file_reading, keys
from fl_core.parts import Count, Part, Rate
from fl_core.problems.data.data import Data
from fl_core.problems.problem import InvalidProblemError
from fl_core.streams import stream
from fl_core.user_code import content, filled_in


class Partition(Part):
    """Base of rules for dealing out labelled data to clients: a subclass defines `deal`."""

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
                f"partition {self.reference()} divides data by label, but the targets are not "
                "labels: return one number for each data point, or choose the partition iid"
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
        ValueError: Any other fault: an error in the partition's code.
    """
    name = partition.reference()
    if len(parts) != clients:
        raise ValueError(
            f"partition {name} must return one part for each of {clients} clients, not {len(parts)}"
        )
    held = np.concatenate(parts)
    if len(held) and not (held.min() >= 0 and held.max() < samples):
        raise ValueError(f"partition {name} must return numbers of data points from 0 to {samples - 1}")
    holders = np.bincount(held, minlength=samples)
    if not partition.may_repeat and holders.max() > 1:
        raise ValueError(
            f"partition {name} assigns data point {holders.argmax()} {holders.max()} times: assign it "
            "once, or set may_repeat"
        )
    if not (partition.may_repeat or partition.may_leave_out) and holders.min() < 1:
        raise ValueError(
            f"partition {name} leaves out {np.sum(holders < 1)} of {samples} data points: assign all, "
            "or set may_leave_out"
        )
    empty = [client for client, part in enumerate(parts) if not len(part)]
    if empty and not partition.leaves_empty():
        raise InvalidProblemError(
            f"partition {name} leaves client {empty[0]} of {clients} without data: reduce clients"
        )


def cut(classes: list[np.ndarray], counts: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Shuffle each class and cut into pieces of `counts` [classes, n]; a client gets a piece of each."""
    pieces = [
        np.split(random.permutation(members), np.cumsum(count)[:-1])
        for members, count in zip(classes, counts, strict=True)
    ]
    return [np.concatenate(pieces_of_client) for pieces_of_client in zip(*pieces, strict=True)]


class IID(Partition):
    """Random shares of equal size, up to one data point (McMahan et al., AISTATS 2017, §3)."""

    name: ClassVar[str] = "iid"

    def label(self) -> str:
        return "i.i.d."

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        order = stream(seed, "partition").permutation(len(labels))
        return np.array_split(order, clients)


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
    """Disjoint labels: client i holds the i-th piece of the list of labels (Alahyane et al., 2025, G.3).

    Ten clients hold one of ten labels each; if labels do not divide evenly, the first clients hold one more.
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


class ClassDirichlet(Partition):
    """Each class is dealt out in shares drawn from Dir(α·1_n) over clients (Yurochkin et al., ICML 2019).

    Client sizes differ widely: this is the label *and* size skew that most papers call Dir(α). With `balance`
    a client that holds n_data/n already gets nothing of the next class (as in the published code of that
    paper and its descendants), so sizes differ less.

    A draw that leaves some client with fewer than `min_size` data points is drawn again, the t-th time from
    the stream ("partition", t), at most ATTEMPTS times; min_size = 0 admits clients without data.
    """

    name: ClassVar[str] = "class_dirichlet"
    by_label: ClassVar[bool] = True
    ATTEMPTS: ClassVar[int] = 1000

    alpha: Rate = 0.1  # α: the smaller, the fewer clients share a class
    balance: bool = False  # whether a client with n_data/n gets nothing of further classes
    min_size: int = Field(1, ge=0)  # data points that each client has at least

    def label(self) -> str:
        more = (" balanced" if self.balance else "") + (f" min {self.min_size}" if self.min_size != 1 else "")
        return f"Dirichlet {self.alpha:g}{more}"

    def leaves_empty(self) -> bool:
        return self.min_size == 0

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if clients * self.min_size > samples:
            held = f"at least {self.min_size} of {samples} data points each"
            return f"{clients} clients with {held}: too few; lower clients or min_size"
        return super().refuses(samples, classes, clients)

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        sizes = np.array([len(members) for members in classes])
        for attempt in range(self.ATTEMPTS):
            random = stream(seed, "partition", attempt)
            counts = self._counts(sizes, clients, random)
            if counts is not None and counts.sum(0).min() >= self.min_size:
                return cut(classes, counts, random)
        raise InvalidProblemError(
            f"partition {self.reference()} with alpha {self.alpha:g}: in {self.ATTEMPTS} draws some "
            f"of the {clients} clients always had fewer than {self.min_size} data points. Raise "
            "alpha, or reduce min_size or clients"
        )

    def _counts(self, sizes: np.ndarray, clients: int, random: np.random.Generator) -> np.ndarray | None:
        """Return data points by class and client [classes, n]; None if no client can take a class."""
        counts = np.zeros((len(sizes), clients), int)
        for label, size in enumerate(sizes):
            share = random.dirichlet(np.full(clients, self.alpha))
            if self.balance:
                share = share * (counts.sum(0) < sizes.sum() / clients)
            if not share.sum() > 0:  # for tiny α, only full clients may have a share in the class
                return None
            # Rounded, not truncated as in published code, where an error in the last bit costs a data point.
            ends = np.rint(np.cumsum(share / share.sum())[:-1] * size).astype(int)
            counts[label] = np.diff(ends, prepend=0, append=size)
        return counts


class ClientDirichlet(Partition):
    """Equal sizes; each client's class mix is drawn from Dir(α·p), p the mix of all (Hsu et al., 2019, §3.1).

    A client's data points are drawn one by one from its mix, without replacement; a class that is used up
    is dropped from the mix of later clients.
    """

    name: ClassVar[str] = "client_dirichlet"
    by_label: ClassVar[bool] = True

    alpha: Rate = 0.1  # α: the smaller, the fewer classes a client holds

    def label(self) -> str:
        return f"client-wise Dirichlet {self.alpha:g}"

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        random = stream(seed, "partition")
        classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        remaining = np.array([len(members) for members in classes])
        prior = remaining / remaining.sum()
        sizes = [len(part) for part in np.array_split(labels, clients)]
        counts = np.zeros((len(classes), clients), int)
        for client, size in enumerate(sizes):
            mix = random.dirichlet(self.alpha * prior)
            counts[:, client] = _draw(mix, remaining, size, random)
            remaining -= counts[:, client]
        return cut(classes, counts, random)


def _draw(mix: np.ndarray, remaining: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """Return the class counts of `size` draws from `mix` without replacement, `remaining` [classes] left.

    Draws of a used-up class are drawn again; the distribution is that of drawing one by one.
    """
    counts = np.zeros_like(remaining)
    while missing := size - counts.sum():
        open_mix = mix * (counts < remaining)
        if not open_mix.sum() > 0:  # all classes of the mix are used up: other classes fill the client
            open_mix = remaining - counts
        counts = np.minimum(counts + random.multinomial(missing, open_mix / open_mix.sum()), remaining)
    return counts


class FraboniDirichlet(Partition):
    """Equal sizes; class counts ⌊Dir(α·1)·n⌋, sampled with replacement (Fraboni et al., JMLR 2023).

    "Dir(α)" of that paper, from its code: each client draws n = ⌊N / clients⌋ data points, ⌊q_c n⌋ of class c
    with q from Dir(α·1), and what rounding leaves of the last class. Points come from the pool of all data,
    with replacement, whatever others hold: clients overlap, and some data are unused. With α = 0 client i
    holds class i modulo the number of classes alone. The paper's "i.i.d." is α = 10000.
    """

    name: ClassVar[str] = "fraboni_dirichlet"
    by_label: ClassVar[bool] = True
    may_repeat: ClassVar[bool] = True

    alpha: float = Field(0.1, ge=0)  # α: the smaller, the fewer classes a client holds

    def label(self) -> str:
        return f"Fraboni's Dirichlet {self.alpha:g}"

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        pools = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        size = len(labels) // clients
        parts = []
        for client in range(clients):
            random = stream(seed, "partition", client)
            counts = self._counts(len(pools), size, client, random)
            drawn = [random.choice(pool, count) for pool, count in zip(pools, counts, strict=True)]
            parts.append(np.concatenate(drawn))
        return parts

    def _counts(self, classes: int, size: int, client: int, random: np.random.Generator) -> np.ndarray:
        """Return how many data points of each class a client holds [classes]."""
        if not self.alpha:
            return size * (np.arange(classes) == client % classes)
        share = random.dirichlet(np.full(classes, self.alpha))
        counts = np.floor(share * size).astype(int)
        counts[-1] += size - counts.sum()
        return counts


class PClass(Partition):
    """Each client holds p classes, r data points of each (Yang et al., Anarchic FL, ICML 2022).

    The exact rule is that of the code it derives from. Classes are cut to s data points, one fewer than in
    the smallest, and r = ⌊C s / (M p)⌋ for C classes and M clients. In turn each client chooses p classes at
    random, without repetition, among those with strictly more than r points left, and takes the last r of
    each. Where fewer than p qualify it takes those, and then the last r of the class with most points left
    (the first on ties), possibly one it holds already. For p = 1 and M = C none ever qualifies, and client i
    holds exactly class i.
    """

    name: ClassVar[str] = "p_class"
    by_label: ClassVar[bool] = True
    may_leave_out: ClassVar[bool] = True

    p: Count = 2  # classes each client holds

    def label(self) -> str:
        return f"p = {self.p}"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        if self.p > classes:
            return f"p = {self.p} classes a client, but there are only {classes} in the data: lower p"
        if classes * (samples // classes - 1) < clients * self.p:
            few = f"{samples} data points are too few; lower clients or p"
            return f"{clients} clients of {self.p} classes each: {few}"
        return super().refuses(samples, classes, clients)

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        random = stream(seed, "partition")
        pools = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        size = min(map(len, pools)) - 1
        pools = [pool[:size] for pool in pools]
        take = len(pools) * size // (clients * self.p)
        parts = []
        for _ in range(clients):
            open_ = [label for label, pool in enumerate(pools) if len(pool) > take]
            chosen = random.choice(open_, min(self.p, len(open_)), replace=False) if open_ else ()
            own_data = [_last(pools, int(label), take) for label in chosen]
            while len(own_data) < self.p:
                own_data.append(_last(pools, int(np.argmax([len(pool) for pool in pools])), take))
            parts.append(np.concatenate(own_data))
        return parts


def _last(pools: list[np.ndarray], label: int, count: int) -> np.ndarray:
    """Take the last `count` data points, or all remaining, out of the pool of a class."""
    remaining = max(len(pools[label]) - count, 0)
    taken, pools[label] = pools[label][remaining:], pools[label][:remaining]
    return taken


class Natural(Partition):
    """Natural split: a client for each owner of data, as a role in a play (Caldas et al., LEAF, 2019)."""

    name: ClassVar[str] = "natural"
    by_owner: ClassVar[bool] = True

    def divide(self, data: Data, clients: int, seed: int) -> list[np.ndarray]:
        if data.owner_train is None:
            raise InvalidProblemError(
                "partition natural needs data with owners, and these have none: choose another partition"
            )
        owner = data.owner_train.numpy()
        owners = int(owner.max()) + 1
        if owners != clients:
            raise InvalidProblemError(
                f"partition natural: the data have {owners} owners, not {clients}: set clients to {owners}"
            )
        parts = [np.flatnonzero(owner == client) for client in range(clients)]
        check(self, parts, len(owner), clients)
        return parts

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        raise InvalidProblemError(
            "partition natural needs the owner of each data point, not labels alone: choose another partition"
        )


class Given(Natural):
    """The split given by the user's data; a single data set is dealt out at random, in equal shares."""

    name: ClassVar[str] = "given"

    def label(self) -> str:
        return "as given"

    def divide(self, data: Data, clients: int, seed: int) -> list[np.ndarray]:
        divided = IID() if data.owner_train is None else Natural()
        return divided.divide(data, clients, seed)


KIND = "partition file"


class PartitionFile(Partition):
    """Clients' data points from a file, client → indices into the training data, JSON or CSV.

    JSON: a list with a list of indices for each client, or an object `{"0": [5, 7], …}`. CSV: rows of
    `client,index`; a header is skipped. Clients are 0 … n−1. Data points that are not listed are unused.
    """

    name: ClassVar[str] = "file"
    may_leave_out: ClassVar[bool] = True

    path: Path  # of a JSON file of lists, or CSV rows of `client,index`
    # Of the content, filled in: part of a run's identity
    digest: Annotated[
        str, Field(validate_default=True), filled_in(lambda path: keys.digest(content(KIND, path)))
    ] = ""

    def label(self) -> str:
        return f"partition {self.path.name}"

    def refuses(self, samples: int, classes: int, clients: int) -> str | None:
        named = len(self._read())
        if named != clients:
            return f"partition file {self.path} names {named} clients, not {clients}: set clients to {named}"
        return None

    def divide(self, data: Data, clients: int, seed: int) -> list[np.ndarray]:
        parts = self._parts(data.published, clients)
        if data.rows is not None:  # some of the published training data are held out for tuning
            place = np.full(data.published, -1)
            place[data.rows.numpy()] = np.arange(len(data.rows))
            parts = [np.sort(place[part][place[part] >= 0]) for part in parts]
        check(self, parts, len(data.labels_train), clients)
        return parts

    def deal(self, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
        return self._parts(len(labels), clients)

    def _parts(self, samples: int, clients: int) -> list[np.ndarray]:
        """Return each client's ascending indices; InvalidProblemError for invalid or duplicate indices."""
        held = self._read()
        if reason := self.refuses(samples, 0, clients):
            raise InvalidProblemError(reason)
        holder: dict[int, int] = {}
        for client, indices in sorted(held.items()):
            if not 0 <= client < clients:
                raise InvalidProblemError(
                    f"partition file {self.path}: client must be one of 0 … {clients - 1}, not {client}"
                )
            for index in indices:
                if not 0 <= index < samples:
                    raise InvalidProblemError(
                        f"partition file {self.path}: client {client} has data point {index}, but "
                        f"they are 0 … {samples - 1}"
                    )
                if index in holder:
                    raise InvalidProblemError(
                        f"partition file {self.path}: data point {index} belongs to clients "
                        f"{holder[index]} and {client}: give it to one of them"
                    )
                holder[index] = client
        return [np.array(sorted(held[client]), int) for client in range(clients)]

    def _read(self) -> dict[int, list[int]]:
        """Return client → indices as written in the file."""
        data = content(KIND, self.path, self.digest)
        try:
            if self.path.suffix.lower() == ".csv":
                return _rows(data)
            text = data.decode("utf-8-sig", errors="replace")
            return _lists(json.loads(text, object_pairs_hook=_without_duplicates))
        except (ValueError, TypeError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"partition file {self.path}: neither JSON lists of indices nor CSV rows of client,index "
                f"({reason})"
            ) from None


def _lists(content: Any) -> dict[int, list[int]]:
    """Return client → indices from JSON: a list of lists, or an object."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    clients = [(int(client), indices) for client, indices in pairs]  # "7" and "07" are one client
    return _without_duplicates(
        [(client, [_whole(index) for index in indices]) for client, indices in clients]
    )


def _without_duplicates(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a JSON object's members as a dict; raise ValueError for duplicate keys."""
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"client {next(key for key in keys if keys.count(key) > 1)} is listed twice")
    return members


def _rows(content: bytes) -> dict[int, list[int]]:
    """Return client → indices from CSV rows of `client,index`."""
    parts: dict[int, list[int]] = {}
    for line, cells in file_reading.rows(content):
        try:
            client, index = (_integer(cell) for cell in cells)
        except ValueError as error:
            if line == 1 and not any(map(_is_number, cells)):  # a header
                continue
            raise ValueError(f"line {line}: {error}") from None
        parts.setdefault(client, []).append(index)
    return parts


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-")[:1].isdigit()


def _integer(cell: str) -> int:
    """Return a whole number, written as 3.0 by pandas where a row of the column is empty."""
    digits, point, zeros = cell.partition(".")
    if point and zeros.strip("0"):
        raise ValueError(f"{cell} is not an index, which is an integer of 0 or more")
    return int(digits)


def _whole(index: Any) -> int:
    """Return an index of a JSON file; raise ValueError unless it is an integer."""
    if isinstance(index, bool) or not isinstance(index, int):
        raise ValueError(f"{index!r} is not an index, which is an integer of 0 or more")
    return index
