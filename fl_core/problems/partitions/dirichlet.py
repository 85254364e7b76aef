"""Partitions with shares of labels from Dirichlet laws."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from fl_core.parts import Rate
from fl_core.problems.partitions.partition import Partition, cut
from fl_core.problems.problem import InvalidProblemError
from fl_core.streams import stream


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
            f"partition {self.reference()} with alpha {self.alpha:g}: in {self.ATTEMPTS} draws some of the "
            f"{clients} clients always had fewer than {self.min_size} data points; raise alpha, or lower "
            "min_size or clients"
        )

    def _counts(self, sizes: np.ndarray, clients: int, random: np.random.Generator) -> np.ndarray | None:
        """Return data points by class and client [classes, n]; None if no client can take a class."""
        counts = np.zeros((len(sizes), clients), int)
        for label, size in enumerate(sizes):
            share = random.dirichlet(np.full(clients, self.alpha))
            if self.balance:
                share = share * (counts.sum(0) < sizes.sum() / clients)
            if not share.sum() > 0:  # for tiny α all of a class may fall on clients that are full
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
    """Return the class counts of `size` draws from `mix` without replacement, `left` [classes] available.

    Draws of a class that is used up are drawn again. The law is that of drawing one by one.
    """
    counts = np.zeros_like(remaining)
    while missing := size - counts.sum():
        open_mix = mix * (counts < remaining)
        if not open_mix.sum() > 0:  # all classes of its mix are used up: it takes others
            open_mix = remaining - counts
        counts = np.minimum(counts + random.multinomial(missing, open_mix / open_mix.sum()), remaining)
    return counts
