"""Synchronous federated averaging.

McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-efficient learning of deep networks from
decentralized data. AISTATS 2017, Algorithm 1. Sampling as in Fraboni et al., JMLR 2023, appendix C:
everyone with weight p_i; m clients uniformly without replacement, (n/m) p_i each; MD: m draws ∝ p, 1/m
each. Biased by a criterion: the m `fastest` (Nishio & Yonetani, 2019) or the m with the `highest_loss` on
their own data (Cho et al., 2020), which all report for every new model, at no cost in virtual time. That
converges to a wrong point, unless a part of every W rounds makes up for it (appendix C.3).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fl_core.parts import Count
from fl_core.problems.problem import Impossible
from fl_core.scenario import Scenario
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy

BIASED = ("fastest", "highest_loss")


class FedAvg(Strategy):
    """Synchronous FedAvg, everyone waits for the slowest (McMahan et al., AISTATS 2017, Algorithm 1)."""

    name: ClassVar[str] = "fedavg"
    title: ClassVar[str] = "FedAvg"

    sampling: Literal["full", "uniform", "md", "fastest", "highest_loss"] = "full"
    sample: Count | None = None  # m
    unbiased_every: Count | None = None  # biased sampling: every so many rounds are sampled uniformly
    # W of biased sampling: the first of W rounds goes by the criterion; the others draw m clients ∝ what they
    # still have to get so that E Σ d_i = W p_i. Keys of runs are older: not described where it is left out.
    window: Count | None = Field(None, exclude_if=lambda window: window is None)

    @model_validator(mode="after")
    def _options_of_a_sampling(self) -> Self:
        if (self.sampling == "full") != (self.sample is None):
            raise ValueError("sample: needed with every sampling but 'full', and only there")
        if self.window is not None and (self.sampling not in BIASED or self.unbiased_every is not None):
            raise ValueError(f"window: goes with sampling {' or '.join(BIASED)}, without unbiased_every")
        return self

    def refuses(self, scenario: Scenario) -> str | None:
        problem, durations = scenario.problem, scenario.timing.durations
        if self.window is None or problem.importance == "data":
            return None
        n = problem.clients
        times, others = (durations.means(n, seed) for seed in (0, 1))
        drawn = durations.per_step or times != others
        if self.sampling == "fastest" and drawn and problem.importance != "equal":
            return None  # who is fastest is known once a seed is: `start`
        return self.too_short(problem.weights(np.ones(n)), times)

    def too_short(self, p: np.ndarray, times: Sequence[Fraction]) -> str | None:
        """Why the window cannot be unbiased for importance p [n] and mean times [n], or None.

        Its first round gives a chosen client p_i over the p of all that are chosen. That must not be more
        than W p_i, so W times the p of the chosen ones must be 1 or more, whoever they are.
        """
        if self.window is None:
            return None
        order = p if self.sampling == "highest_loss" else times  # any client's loss may be the highest
        chosen = sorted(range(len(p)), key=lambda client: order[client])[: self.sample]
        share = float(p[chosen].sum())
        if self.window * share >= 1 - 1e-9:
            return None
        remedy = f"{ceil(1 / share - 1e-9)} or more rounds can" if share else "no window can"
        return (
            f"window: the first round may send to clients that hold {share:.3g} of all importance and gives "
            f"them all weight, which {self.window} rounds cannot make up for; {remedy}"
        )

    def expected(self) -> Self | str:
        return "whom it sends to depends on the losses" if self.sampling == "highest_loss" else self

    def surrogate(self, server: Server) -> Sequence[float]:
        """p_i, as in the published code: a round already weighs clients as the federated problem does."""
        return server.p.tolist()

    def begin(self, server: Server) -> None:
        if reason := self.too_short(server.p, server.mean_time):
            raise Impossible(reason)
        server.memory.round = {}
        server.memory.rounds, server.memory.owed = 0, []
        server.memory.total, server.memory.share = server.zeros(), 0.0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        weight = memory.round.get(update.client, float(server.p[update.client]))
        memory.total += weight * update.delta
        memory.share += weight
        if server.in_flight == 0:
            # A sampled round's weights are right on average; a round that an arrangement sent is a mean.
            server.step(self.server_lr * memory.total / (1 if memory.round else memory.share))
            memory.total, memory.share = server.zeros(), 0.0

    def next(self, server: Server) -> Iterable[int]:
        if server.in_flight:
            return ()
        server.memory.round = self.weights(server)
        return server.memory.round

    def weights(self, server: Server) -> dict[int, float]:
        """The clients of the next round and their weights d_i."""
        p = server.p
        m = min(self.sample or server.n, len(server.idle))
        if self.sampling == "md":
            return multinomial(server, m, p)
        reserved = self.unbiased_every is not None and server.version % self.unbiased_every == 0
        if self.sampling == "uniform" or reserved:
            return {client: float(server.n / m * p[client]) for client in server.draw(m)}
        if self.window is None:
            return self.by_criterion(server, m)
        return self.in_window(server, m, self.window)

    def in_window(self, server: Server, m: int, window: int) -> dict[int, float]:
        """The first round of a window by the criterion; the others pay W p_i less what it gave."""
        memory = server.memory
        first = memory.rounds % window == 0
        memory.rounds += 1
        if not first:
            owed = np.array(memory.owed)
            return multinomial(server, m, owed if owed[server.idle].any() else server.p)
        weights = self.by_criterion(server, m)
        given = np.array([weights.get(client, 0.0) for client in range(server.n)])
        memory.owed = (window * server.p - given).clip(min=0).tolist()
        return weights

    def by_criterion(self, server: Server, m: int) -> dict[int, float]:
        """The m idle clients that fit best, of equals the first; weights p_i, scaled to sum to 1."""
        order = -server.losses() if self.sampling == "highest_loss" else server.mean_time
        chosen = sorted(server.idle, key=lambda client: (order[client], client))[:m]
        share = sum(server.p[client] for client in chosen)
        return {client: float(server.p[client] / share) for client in chosen}


def multinomial(server: Server, m: int, p: np.ndarray) -> dict[int, float]:
    """m draws of idle clients ∝ p [n], weight 1/m each."""
    drawn = Counter(server.draw(m, p, replace=True))
    return {client: times / m for client, times in drawn.items()}
