"""The clients of a synchronous round, and the weights d_i of updates.

FedAvg asks its `sampling` before every round. Weights as in Fraboni, Vidal, Kameni, Lorenzi: A general theory
for federated optimization with asynchronous and heterogeneous clients updates. JMLR 2023, appendix C. In
full, uniform and MD sampling they are the clients' importances p_i on average. Rounds of the clients that fit
a criterion best give the others weight 0 and converge to another point, unless some of the rounds make up for
that (appendix C.3).

Fixed: names, fields and defaults (keys of runs), which clients are drawn, and their weights.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from math import ceil
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from fl_core.parts import FieldError, Part
from fl_core.problems.problem import InvalidProblemError
from fl_core.strategies.participation import Participation, alike
from fl_core.strategies.toolkit import Count, Scenario, Server

Weights = dict[int, float]  # client → d_i
SEEDS = range(20)  # enough to see whether mean times are drawn: then they differ under two of these


class Sampling(Part):
    """The clients of each round of FedAvg, with weights."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.strategies.sampling",)

    def label(self) -> str:
        """Return the name, and the fields with non-default values: "uniform, sample 10"."""
        return ", ".join([self.reference(), *(f"{key} {value}" for key, value in self.changed().items())])

    @property
    def linear(self) -> Literal[True] | str:
        """True if the choice of clients does not depend on the updates, or a sentence with the reason."""
        return True

    def refuses(self, scenario: Scenario) -> str | None:
        """Return the reason why the sampling is incompatible with a scenario, or None."""
        return None

    def participation(self) -> Participation | None:
        """Return the law of each client's share of all arrivals in the long run, or None if none is known."""
        return None

    def begin(self, server: Server) -> None:
        """Allocate `server.memory`; raise InvalidProblemError if the sampling does not fit the clients."""

    def weights(self, server: Server) -> Weights:
        """Return the idle clients of the next round, and the weights d_i."""
        raise NotImplementedError


class Full(Sampling):
    """All clients, weight p_i each (McMahan et al., AISTATS 2017, Algorithm 1 with C = 1)."""

    name: ClassVar[str] = "full"

    def participation(self) -> Participation:
        return alike

    def weights(self, server: Server) -> Weights:
        return by_importance(server, fastest_first(server, server.idle))  # this only orders a sum


class Uniform(Sampling):
    """m clients, uniformly without replacement, (n/m) p_i each (Fraboni et al., JMLR 2023, appendix C.2)."""

    name: ClassVar[str] = "uniform"

    sample: Count  # m, clients of a round

    def participation(self) -> Participation:
        return alike

    def weights(self, server: Server) -> Weights:
        return uniform(server, self.sample)


class MD(Sampling):
    """m draws of clients in proportion to p, 1/m per draw (Fraboni et al., JMLR 2023, appendix C.2)."""

    name: ClassVar[str] = "md"

    sample: Count  # m, clients drawn for a round, with replacement

    def participation(self) -> Participation:
        return self.taking_part

    def taking_part(self, server: Server) -> np.ndarray:
        """Return 1 − (1 − p_i)^m [n], the chance to be in a round: drawn twice, a client works once."""
        return 1 - (1 - server.p) ** min(self.sample, server.n)

    def begin(self, server: Server) -> None:
        server.memory.importances = tuple(server.p.tolist())

    def weights(self, server: Server) -> Weights:
        return multinomial(server, self.sample, server.memory.importances)


class Biased(Sampling):
    """The m clients that fit a criterion best, p_i over the sum of p of all chosen clients.

    With `unbiased_every` some of the rounds are sampled uniformly. With `window` the first of W rounds goes
    by the criterion; the others draw m clients in proportion to the weight they still lack for
    E Σ d_i = W p_i over the window.
    """

    sample: Count  # m, clients of a round
    unbiased_every: Count | None = None  # one round in so many is sampled uniformly
    window: Count | None = None  # W, rounds over which the weights are unbiased

    @model_validator(mode="after")
    def _one_remedy(self) -> Self:
        """Refuse both corrections of the bias at once."""
        if self.window is not None and self.unbiased_every is not None:
            raise FieldError("window", "incompatible with unbiased_every; leave out one of the two")
        return self

    def best(self, server: Server) -> list[int]:
        """Return the m idle clients that fit best, in order; all, if fewer are idle."""
        raise NotImplementedError

    def lightest(self, p: np.ndarray, times: Sequence[Fraction]) -> list[int]:
        """Return the m clients of least importance that can be chosen together, for p [n], mean times [n]."""
        raise NotImplementedError

    def refuses(self, scenario: Scenario) -> str | None:
        problem = scenario.problem
        if problem.importance == "data":
            return None  # known once there are data: `begin`
        times = scenario.timing.durations.means(problem.clients, seed=0)
        return self.too_short(problem.weights(np.ones(problem.clients)), times)

    def too_short(self, p: np.ndarray, times: Sequence[Fraction]) -> str | None:
        """Return why the window cannot be unbiased for importance p [n] and mean times [n], or None.

        Its first round gives a chosen client p_i over the sum of p of those chosen. That must not be more
        than W p_i, so W times this sum must be 1 or more, whichever clients are chosen.
        """
        if self.window is None:
            return None
        share = float(p[self.lightest(p, times)].sum())
        if self.window * share >= 1 - 1e-9:
            return None
        remedy = f"{ceil(1 / share - 1e-9)} or more rounds can" if share else "no window can"
        return (
            f"sampling.window: the first round may send to clients that hold {share:.3g} of all importance "
            f"and gives them all weight, which {self.window} rounds cannot make up for; {remedy}"
        )

    def begin(self, server: Server) -> None:
        if reason := self.too_short(server.p, server.mean_time):
            raise InvalidProblemError(reason)
        server.memory.rounds, server.memory.owed = 0, ()

    def weights(self, server: Server) -> Weights:
        if self.unbiased_every is not None and server.version % self.unbiased_every == 0:
            return uniform(server, self.sample)
        if self.window is not None:
            return self.in_window(server, self.window)
        return by_importance(server, self.best(server))

    def in_window(self, server: Server, window: int) -> Weights:
        """Return the weights of a round: the first of a window by the criterion, then the rest of W p_i."""
        memory = server.memory
        first = memory.rounds % window == 0
        memory.rounds += 1
        if not first:
            owed = any(memory.owed[client] for client in server.idle)
            return multinomial(server, self.sample, memory.owed if owed else server.p)
        weights = by_importance(server, self.best(server))
        cumulated = np.zeros(server.n)
        cumulated[list(weights)] = list(weights.values())
        memory.owed = tuple((window * server.p - cumulated).clip(min=0).tolist())
        return weights


