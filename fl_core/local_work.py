"""Local work, the training of a client on a received model: the interface, and every kind.

A strategy's field `local` holds one. Executions call `samples`, `correct` and `move` for each step of a job;
the loop calls the methods that take the server.

Fixed: names, fields and defaults (keys of runs), and the arithmetic of each step (golden trajectories). Users
derive from `LocalWork`.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from fl_core.parts import Count, FieldError, Part, Rate, Share, exact
from fl_core.problems.problem import World
from fl_core.server.jobs import Job, Update
from fl_core.server.server import Server
from fl_core.text import miscounted

Sampling = Literal["replacement", "epochs"]


@dataclass(slots=True)
class Work:
    """Inputs of `LocalWork.correct`: for a job, or for J jobs stacked along a first axis."""

    start: Tensor  # the received model, [d] or [J, d]
    broadcast: dict[str, Tensor]  # what the local work sent along with the version
    client_state: dict[str, Tensor]  # the client's own tensors, copied when service began

    @classmethod
    def of(cls, job: Job) -> Self:
        """Return the inputs of a job at the first step."""
        return cls(job.start, job.broadcast, job.client_state)


class LocalWork(Part):
    """K local steps on mini-batches. `correct` and `move` are pure; the last axis is the parameters.

    Mini-batches are drawn with replacement, or by `epochs`: the client's data, shuffled afresh for every job
    and then epoch after epoch, cut into mini-batches of B. So each data point is used once before any is used
    twice. Unlike in published code, the rest at the end of an epoch is neither dropped nor used as a smaller
    mini-batch: the next epoch fills it up, so that all steps weigh the same and jobs can be stacked.
    """

    homes: ClassVar[tuple[str, ...]] = ("fl_core.local_work",)
    whole: ClassVar[bool] = False  # whether a job is computed as a whole, by `compute`, and not step by step

    steps: Count | tuple[Count, ...] = 1  # K, the same for all or for each client
    dynamic: bool = False  # K uniform in 1 … 2·steps, drawn per job (anarchic federated learning)
    epochs: Rate | None = None  # K = ⌈epochs · n_i / B⌉ instead, at least 1
    batch: Count = 32  # B, data points per step
    sampling: Sampling = "replacement"  # of mini-batches: with replacement, or epoch after epoch
    lr_factors: tuple[Rate, ...] | None = None  # η_l(i) = factor · η_l, for each client

    def refuses(self, clients: int) -> str | None:
        """Return the reason why the local work does not fit a number of clients, or None."""
        for key in ("steps", "lr_factors"):
            values = getattr(self, key)
            if isinstance(values, tuple) and len(values) != clients:
                return f"local.{key}: {miscounted(values, clients)}"
        return None

    @property
    def linear(self) -> Literal[True] | str:
        """True if a step on an expected gradient is the expected step, or a sentence with the reason."""
        return True

    @property
    def kept_by_clients(self) -> tuple[str, ...]:
        """Names in `server.local` of state kept by clients in a deployment."""
        return ()

    def usual(self, client: int, size: int) -> int:
        """Return K of a client with `size` data points; the mean of K, less a half, if K is dynamic."""
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
        """Return the tensors sent along with a version, copied when the version is made."""
        return {}

    def client_state(self, server: Server, client: int) -> dict[str, Tensor]:
        """Return the client's own tensors, copied when a job's service starts."""
        return {}

    def moments(self, model: Tensor) -> dict[str, Tensor]:
        """Return the optimiser's memory before a client's first step, if clients keep memory between jobs.

        Where it is not empty, a job's `move` begins with the memory that the client's latest update left. One
        entry has at least one dimension, such as a count [1]; of J stacked jobs it is [J, 1].
        """
        return {}

    def compute(self, job: Job, world: World) -> None:
        """Write the results of a job, for local work without visible steps (`whole`)."""
        raise NotImplementedError

    def correct(self, g: Tensor, y: Tensor, job: Work) -> Tensor:
        """Return the gradient for the next step; a pure function.

        Args:
            g: Stochastic gradient at y, [d] or [J, d].
            y: Present local model, [d] or [J, d].
            job: Start model, broadcast and client state of the job, or of J jobs.
        """
        return g

    def move(self, y: Tensor, g: Tensor, lr: float | Tensor, state: dict[str, Any]) -> Tensor:
        """Return the local model after an optimiser step; pure except for `state`.

        Args:
            y: Present local model, [d] or [J, d].
            g: Gradient from `correct`, [d] or [J, d].
            lr: η_l, a number or [J, 1].
            state: The optimiser's memory; at the start of a job empty, or the client's moments.
        """
        return y - lr * g

    def receive(self, server: Server, update: Update) -> None:
        """Change `server.local` at the arrival of an update; called before the strategy's `receive`."""


