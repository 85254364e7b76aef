"""Algorithms that keep a table of clients, written plainly from their papers, and a slow loop of events.

Nothing of fl_core is used. An algorithm holds all its `models`, takes an arrival with `receive` and says with
`sends` which clients get the newest model next. Clients hold λ_i/2 ‖x − c_i‖² and make K_i plain gradient
steps; an update is δ = x_K − x, so that a gradient of the papers is −δ/η_l where K = 1.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

Vector = np.ndarray


@dataclass
class Clients:
    """Quadratics, local steps and rates of n clients."""

    centres: Vector  # [n, d]
    curvature: Sequence[float]
    steps: Sequence[int]  # K_i

    def __len__(self) -> int:
        return len(self.centres)

    def work(self, client: int, x: Vector, lr: float) -> tuple[Vector, Vector]:
        """δ, and the mean gradient over the K steps."""
        y, total = x.copy(), np.zeros_like(x)
        for _ in range(self.steps[client]):
            gradient = self.curvature[client] * (y - self.centres[client])
            total = total + gradient
            y = y - lr * gradient
        return y - x, total / self.steps[client]


@dataclass
class Arrival:
    """What the server hears."""

    client: int
    version: int  # of the model that the client started from
    delta: Vector
    gradient: Vector
    lr: float
    in_flight: int = 0  # jobs of others


@dataclass
class Algorithm:
    """State and rates that all have; `sends` is that of clients who pull a model whenever they are free."""

    n: int
    first: Vector
    server_lr: float
    local_lr: float
    models: list[Vector] = field(init=False)
    abandons = False  # whether a step ends all work in progress

    def __post_init__(self) -> None:
        self.models = [self.first]
        self.begin()

    def begin(self) -> None:
        """Set up the state."""

    def receive(self, arrival: Arrival) -> None:
        raise NotImplementedError

    def rate(self) -> float:
        """η_l of a job sent now."""
        return self.local_lr

    def sends(self, free: set[int]) -> set[int]:
        """Which of the free clients get the newest model."""
        return free

    def add(self, step: Vector | float) -> None:
        """x ← x + η_g step."""
        self.models.append(self.models[-1] + self.server_lr * step)


class Patient(Algorithm):
    """All are sent w^0 and then wait until each of them was heard; the new model goes to all of them."""

    def begin(self) -> None:
        self.table: dict[int, Vector] = {}

    def sends(self, free: set[int]) -> set[int]:
        return free if len(self.models) > 1 else free - self.table.keys()


class ACEDirect(Patient):
    """arXiv 2511.19066, Algorithm 1."""

    def receive(self, arrival: Arrival) -> None:
        self.table[arrival.client] = arrival.delta
        if len(self.table) == self.n:
            self.add(sum(self.table.values()) / self.n)


class ACEIncremental(Patient):
    """arXiv 2511.19066, Algorithm a.5, as DuDe-ASGD (2405.16966): clients send how gradients changed."""

    def begin(self) -> None:
        super().begin()
        self.u = np.zeros_like(self.first)

    def receive(self, arrival: Arrival) -> None:
        last = self.table.get(arrival.client)
        change = arrival.delta if last is None else arrival.delta - last
        self.table[arrival.client] = arrival.delta
        self.u = self.u + change / self.n
        if len(self.table) == self.n:
            self.add(self.u)


class IA2SGD(Algorithm):
    """The code of arXiv 2509.22860: all work on at x^0 until the table is full; later arrivals step."""

    def begin(self) -> None:
        self.table: list[Vector | None] = [None] * self.n

    def receive(self, arrival: Arrival) -> None:
        full = all(row is not None for row in self.table)
        self.table[arrival.client] = arrival.delta
        if full:
            self.add(np.mean(self.table, axis=0))


@dataclass
class ACED(Patient):
    """arXiv 2511.19066, Algorithm a.1: A(t) = {i : t − t_i ≤ τ_algo}; w stays where A(t) is empty."""

    max_age: int = 10
    by_arrival: bool = True  # what t_i is; else the iteration of the model behind the gradient
    as_ia2sgd: bool = False  # all work on until the table is full, and arrivals from then on step
    step_after: int = 1  # arrivals; the authors' code waits for n of them, and sends models at once

    def begin(self) -> None:
        super().begin()
        self.stamps: dict[int, int] = {}
        self.waiting = 0

    def receive(self, arrival: Arrival) -> None:
        t, full = len(self.models) - 1, len(self.table) == self.n
        self.waiting += 1
        self.table[arrival.client] = arrival.delta
        self.stamps[arrival.client] = t if self.by_arrival else arrival.version
        if len(self.table) < self.n or (self.as_ia2sgd and not full) or self.waiting < self.step_after:
            return
        self.waiting = 0
        active = [i for i in range(self.n) if t - self.stamps[i] <= self.max_age]
        self.add(sum(self.table[i] for i in active) / len(active) if active else 0.0)

    def sends(self, free: set[int]) -> set[int]:
        return free if self.as_ia2sgd else super().sends(free)


@dataclass
class AFACS(Algorithm):
    """Anarchic averaging across silos (ICML 2022): rounds of m updates, the mean of all M slots."""

    m: int = 5
    first_pass: bool = False  # the first round is one of all M workers

    def begin(self) -> None:
        self.slots = [np.zeros_like(self.first) for _ in range(self.n)]
        self.round: list[Arrival] = []

    def receive(self, arrival: Arrival) -> None:
        self.round.append(arrival)
        first = self.first_pass and len(self.models) == 1
        if len(self.round) == (self.n if first else self.m):
            for one in self.round:
                self.slots[one.client] = one.gradient
            self.add(-self.local_lr * sum(self.slots) / self.n)
            self.round = []

    def sends(self, free: set[int]) -> set[int]:
        waits = self.first_pass and len(self.models) == 1
        return free - {one.client for one in self.round} if waits else free


@dataclass
class MIFA(Algorithm):
    """NeurIPS 2021, Algorithm 1: rounds of the available, η_t = η/(t+1) at clients and server."""

    zeros: bool = False  # start with G_i = 0, not when all were heard
    as_code: bool = False  # the authors': rounds until each was available, then the whole table, then steps

    def begin(self) -> None:
        self.G = [np.zeros_like(self.first) for _ in range(self.n)]
        self.missing = set() if self.zeros else set(range(self.n))
        self.in_flight = 0

    def rate(self) -> float:
        return self.local_lr / len(self.models)

    def receive(self, arrival: Arrival) -> None:
        self.G[arrival.client] = -arrival.delta / arrival.lr
        self.missing -= {arrival.client}
        self.in_flight = arrival.in_flight
        if self.in_flight:
            return
        if self.as_code:
            self.as_code = bool(self.missing)  # all rows are of w_0, as if all clients had filled them now
        elif not self.missing:
            self.add(-self.rate() * sum(self.G) / self.n)

    def sends(self, free: set[int]) -> set[int]:
        if self.in_flight:
            return set()
        self.in_flight = len(free)
        return free


@dataclass
class CA2FL(Algorithm):
    """ICLR 2024, Algorithm 2: calibrated by h_i, which starts at zero; h is renewed after a step."""

    m: int = 10

    def begin(self) -> None:
        self.h = [np.zeros_like(self.first) for _ in range(self.n)]
        self.h_mean = np.zeros_like(self.first)
        self.buffer: list[Vector] = []

    def receive(self, arrival: Arrival) -> None:
        self.buffer.append(arrival.delta - self.h[arrival.client])
        self.h[arrival.client] = arrival.delta
        if len(self.buffer) == self.m:
            self.add(self.h_mean + sum(self.buffer) / self.m)
            self.h_mean = sum(self.h) / self.n
            self.buffer = []


@dataclass
class Malenia(Algorithm):
    """NeurIPS 2023: at x, gather while ((1/n) Σ 1/B_i)^{-1} ≤ S/n; the mean of the clients' means."""

    batch: int = 5
    abandons = True

    def begin(self) -> None:
        self.heard: list[list[Vector]] = [[] for _ in range(self.n)]

    def receive(self, arrival: Arrival) -> None:
        self.heard[arrival.client].append(arrival.delta)
        if not all(self.heard):
            return
        inverse = sum(Fraction(1, len(one)) for one in self.heard) / self.n
        if 1 / inverse > Fraction(self.batch, self.n):
            self.add(sum(sum(one) / len(one) for one in self.heard) / self.n)
            self.begin()


