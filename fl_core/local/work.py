"""The local-work interface: what a client does with the model it receives."""

from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Literal, Self

from torch import Tensor

from fl_core.parts import Count, Part, Rate, exact
from fl_core.problems.problem import World
from fl_core.server.jobs import Job, Update
from fl_core.server.server import Server
from fl_core.text import miscounted

Sampling = Literal["replacement", "epochs"]


@dataclass(slots=True)
class Work:
    """Inputs of `LocalWork.correct`: those of a job, or of J jobs stacked along a first axis."""

    start: Tensor  # [d] or [J, d], moved along by a fresh model that the client received since
    broadcast: dict[str, Tensor]
    client_state: dict[str, Tensor]

    @classmethod
    def of(cls, job: Job) -> Self:
        """Return the inputs of a job at its first step."""
        return cls(job.start, job.broadcast, job.client_state)


class LocalWork(Part):
    """K local steps on mini-batches. `correct` and `move` are pure; the last axis is the parameters.

    Mini-batches are drawn with replacement, or by `epochs`: the client's data, shuffled afresh for every job
    and then epoch after epoch, cut into mini-batches of B. So each data point is used once before any is used
    twice. Unlike in published code, the rest at the end of an epoch is neither dropped nor used as a smaller
    mini-batch: the next epoch fills it up, so that all steps weigh the same and jobs can be stacked.
    """

    homes: ClassVar[tuple[str, ...]] = ("fl_core.local",)
    whole: ClassVar[bool] = False  # whether a job is computed as a whole, by `compute`, and not step by step

    steps: Count | tuple[Count, ...] = 1  # K, the same for all or for each client
    dynamic: bool = False  # K uniform in 1 … 2·steps, drawn per job (anarchic federated learning)
    epochs: Rate | None = None  # K = ⌈epochs · n_i / B⌉ instead, at least 1
    batch: Count = 32  # B, data points per step
    sampling: Sampling = "replacement"  # of mini-batches: with replacement, or epoch after epoch
    lr_factors: tuple[Rate, ...] | None = None  # η_l(i) = factor · η_l, for each client

    def refuses(self, clients: int) -> str | None:
        """Return why this local work does not fit a number of clients, in one sentence, or None."""
        for key in ("steps", "lr_factors"):
            given = getattr(self, key)
            if isinstance(given, tuple) and len(given) != clients:
                return f"local.{key}: {miscounted(given, clients)}"
        return None

    @property
    def linear(self) -> Literal[True] | str:
        """True if a step on an expected gradient is the expected step, else a sentence that says why not."""
        return True

    @property
    def kept_by_clients(self) -> tuple[str, ...]:
        """Names in `server.local` of the state that clients would keep in a deployment."""
        return ()

    def usual(self, client: int, size: int) -> int:
        """Return K of a client that holds `size` data points; the mean of K, less a half, if K is dynamic."""
        if self.epochs is not None:
            return max(1, ceil(exact(self.epochs) * size / self.batch))
        return self.steps[client] if isinstance(self.steps, tuple) else self.steps

    def count(self, server: Server, client: int, job: int) -> int:
        """Return K of the client's job-th job, unless the sender fixes K."""
        steps = self.usual(client, int(server.sizes[client]))
        return int(server.stream("steps", client, job).integers(1, 2 * steps + 1)) if self.dynamic else steps

    def samples(self, world: World, job: Job) -> Tensor:
        """Return the mini-batches of the job's K steps [K, ...]."""
        drawn = world.shuffled if self.sampling == "epochs" else world.samples
        return drawn(job.client, job.index, job.steps, self.batch)

    def begin(self, server: Server) -> None:
        """Allocate `server.local`."""

    def broadcast(self, server: Server) -> dict[str, Tensor]:
        """Return the tensors that travel with a version, copied when the version is made."""
        return {}

    def client_state(self, server: Server, client: int) -> dict[str, Tensor]:
        """Return the client's own tensors, copied when a job's service starts."""
        return {}

    def moments(self, model: Tensor) -> dict[str, Tensor]:
        """Return the optimiser's memory before a client's first step, if the client keeps it between jobs.

        Where it is not empty, a job's `move` begins with the memory that the client's latest update left. One
        entry has at least one dimension, such as a count [1]; of J stacked jobs it is [J, 1].
        """
        return {}

    def compute(self, job: Job, world: World) -> None:
        """Write the results of a job, for local work whose steps nobody sees (`whole`)."""
        raise NotImplementedError

    def correct(self, g: Tensor, y: Tensor, job: Work) -> Tensor:
        """Return the gradient that is followed; a pure function.

        Args:
            g: Stochastic gradient at y, [d] or [J, d].
            y: Present local model, [d] or [J, d].
            job: Start model, broadcast and client state of the job, or of J jobs.
        """
        return g

    def move(self, y: Tensor, g: Tensor, lr: float | Tensor, state: dict[str, Any]) -> Tensor:
        """Return the local model after one optimiser step; pure except for `state`.

        Args:
            y: Present local model, [d] or [J, d].
            g: Gradient from `correct`, [d] or [J, d].
            lr: η_l, a number or [J, 1].
            state: The optimiser's memory, at the start of a job empty or what `moments` says.
        """
        return y - lr * g

    def receive(self, server: Server, update: Update) -> None:
        """Take note of an update; called before the strategy's `receive`."""
