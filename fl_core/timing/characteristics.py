"""A population of clients in six numbers, for comparing populations in `asyncfl advise`.

Each number is the logarithm of a factor: a distance of log 2 is a factor of two in one number.

Free: no stored result depends on it; `asyncfl advise` measures the leaderboard's populations anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import takewhile

import numpy as np
from scipy.optimize import brentq

from fl_core.timing.availability import Absence, Availability, checked
from fl_core.timing.durations import Durations, Lengths
from fl_core.timing.network import MBIT, Network, Way

JOBS = 200  # of each client, from which a random law's tail is estimated
TAIL_QUANTILE = 0.99  # of a client's lengths of jobs


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a population, and the size of its messages."""

    network: Network
    message: float  # bytes, of a model and of an update
    unit: float  # seconds in a unit of virtual time

    def seconds(self, n: int, seed: int, ids: Sequence[str] | None) -> np.ndarray:
        """Return the seconds of each client's download and upload of a message together [n]."""
        seconds = 2 * np.array([float(latency) for latency in self.network.latencies(n, seed, ids)])
        for way in Way:
            rates = np.array([float(rate) for rate in self.network.rates(way, n, seed, ids)])
            seconds += self.message / (rates * MBIT)
        return seconds

    def waiting(self, cycles: np.ndarray, at_work: int) -> float:
        """Return the mean additional seconds of each job due to shared links.

        Equal for all clients, and just long enough for the links to carry no more than their capacity.

        Args:
            cycles: Each client's mean seconds for a job and its transfers over its own links [n].
            at_work: Clients at work at a time.
        """
        shared = self.network.shared
        bounds = [float(limit) for limit in (shared.downlink, shared.uplink) if limit is not None]
        if not bounds:
            return 0.0
        max_jobs = min(bounds) * shared.cells * MBIT / self.message  # a second
        busy = at_work / len(cycles)

        def excess(waiting: float) -> float:
            return busy * float((1 / (cycles + waiting)).sum()) - max_jobs

        return float(brentq(excess, 0, at_work / max_jobs)) if excess(0) > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Characteristics:
    """Six numbers about clients: speeds, slowest client, tail, absences, transfers, idleness."""

    spread: float  # standard deviation of log mean lengths over clients
    slowest: float  # log of the slowest client's mean length over the median client's
    tail: float  # log of the 99th percentile of a client's lengths over their mean, averaged over clients
    absence: float  # −log of the share of time that clients are present
    transfers: float = 0.0  # log of a job's time with its transfers over that without, averaged over clients
    idleness: float = 0.0  # log of the clients present over those that are at work at a time

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
    links: Links | None = None,
    at_work: int | None = None,
) -> Characteristics:
    """Return the characteristics of n clients, averaged over seeds.

    Args:
        durations: The law of the lengths of jobs.
        availability: The law of absences.
        n: The number of clients.
        seeds: Seeds to average over.
        horizon: Virtual time up to which absences count.
        ids: Returns the ids of n clients under a seed, if files are joined by ids; see `Timing.ids`.
        links: Links over which messages travel; None: in no time.
        at_work: Clients at work at a time; None: all that are present.

    Raises:
        ValueError: A law does not fit n clients, or no client is present before the horizon.
    """

    def under(seed: int) -> Characteristics:
        client_ids, lengths = ids(n, seed), Lengths(durations, n, seed)
        jobs = np.array([[lengths(client, job) for job in range(JOBS)] for client in range(n)], float)
        means = np.array([float(mean) for mean in lengths.means])
        tails = np.quantile(jobs, TAIL_QUANTILE, axis=1) / jobs.mean(axis=1)
        all_absences = [checked(availability, client, n, seed, client_ids) for client in range(n)]
        away = sum(sum(_lengths(absences, horizon)) for absences in all_absences)
        present = 1 - away / (n * horizon)
        if present <= 0:
            raise ValueError(f"availability: no client is present before time {horizon:g}")
        transfers = 0.0
        if links:
            seconds, alone = links.seconds(n, seed, client_ids), means * links.unit
            seconds = seconds + links.waiting(alone + seconds, min(at_work or n, max(1, round(present * n))))
            transfers = float(np.log1p(seconds / alone).mean())
        return Characteristics(
            spread=float(np.log(means).std()),
            slowest=float(np.log(means.max() / np.median(means))),
            tail=float(np.log(tails).mean()),
            absence=-math.log(present),
            transfers=transfers,
        )

    mean = Characteristics(*np.mean([astuple(under(seed)) for seed in seeds], axis=0).tolist())
    idle = 0.0 if at_work is None else max(0.0, math.log(n / at_work) - mean.absence)
    return replace(mean, idleness=idle)


def _lengths(absences: Iterator[Absence], horizon: float) -> Iterator[float]:
    """Yield the lengths of a client's absences before the horizon."""
    for departure, back in takewhile(lambda span: span[0] < horizon, absences):
        yield min(horizon, math.inf if back is None else float(back)) - float(departure)