class Ringleader(Algorithm):
    """ICLR 2026: gather until the table is full, then n steps of its mean, one at an arrival of each."""

    def begin(self) -> None:
        self.table: list[list[Vector]] = [[] for _ in range(self.n)]
        self.table_plus: list[list[Vector]] = [[] for _ in range(self.n)]
        self.to_step: set[int] | None = None  # phase 2: who is still to make its step

    def receive(self, arrival: Arrival) -> None:
        if self.to_step is not None and arrival.client not in self.to_step:
            self.table_plus[arrival.client].append(arrival.delta)
            return
        self.table[arrival.client].append(arrival.delta)
        if self.to_step is None and all(self.table):
            self.to_step = set(range(self.n))
        if self.to_step is None:
            return
        self.add(sum(sum(one) / len(one) for one in self.table) / self.n)
        self.to_step -= {arrival.client}
        if not self.to_step:
            self.table, self.table_plus = self.table_plus, [[] for _ in range(self.n)]
            self.to_step = None


@dataclass
class Absence:
    """Clients that leave at one time and are back at another."""

    clients: Sequence[int]
    at: Fraction
    back: Fraction


Seen = tuple[Fraction, int, int]  # time, client, version of its model


def play(
    algorithm: Algorithm,
    clients: Clients,
    times: Sequence[Fraction],
    updates: int,
    absence: Absence | None = None,
) -> list[Seen]:
    """So many arrivals; client i's jobs take times[i]."""
    free, absent = set(range(len(clients))), set[int]()
    flight: list[tuple[Fraction, int, int, float]] = []
    seen: list[Seen] = []
    changes: list[tuple[Fraction, set[int]]] = []  # who is absent from when on
    if absence is not None:
        changes = [(absence.at, set(absence.clients)), (absence.back, set())]
    if changes and changes[0][0] == 0:
        absent = changes.pop(0)[1]

    def send(now: Fraction) -> None:
        for client in algorithm.sends(free - absent):
            free.remove(client)
            heapq.heappush(flight, (now + times[client], client, len(algorithm.models) - 1, algorithm.rate()))

    send(Fraction(0))
    while len(seen) < updates:
        if changes and (not flight or changes[0][0] < flight[0][0]):
            now, absent = changes.pop(0)
            send(now)
            continue
        now, client, version, lr = heapq.heappop(flight)
        free.add(client)
        seen.append((now, client, version))
        before = len(algorithm.models)
        delta, gradient = clients.work(client, algorithm.models[version], lr)
        algorithm.receive(Arrival(client, version, delta, gradient, lr, len(flight)))
        if algorithm.abandons and len(algorithm.models) > before:
            flight.clear()
            free = set(range(len(clients)))
        send(now)
    return seen


def follow(algorithm: Algorithm, clients: Clients, arrivals: Sequence[tuple[int, int]]) -> int:
    """Take the arrivals (client, version of its model) that are given; the largest staleness among them."""
    largest = 0
    for client, version in arrivals:
        largest = max(largest, len(algorithm.models) - 1 - version)
        delta, gradient = clients.work(client, algorithm.models[version], algorithm.rate())
        algorithm.receive(Arrival(client, version, delta, gradient, algorithm.rate()))
    return largest
