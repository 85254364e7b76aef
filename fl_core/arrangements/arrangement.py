"""The arrangement interface: a scenario that decides itself who works on what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from fl_core.parts import Count, Part, Rate
from fl_core.server.jobs import Send

if TYPE_CHECKING:
    from fl_core.server.server import Server


class Arrangement(Part):
    """Stands in for the strategy's `next`: the strategy aggregates, the arrangement sends."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.arrangements.arrangement",)

    history: Count = 1  # versions kept, the newest included

    def next(self, server: Server) -> Iterable[int | Send]:
        """Who gets which version now."""
        raise NotImplementedError


class Rounds(Arrangement):
    """Rounds of m workers, each from one of the last versions (Yang et al., ICML 2022, §E).

    Each worker takes a base model uniformly from the last `history` versions; 1 makes the rounds synchronous.
    """

    name: ClassVar[str] = "rounds"

    workers: Count = 5  # m
    history: Count = 5
    arrivals: Literal["uniform"] | tuple[float, ...] = "uniform"  # workers come ∝ these
    # Whether a worker can come twice in a round (appendix B); a description mentions it only then.
    replacement: bool = Field(False, exclude_if=lambda value: not value)
    most_steps: Count | None = None  # 2c: dynamic K, uniform in 1 … 2c; None: the local work's K

    def label(self) -> str:
        """Who comes how, in words."""
        rounds = f"rounds of {self.workers}"
        age = f"{rounds} from the last {self.history} models" if self.history > 1 else f"synchronous {rounds}"
        dynamic = f"1 … {self.most_steps} steps" if self.most_steps else ""
        return ", ".join(
            filter(None, [age, "" if self.arrivals == "uniform" else "biased arrivals", dynamic])
        )

    def next(self, server: Server) -> Iterable[Send]:
        if server.in_flight:
            return []
        p = None if self.arrivals == "uniform" else np.array(self.arrivals)
        rng = server.stream("rounds", server.version)
        oldest = min(self.history - 1, server.version)
        return [
            Send(
                client,
                version=server.version - int(rng.integers(0, oldest + 1)),
                steps=None if self.most_steps is None else int(rng.integers(1, self.most_steps + 1)),
            )
            for client in server.draw(self.workers, p, replace=self.replacement)
        ]


class IterationDelay(Arrangement):
    """Delay counted in server iterations, ⌊Exp(β)⌋ versions back (a reading of arXiv 2511.19066, 2025, §5).

    One client at a time, uniformly drawn, with the model of so many versions ago, or the oldest kept.
    """

    name: ClassVar[str] = "iteration_delay"

    mean: Rate = 5.0  # β
    history: Count = 500

    def label(self) -> str:
        """The delay, in words."""
        return f"Exp({self.mean:g}) iterations late"

    def next(self, server: Server) -> Iterable[Send]:
        if server.in_flight:
            return []
        delay = int(server.stream("iteration_delay", server.updates).exponential(self.mean))
        version = server.version - min(delay, server.version, self.history - 1)
        return [Send(client, version=version) for client in server.draw(1)]