class Fastest(Biased):
    """The m clients with the shortest mean times (Nishio & Yonetani, ICC 2019)."""

    name: ClassVar[str] = "fastest"

    def participation(self) -> Participation | None:
        return self.shares if self.window is None else None

    def shares(self, server: Server) -> list[float]:
        """Return shares [n]: 1/m for the m fastest in rounds by speed, 1/n for all in uniform rounds."""
        order = sorted(range(server.n), key=lambda client: (server.mean_time[client], client))
        best = order[: self.sample]
        uniform = 1 / self.unbiased_every if self.unbiased_every else 0.0
        return [uniform / server.n + (1 - uniform) * (i in best) / len(best) for i in range(server.n)]

    def begin(self, server: Server) -> None:
        super().begin(server)
        server.memory.order = fastest_first(server, range(server.n))

    def best(self, server: Server) -> list[int]:
        idle = (i for i in server.memory.order if server.present[i])  # a round begins when none is at work
        return list(islice(idle, self.sample))

    def lightest(self, p: np.ndarray, times: Sequence[Fraction]) -> list[int]:
        return sorted(range(len(times)), key=lambda client: times[client])[: self.sample]

    def refuses(self, scenario: Scenario) -> str | None:
        durations, n = scenario.timing.durations, scenario.problem.clients
        means = {durations.means(n, seed) for seed in SEEDS}
        if (durations.per_step or len(means) > 1) and scenario.problem.importance != "equal":
            return None  # which clients are fastest depends on the seed: `begin`
        return super().refuses(scenario)


class HighestLoss(Biased):
    """The m clients with the highest loss on their own data (Cho et al., arXiv 2010.01243, 2020).

    All clients report it for every new model, at no cost in virtual time.
    """

    name: ClassVar[str] = "highest_loss"
    linear: ClassVar[str] = "whom it sends to depends on the losses"

    def best(self, server: Server) -> list[int]:
        idle = np.array(server.idle if len(server.idle) < server.n else range(server.n))
        falling = -server.losses()[idle]
        if self.sample < len(idle):
            fits = ~(falling > np.partition(falling, self.sample - 1)[self.sample - 1])
            idle, falling = idle[fits], falling[fits]
        best: list[int] = idle[np.lexsort((idle, falling))][: self.sample].tolist()
        return best

    def lightest(self, p: np.ndarray, times: Sequence[Fraction]) -> list[int]:
        return sorted(range(len(p)), key=lambda client: p[client])[: self.sample]  # any loss may be highest


def fastest_first(server: Server, clients: Sequence[int]) -> list[int]:
    """Return clients by mean time, ties by number."""
    return sorted(clients, key=lambda client: (server.mean_time[client], client))


def by_importance(server: Server, clients: Sequence[int]) -> Weights:
    """Return p_i over the sum of p of all given clients."""
    share = sum(server.p[client] for client in clients) or 1.0  # 0: their updates weigh nothing
    return {client: float(server.p[client] / share) for client in clients}


def uniform(server: Server, sample: int) -> Weights:
    """Return m idle clients drawn uniformly without replacement, (n/m) p_i each; all, if fewer are idle."""
    m = min(sample, len(server.idle))
    return {client: float(server.n / m * server.p[client]) for client in server.draw(m)}


def multinomial(server: Server, sample: int, p: np.ndarray | tuple[float, ...]) -> Weights:
    """Return m draws of idle clients ∝ p [n], 1/m per draw; no more draws than clients are idle."""
    m = min(sample, len(server.idle))
    drawn = Counter(server.draw(m, p, replace=True))
    return {client: times / m for client, times in drawn.items()}