class SGD(LocalWork):
    """Stochastic gradient descent, y ← y − η_l g (McMahan et al., AISTATS 2017, Algorithm 1).

    Weight decay is added before the norm is clipped; code that clips with torch's `clip_grad_norm_` adds it
    afterwards.
    """

    name: ClassVar[str] = "sgd"

    momentum: Share = 0.0  # of the client: v ← momentum v + g, y ← y − η_l v, with v = 0 at each job's start
    weight_decay: float = Field(0.0, ge=0)  # g ← g + weight_decay y
    clip: Rate | None = None  # the largest norm of a gradient

    @property
    def linear(self) -> Literal[True] | str:
        return True if self.clip is None else "clipped gradients are not linear in the gradients"

    def correct(self, g: Tensor, y: Tensor, job: Work) -> Tensor:
        if self.weight_decay:
            g = g + self.weight_decay * y
        if self.clip is not None:
            g = g * (self.clip / g.norm(dim=-1, keepdim=True)).clamp(max=1)
        return g

    def move(self, y: Tensor, g: Tensor, lr: float | Tensor, state: dict[str, Any]) -> Tensor:
        if self.momentum:
            g = state["v"] = self.momentum * state["v"] + g if state else g
        return y - lr * g


class AdamW(LocalWork):
    """AdamW, with fresh moments in every job or kept by the client (Loshchilov & Hutter, ICLR 2019, Alg. 2).

    With `keep_state` a client's job begins with the moments and the count of steps that its latest update
    left, as the workers of DiLoCo do (Douillard et al., arXiv 2311.08105, 2023). A job that was dismissed
    leaves none.
    """

    name: ClassVar[str] = "adamw"
    linear: ClassVar[str] = "AdamW divides by the root of squared gradients: its steps are not linear in them"

    beta1: Share = 0.9  # β1, of the mean gradient
    beta2: Share = 0.999  # β2, of its squares
    epsilon: Rate = 1e-8  # ε, added to the root
    weight_decay: float = Field(0.01, ge=0)  # decoupled from the gradient
    keep_state: bool = False  # whether moments stay with the client between jobs

    def moments(self, model: Tensor) -> dict[str, Tensor]:
        if not self.keep_state:
            return {}
        steps = torch.zeros(1, dtype=torch.float64, device=model.device)  # 1 − β2^k is small for float32
        return {"k": steps, "m": torch.zeros_like(model), "v": torch.zeros_like(model)}

    def move(self, y: Tensor, g: Tensor, lr: float | Tensor, state: dict[str, Any]) -> Tensor:
        k = state["k"] = state.get("k", 0) + 1
        m = state["m"] = self.beta1 * state.get("m", 0) + (1 - self.beta1) * g
        v = state["v"] = self.beta2 * state.get("v", 0) + (1 - self.beta2) * g * g
        of_mean, of_squares = 1 - self.beta1**k, 1 - self.beta2**k
        if isinstance(k, Tensor):
            of_mean, of_squares = of_mean.to(g.dtype), of_squares.to(g.dtype)
        unbiased = m / of_mean / ((v / of_squares).sqrt() + self.epsilon)
        return y - lr * (unbiased + self.weight_decay * y)


class Prox(LocalWork):
    """FedProx: descend L_i(y) + μ/2 ‖y − x‖², x the model received (Li et al., MLSys 2020, Algorithm 2)."""

    name: ClassVar[str] = "prox"
    mu: Rate = 0.1  # μ, the proximal term's weight

    def correct(self, g: Tensor, y: Tensor, job: Work) -> Tensor:
        return g + self.mu * (y - job.start)


class Scaffold(LocalWork):
    """SCAFFOLD, option II: y ← y − η_l (g − c_i + c) (Karimireddy et al., ICML 2020, Algorithm 1).

    A client uses the c of its model version, even if a buffering server sends that version later.
    """

    name: ClassVar[str] = "scaffold"
    kept_by_clients: ClassVar[tuple[str, ...]] = ("clients",)

    def begin(self, server: Server) -> None:
        server.local.c, server.local.clients = server.zeros(), {}

    def broadcast(self, server: Server) -> dict[str, Tensor]:
        return {"c": server.local.c}

    def client_state(self, server: Server, client: int) -> dict[str, Tensor]:
        return {"c": server.local.clients.get(client, server.zeros())}

    def correct(self, g: Tensor, y: Tensor, job: Work) -> Tensor:
        return g - job.client_state["c"] + job.broadcast["c"]

    def receive(self, server: Server, update: Update) -> None:
        local, old = server.local, self.client_state(server, update.client)["c"]
        new = old - update.broadcast["c"] - update.delta / (update.steps * update.lr)
        local.c = local.c + (new - old) / server.n
        local.clients[update.client] = new


APP_FIELDS = ("batch", "sampling", "epochs")  # fields without effect: the app's own code draws its batches


class ClientAppWork(LocalWork):
    """A Flower app's own training, of problem `flower` (Beutel et al., "Flower", arXiv 2007.14390, 2020)."""

    name: ClassVar[str] = "client_app"
    whole: ClassVar[bool] = True
    linear: ClassVar[str] = "a Flower app trains by its own code, whose steps are not seen"

    @model_validator(mode="after")
    def _leaves_batches_to_the_app(self) -> Self:
        """Refuse fields that the app's own code decides."""
        for name in APP_FIELDS:
            if getattr(self, name) != LocalWork.model_fields[name].default:
                raise FieldError(name, "has no effect on a Flower app: set it in the problem's `config`")
        return self

    def client_state(self, server: Server, client: int) -> dict[str, Tensor]:
        return {"server_lr": torch.tensor(server.lr, dtype=torch.float64)}

    def compute(self, job: Job, world: World) -> None:
        world.train(job)
