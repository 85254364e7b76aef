"""Synchronous federated averaging.

McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-efficient learning of deep networks from
decentralized data. AISTATS 2017, Algorithm 1: θ ← θ + η_g Σ d_i Δ_i over the clients of a round. The
choice of clients and their weights d_i is a part of its own: `sampling`.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from pydantic import SerializeAsAny, model_validator

from fl_core.parts import FieldError
from fl_core.scenario import Scenario
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.participation import Participation
from fl_core.strategies.rounds.sampling import Full, Sampling
from fl_core.strategies.strategy import Strategy


class FedAvg(Strategy):
    """Synchronous FedAvg, a round waits for the slowest (McMahan et al., AISTATS 2017, Algorithm 1)."""

    name: ClassVar[str] = "fedavg"
    title: ClassVar[str] = "FedAvg"

    sampling: SerializeAsAny[Sampling] = Full()  # the clients of a round, and their weights

    @model_validator(mode="before")
    @classmethod
    def _options_stand_in_the_sampling(cls, written: Any) -> Any:
        """Refuse the form of older files, `{name: fedavg, sampling: uniform, sample: 10}`, in one line."""
        older = {"sample", "unbiased_every", "window"}
        if isinstance(written, dict) and (moved := {key: written[key] for key in written if key in older}):
            options = {"name": written.get("sampling", "uniform"), **moved}
            now = ", ".join(f"{key}: {value}" for key, value in options.items())
            raise FieldError("sampling", f"a sampling has options of its own; write sampling: {{{now}}}")
        return written

    @property
    def linear(self) -> Literal[True] | str:
        return self.sampling.linear

    def refuses(self, scenario: Scenario) -> str | None:
        return self.sampling.refuses(scenario)

    def participation(self, scenario: Scenario) -> Participation | None:
        return self.sampling.participation()

    def begin(self, server: Server) -> None:
        self.sampling.begin(server)
        server.memory.round = {}  # d_i
        server.memory.total, server.memory.share = server.zeros(), 0.0

    def receive(self, server: Server, update: Update) -> None:
        memory = server.memory
        weight = memory.round.get(update.client, float(server.p[update.client]))
        memory.total += weight * update.delta
        memory.share += weight
        self.end_round(server)

    def lost(self, server: Server, client: int) -> None:
        if server.memory.share:  # else none has answered: the next round is from the same model
            self.end_round(server)

    def end_round(self, server: Server) -> None:
        """Step if all clients of the round have answered."""
        memory = server.memory
        if server.in_flight == 0:
            # A sampled round's weights are unbiased; a round that an arrangement sent is averaged.
            server.step(self.server_lr * memory.total / (1 if memory.round else memory.share))
            memory.total, memory.share = server.zeros(), 0.0

    def next(self, server: Server) -> Iterable[int]:
        if server.in_flight:
            return ()
        server.memory.round = self.sampling.weights(server)
        return server.memory.round
