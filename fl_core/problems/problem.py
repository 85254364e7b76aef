"""The interface of problems: `Problem` as validated data in a suite, and the `World` of a run under a seed.

The loop and executions know worlds only. A new problem is a subclass of `Problem` with a method `world`, in a
module of this folder or in the user's own package.

Fixed: names of methods and fields, which users' problems override; names and defaults (keys of all runs).
"""

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor

from fl_core.metrics import FEDERATED, FP_LOSS, Metric, name_fault, named
from fl_core.parts import Count, FieldError, Part
from fl_core.text import miscounted, unknown

CPU = torch.device("cpu")
Precision = Literal["float32", "tf32"]  # of matrix products and convolutions on a GPU
Report = dict[str, Tensor]  # numbers of a training step, [] or [J], by name; among them the "loss"


class InvalidProblemError(ValueError):
    """An impossible problem, with the reason and advice in a sentence."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics of a model: overall, and for each client."""

    metrics: dict[str, float]  # e.g. {"test/accuracy": .91, "test/loss": .3}
    client_loss: np.ndarray | None  # [n], L_i on client i's own training data; None if not evaluated
    client_metrics: Mapping[str, np.ndarray] = field(default_factory=dict)  # [n] each, on test data
    client_error: np.ndarray | None = None  # [n], standard error of client_loss; None if exact


