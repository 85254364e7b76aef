"""A population of clients in four numbers, for comparing populations.

Each is the logarithm of a factor: a distance of log 2 is a factor of two in one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import takewhile

import numpy as np

from fl_core.timing.availability import Absence, Availability, checked
from fl_core.timing.durations import Durations, Lengths

JOBS = 200  # of each client, from which a random law's tail is estimated
RARE = 0.99  # a job longer than this share of the client's is one of the tail


@dataclass(frozen=True, slots=True)
class Characteristics:
    """Four numbers about a population of clients: speeds, lengths of jobs, absences."""

    spread: float  # standard deviation of log mean lengths over clients
    slowest: float  # log of the slowest client's mean length over the median client's
    tail: float  # log of the 99th percentile of a client's lengths over their mean, averaged over clients
    absence: float  # −log of the share of time that clients are present

    def distance(self, other: Characteristics) -> float:
        """Return the Euclidean distance from another population."""
        return math.dist(astuple(self), astuple(other))


def characteristics(
    durations: Durations,
    availability: Availability,
    n: int,
    seeds: Sequence[int],
    horizon: float,
    *,
    ids: Callable[[int, int], Sequence[str] | None] = lambda n, seed: None,
) -> Characteristics:
    """Return the characteristics of n clients, averaged over seeds.

    Args:
        durations: The law of the lengths of jobs.
        availability: The law of absences.
        n: The number of clients.
        seeds: Seeds to average over.
        horizon: Virtual time up to which absences count.
        ids: Returns the ids of n clients under a seed, where files are joined by them; see `Timing.ids`.

    Raises:
        ValueError: A law does not fit n clients, or no client is present before the horizon.
    """
    rows = [astuple(_under(seed, durations, availability, n, horizon, ids=ids(n, seed))) for seed in seeds]
    return Characteristics(*np.mean(rows, axis=0).tolist())


def _under(
    seed: int,
    durations: Durations,
    availability: Availability,
    n: int,
    horizon: float,
    *,
    ids: Sequence[str] | None,
) -> Characteristics:
    lengths = Lengths(durations, n, seed)
    jobs = np.array([[lengths(client, job) for job in range(JOBS)] for client in range(n)], float)
    means = np.array([float(mean) for mean in lengths.means])
    tails = np.quantile(jobs, RARE, axis=1) / jobs.mean(axis=1)
    given = [checked(availability, client, n, seed, ids) for client in range(n)]
    away = sum(sum(_lengths(absences, horizon)) for absences in given)
    present = 1 - away / (n * horizon)
    if present <= 0:
        raise ValueError(f"availability: no client is present before time {horizon:g}")
    return Characteristics(
        spread=float(np.log(means).std()),
        slowest=float(np.log(means.max() / np.median(means))),
        tail=float(np.log(tails).mean()),
        absence=-math.log(present),
    )


def _lengths(absences: Iterator[Absence], horizon: float) -> Iterator[float]:
    """Yield the lengths of a client's absences before the horizon."""
    for left, back in takewhile(lambda span: span[0] < horizon, absences):
        yield min(horizon, math.inf if back is None else float(back)) - float(left)
