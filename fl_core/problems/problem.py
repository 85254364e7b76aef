"""What the clients learn: a problem as validated data, and the world that one seed makes of it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor

from fl_core.parts import Count, Part

CPU = torch.device("cpu")


class Impossible(ValueError):  # noqa: N818 - it is told to the user, not handled
    """A problem that cannot be built as it is asked for; one sentence that says why and what to change."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one model is worth: `metrics` of the whole, and a value for each client."""

    metrics: dict[str, float]  # e.g. {"test/accuracy": .91, "test/loss": .3}
    client_loss: np.ndarray  # [n], L_i on client i's own training data
    client_accuracy: np.ndarray | None = None  # [n], on test data with client i's mix of labels


class World(Protocol):
    """A problem under one seed: data, split and first model are fixed; everything is a pure function.

    A *sample* is what one local step needs: indices of a mini-batch, or a noise vector. The last axis of a
    model is its parameters, so that J models stack as [J, d].

    Samples are drawn on the CPU whatever the device, so that a world is the same everywhere; gradients are
    made from samples that lie where the models do.
    """

    kind: Hashable  # worlds of equal kind have the same `gradients`, so that their jobs can share one call
    n: int  # clients
    d: int  # parameters
    p: np.ndarray  # [n], importance of each client, sums to 1
    sizes: np.ndarray  # [n], data points of each client
    labels: np.ndarray | None  # [n, classes], how often each client holds each label; None without labels
    fingerprint: dict[str, str]  # digests of data and partition, for the record

    def to(self, device: torch.device) -> Self:
        """Move model and data there, in place, as `nn.Module.to`; returns itself."""

    def initial(self) -> Tensor:
        """The first model [d], from the stream "init"."""

    def samples(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Samples [steps, ...] of client's job-th job, from the stream ("batches", client, job)."""

    def shuffled(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """The same, but drawn without replacement, epoch after epoch of the client's data."""

    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        """Stochastic gradient [d] of client's loss at model [d] on one sample."""

    def gradients(self, models: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        """The same for J independent jobs at once: models [J, d], clients [J], samples [J, ...] → [J, d]."""

    def full_gradient(self, model: Tensor, client: int) -> Tensor:
        """Gradient [d] of client's loss on all of its data."""

    def evaluate(self, model: Tensor) -> Evaluation:
        """What this model [d] is worth on test data and for each client."""


class Problem(Part):
    """Base of all problems: how many clients, how much each matters, which result counts as reached."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.problems",)
    metric: ClassVar[str] = "test/accuracy"  # the metric that ranks strategies
    higher_is_better: ClassVar[bool] = True

    clients: Count = 10
    importance: Literal["equal", "data"] | tuple[float, ...] = "equal"  # p_i: 1/n, n_i/Σn, or given
    target: float | None = None  # the value of `metric` that time-to-target waits for

    @model_validator(mode="after")
    def _one_importance_a_client(self) -> Self:
        if isinstance(self.importance, tuple):
            if len(self.importance) != self.clients:
                raise ValueError(f"importance: {len(self.importance)} given for {self.clients} clients")
            if min(self.importance) < 0 or sum(self.importance) <= 0:
                raise ValueError("importance: must be 0 or greater for every client, and not all 0")
        return self

    def check(self, seed: int) -> None:
        """Raise what `world` would for what a user can put right, as far as is known without building it."""

    def world(self, seed: int) -> World:
        """Build the world of this problem under one seed, on the CPU."""
        raise NotImplementedError

    def pooled(self, seed: int, device: torch.device = CPU) -> dict[str, float]:
        """Metrics of the centralised baseline: one model trained on all clients' data together."""
        raise NotImplementedError

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        """Importance p [n] of clients that hold `sizes` data points; sums to 1."""
        if self.importance == "equal":
            return np.full(self.clients, 1 / self.clients)
        given = np.asarray(sizes if self.importance == "data" else self.importance, float)
        return given / given.sum()