class World:
    """A problem under a seed: data, split and first model are fixed; all methods are pure functions.

    A *sample* is the random input of one local step: indices of a mini-batch, or a noise vector. The last
    axis of a model is its parameters, so that J models stack as [J, d].

    Samples are drawn on the CPU for every device, so that a world is equal everywhere; gradients are computed
    from samples on the models' device.

    A subclass defines `gradient` and `evaluate`, and `test` where training losses are costly. The other
    defaults are those of a function without data: one data point per client, no labels, no randomness,
    θ^0 = 0, jobs computed one by one.
    """

    kind: Hashable  # worlds of equal kind have equal `gradients`: their jobs can share one call
    n: int  # clients
    d: int  # parameters
    p: np.ndarray  # [n], importance of each client, sums to 1
    sizes: np.ndarray  # [n], data points of each client
    tokens = 0  # of a data point of text; 0 where data are no text
    labels: np.ndarray | None  # [n, classes], how often each client holds each label; None without labels
    by_sample = False  # whether a gradient follows from model and sample alone, for every client with data
    measured = False  # whether a job's length is the measured time of computation, times the law's length
    seconds = 0.0  # of computing the newest job, if `measured`
    precision: Precision = "float32"  # of matrix products and convolutions on a GPU
    memory_format = "contiguous"  # of the inputs of networks, for the record
    fingerprint: dict[str, str]  # digests of data and partition, for the record
    first: Tensor  # θ^0 [d]

    def __init__(self, p: np.ndarray, d: int) -> None:
        self.n, self.d, self.p = len(p), d, p
        self.sizes, self.labels = np.ones(self.n, int), None
        self.fingerprint, self.kind = {}, object()
        self.first = torch.zeros(d, dtype=torch.float64)

    @property
    def blocks(self) -> list[int]:
        """The lengths of a model's tensors [d], in order."""
        return [self.d]

    def to(self, device: torch.device) -> Self:
        """Move all tensors to a device, in place, as `nn.Module.to` does; return the world."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))
        return self

    def initial(self) -> Tensor:
        """Return the first model [d], from the stream "init" if random."""
        return self.first.clone()

    def samples(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Return the samples of a job, from the stream ("batches", client, job).

        Args:
            client: 0 … n − 1.
            job: The job's number among the client's.
            steps: K.
            batch: Data points of a mini-batch.

        Returns:
            A sample for each local step [steps, ...].
        """
        return torch.zeros(steps, self.d, dtype=self.first.dtype)

    def shuffled(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Return a job's samples [steps, ...] drawn without replacement, epoch after epoch of the data."""
        return self.samples(client, job, steps, batch)

    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        """Return the stochastic gradient [d] of a client's loss at `model` [d] on a sample."""
        raise NotImplementedError

    def gradients(self, models: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        """Return the gradients [J, d] of J independent jobs: models [J, d], clients [J], samples [J, ...]."""
        jobs = zip(models, clients.tolist(), samples, strict=True)
        return torch.stack([self.gradient(*job) for job in jobs])

    def gradient_and_report(self, model: Tensor, client: int, sample: Tensor) -> tuple[Tensor, Report]:
        """Return `gradient`, and by name the "loss" [] of the sample and other results of the same pass."""
        return self.gradient(model, client, sample), {}

    def gradients_and_reports(
        self, models: Tensor, clients: Tensor, samples: Tensor
    ) -> tuple[Tensor, Report]:
        """Return `gradients`, and by name the "loss" [J] and other results of the same pass."""
        return self.gradients(models, clients, samples), {}

    def train(self, job: Any) -> None:
        """Write the results of a job, for clients with their own code of training (`ClientAppWork`)."""
        raise NotImplementedError

    def full_gradient(self, model: Tensor, client: int) -> Tensor:
        """Return the gradient [d] of a client's loss on all of the client's data."""
        return self.gradient(model, client, torch.zeros_like(model))

    def evaluate(self, model: Tensor) -> Evaluation:
        """Evaluate a model [d] on test data and for each client."""
        raise NotImplementedError

    def test(self, model: Tensor) -> Evaluation:
        """Evaluate a model [d] without the clients' training losses, unless free of cost."""
        return self.evaluate(model)

    def estimate(self, model: Tensor, points: int) -> Evaluation:
        """Evaluate a model [d], training losses estimated on a fixed sample of data points.

        Losses are exact where they cost nothing, or where a sample's error is not known.
        """
        return self.evaluate(model)

    def losses(self, model: Tensor) -> np.ndarray:
        """Return L_i(θ) [n] of a model [d] on each client's training data."""
        losses = self.evaluate(model).client_loss
        assert losses is not None
        return losses


class Problem(Part):
    """Base of all problems: number and importance of clients, ranking metric and target."""

    homes: ClassVar[tuple[str, ...]] = ("fl_core.problems",)
    local_work: ClassVar[str | None] = None  # name of the only possible local work; None: any

    clients: Count = 10  # n, how many there are
    # p_i of the clients: 1/n, n_i/Σn, or given
    importance: Literal["equal", "data"] | tuple[float, ...] = "equal"
    metric: str = FP_LOSS  # the metric that ranks strategies
    target: float | None = None  # the value of `metric` that time-to-target waits for
    target_marks: Count = 1  # successive evaluations whose mean has to meet a target; the first counts

    @model_validator(mode="after")
    def _one_importance_a_client(self) -> Self:
        """Refuse a list of importances of wrong length, negative, or all 0."""
        if isinstance(self.importance, tuple):
            if len(self.importance) != self.clients:
                raise FieldError("importance", miscounted(self.importance, self.clients))
            if min(self.importance) < 0 or sum(self.importance) <= 0:
                raise FieldError("importance", "must be 0 or greater for every client, and not all 0")
        return self

    @model_validator(mode="after")
    def _metric_is_recorded(self) -> Self:
        """Refuse a ranking metric that is not recorded or has no direction, and an impossible target."""
        for metric in (*self.metrics(), *self.client_metrics()):
            if fault := name_fault(metric.name):
                raise FieldError("metrics", fault)
        names = [metric.name for metric in self.recorded()]
        if self.metric not in names:
            raise FieldError("metric", unknown("metric", self.metric, names))
        if self.ranking.higher is None:
            raise FieldError(
                "metric",
                f"'{self.metric}' cannot be ranked: choose another metric, or set `higher` of your own one",
            )
        if reason := self.never_reaches(self.target):
            raise FieldError("target", reason)
        return self

    def never_reaches(self, target: float | None) -> str:
        """Return the reason why the ranking metric can never reach a target, or nothing."""
        if target is None or not self.ranking.share or 0 <= target <= 1:
            return ""
        return f"'{self.metric}' lies between 0 and 1: write 0.9 for 90 %"

    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of the problem's evaluations."""
        return ()

    def client_metrics(self) -> tuple[Metric, ...]:
        """Return the metrics with a value for every client."""
        return ()

    def recorded(self) -> tuple[Metric, ...]:
        """Return all metrics of learning curves."""
        return (*self.metrics(), *FEDERATED, *(metric.worst_client for metric in self.client_metrics()))

    @property
    def ranking(self) -> Metric:
        """Return the metric for ranking strategies."""
        return named(self.metric, self.recorded())

    def check(self, seed: int) -> None:
        """Raise the errors of `world` fixable by users, as far as known without building the world."""

    def data_digest(self) -> str:
        """Return a digest of the training data; empty if the fields determine the data."""
        return ""

    def remarks(self, seed: int) -> Sequence[str]:
        """Return advice for users before a run, as sentences; no run is refused."""
        return ()

    def world(self, seed: int) -> World:
        """Return the world of the problem under a seed, on the CPU."""
        raise NotImplementedError

    @property
    def has_baseline(self) -> bool:
        """True if the problem has a centralised baseline."""
        return type(self).pooled is not Problem.pooled

    def pooled(self, seed: int, device: torch.device = CPU) -> dict[str, float]:
        """Return the metrics of the centralised baseline: a model trained on all clients' data together."""
        raise NotImplementedError

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        """Return the importance p [n], of sum 1, of clients with `sizes` [n] data points."""
        if self.importance == "equal":
            return np.full(self.clients, 1 / self.clients)
        importance = np.asarray(sizes if self.importance == "data" else self.importance, float)
        return importance / importance.sum()


@functools.cache
def shipped_metrics() -> dict[str, Metric]:
    """Return the metrics of the package's problems, by name."""
    problems = [
        member
        for member in Problem.members().values()
        if not any(field.is_required() for field in member.model_fields.values())
    ]
    return {metric.name: metric for member in problems for metric in member().recorded()}
