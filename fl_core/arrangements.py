"""Arrangements: rules of a scenario for the client and the model version of each job.

`Dispatch` asks the arrangement for sends in the place of the strategy, for experiments of papers that fix
both.

Fixed: names, fields and defaults (keys of runs), and which clients and versions are drawn.
"""

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import NonNegativeFloat

from fl_core.parts import Count, FieldError, Part, Rate
from fl_core.server.jobs import Send
from fl_core.server.server import Server
from fl_core.text import miscounted


class Arrangement(Part):
    """A scenario's rule for sends, in the place of the strategy's `next`: the strategy only aggregates."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.arrangements",)

    history: Count = 1  # versions kept, the newest included

    def check(self, n: int) -> None:
        """Raise FieldError for values incompatible with n clients."""

    def next(self, server: Server) -> Iterable[int | Send]:
        """Return the next clients to work, and a version for each."""
        raise NotImplementedError


class Rounds(Arrangement):
    """Rounds of m workers that start from random recent versions (Yang et al., ICML 2022, §E).

    Each worker's base model is uniform over the last `history` versions; 1 makes the rounds synchronous.
    """

    name: ClassVar[str] = "rounds"

    workers: Count = 5  # m, workers of a round
    history: Count = 5
    arrivals: Literal["uniform"] | tuple[NonNegativeFloat, ...] = "uniform"  # workers are drawn ∝ these
    replacement: bool = False  # whether a worker can be drawn twice in a round (appendix B)
    most_steps: Count | None = None  # 2c: dynamic K, uniform in 1 … 2c; None: the local work's K

    def label(self) -> str:
        """Return the rounds in words."""
        rounds = f"rounds of {self.workers}"
        age = f"{rounds} from the last {self.history} models" if self.history > 1 else f"synchronous {rounds}"
        dynamic = f"1 … {self.most_steps} steps" if self.most_steps else ""
        return ", ".join(
            filter(None, [age, "" if self.arrivals == "uniform" else "biased arrivals", dynamic])
        )

    def check(self, n: int) -> None:
        if self.arrivals != "uniform" and len(self.arrivals) != n:
            raise FieldError("arrivals", miscounted(self.arrivals, n))

    def next(self, server: Server) -> Iterable[Send]:
        if server.in_flight:
            return []
        p = None if self.arrivals == "uniform" else self.arrivals
        rng = server.stream("rounds", *self.round(server))
        oldest = min(self.history - 1, server.version)
        return [
            Send(
                client,
                version=server.version - int(rng.integers(0, oldest + 1)),
                steps=None if self.most_steps is None else int(rng.integers(1, self.most_steps + 1)),
            )
            for client in server.draw(self.workers, p, replace=self.replacement)
        ]

    def round(self, server: Server) -> tuple[int, ...]:
        """Return the ids of the round's stream: the version, and the updates if a round made no step."""
        size = self.workers if self.replacement else min(self.workers, server.n)
        all_stepped = server.updates == size * server.version
        return (server.version,) if all_stepped else (server.version, server.updates)


class IterationDelay(Arrangement):
    """Delay counted in server iterations, ⌊Exp(β)⌋ versions back (a reading of arXiv 2511.19066, 2025, §5).

    One client at a time, uniformly drawn, with the model of that many versions ago, or the oldest kept.
    """

    name: ClassVar[str] = "iteration_delay"

    mean: Rate = 5.0  # β, mean delay in server iterations
    history: Count = 500

    def label(self) -> str:
        """Return the delay in words."""
        return f"Exp({self.mean:g}) iterations late"

    def next(self, server: Server) -> Iterable[Send]:
        if server.in_flight:
            return []
        delay = int(server.stream("iteration_delay", server.updates).exponential(self.mean))
        version = server.version - min(delay, server.version, self.history - 1)
        return [Send(client, version=version) for client in server.draw(1)]
