"""Quadratics with known optimum: L_i(θ) = λ_i/2 ‖θ − c_i‖², with optional Gaussian gradient noise.

The problem of tests, examples and theorems: no data, exact constants, and runs within milliseconds.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from fl_core.keys import digest
from fl_core.metrics import DISTANCE, EXCESS_LOSS, Metric
from fl_core.parts import FieldError, Rate
from fl_core.problems.problem import CPU, Evaluation, Problem, World
from fl_core.streams import Streams
from fl_core.text import many, miscounted


class Quadratic(Problem):
    """Quadratics with known optimum, a centre per client (Fraboni et al., JMLR 2023, Examples 1 and 2).

    Curvature 2 and centres −G and G are the pair (θ + G)² and (θ − G)² of Anarchic FL's lower bound (Yang et
    al., ICML 2022, Theorem 1). The constants of the theorems are attributes of the world.
    """

    name: ClassVar[str] = "quadratic"
    metric: str = "distance"
    clients: int = Field(0, ge=0, description="taken from the centres; may be left out")
    # c_i [n][d], where each client's loss is least
    centres: Annotated[tuple[tuple[float, ...], ...], Field(min_length=1)] = ((-1.0,), (1.0,))
    curvature: tuple[Rate, ...] | None = None  # λ_i [n]; 1 each if left out
    noise: float = Field(0.0, ge=0)  # standard deviation of every coordinate of a stochastic gradient
    start: tuple[float, ...] | None = None  # θ^0 [d]; zeros if left out

    @model_validator(mode="before")
    @classmethod
    def _count(cls, fields: dict[str, object]) -> dict[str, object]:
        """Fill in the number of clients from the centres."""
        centres = fields.get("centres", cls.model_fields["centres"].default)
        if not fields.get("clients") and isinstance(centres, list | tuple):
            fields = {**fields, "clients": len(centres)}
        return fields

    @model_validator(mode="after")
    def _shapes(self) -> Self:
        """Refuse centres, curvatures and a start of different lengths."""
        d = len(self.centres[0])
        if len(self.centres) != self.clients:
            if "centres" in self.model_fields_set:
                raise FieldError("centres", miscounted(self.centres, self.clients))
            advice = f"give one for each of {many(self.clients, 'client')}"
            raise FieldError("centres", f"{advice}; the default has {len(self.centres)}")
        if any(len(centre) != d for centre in self.centres):
            raise FieldError("centres", "all must have the same length")
        if self.curvature is not None and len(self.curvature) != self.clients:
            raise FieldError("curvature", miscounted(self.curvature, self.clients))
        if self.start is not None and len(self.start) != d:
            raise FieldError(
                "start", f"must have {d} coordinates, as the centres have, not {len(self.start)}"
            )
        return self

    def metrics(self) -> tuple[Metric, ...]:
        return DISTANCE, EXCESS_LOSS

    def world(self, seed: int) -> QuadraticWorld:
        return QuadraticWorld(self, seed)

    def pooled(self, seed: int, device: torch.device = CPU) -> dict[str, float]:
        world = self.world(seed).to(device)
        return world.evaluate(world.optimum).metrics


class QuadraticWorld(World):
    """The quadratics under a seed, used for the gradient noise only.

    The constants of theorems are the smallest possible: ∇L_i is L-Lipschitz, L the `smoothness`;
    E‖g_i − ∇L_i‖² = σ², the `variance`; ‖∇L_i − ∇Σ p_j L_j‖² ≤ σ_G², the `dissimilarity`, which is infinite
    if curvatures differ.
    """

    def __init__(self, problem: Quadratic, seed: int) -> None:
        self.centres = torch.tensor(problem.centres, dtype=torch.float64)  # [n, d]
        n, d = self.centres.shape
        super().__init__(problem.weights(np.ones(n)), d)
        self.curvature = torch.tensor(problem.curvature or (1.0,) * n, dtype=torch.float64)[:, None]  # [n, 1]
        if problem.start:
            self.first = torch.tensor(problem.start, dtype=torch.float64)
        weight = torch.from_numpy(self.p)[:, None] * self.curvature
        self.optimum = (weight * self.centres).sum(0) / weight.sum()  # θ* [d]
        self.least = self._losses(self.optimum)  # L_i(θ*) [n]
        self.noise = problem.noise
        self.smoothness = float(self.curvature.max())  # L
        self.variance = d * self.noise**2  # σ²
        alike = bool((self.curvature == self.curvature[0]).all())
        apart = (self.smoothness * (self.centres - self.optimum)).square().sum(1).max()
        self.dissimilarity = float(apart) if alike else float("inf")  # σ_G²
        self._streams = Streams(seed, "batches")
        self.fingerprint = {
            "centres": digest(self.centres.numpy().tobytes() + self.curvature.numpy().tobytes())
        }
        self.kind = ("quadratic", self.fingerprint["centres"])

    def samples(self, client: int, job: int, steps: int, batch: int) -> Tensor:
        """Return the gradient noise [steps, d] of a job; the size of the mini-batch has no effect."""
        if not self.noise:
            return torch.zeros(steps, self.d, dtype=torch.float64)
        return torch.from_numpy(self._streams.at(client, job).normal(0, self.noise, (steps, self.d)))

    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        """Return λ_i (θ − c_i) + noise [d]."""
        return self.curvature[client] * (model - self.centres[client]) + sample

    def gradients(self, models: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        """Return λ_i (θ − c_i) + noise of stacked jobs [J, d]."""
        return self.curvature[clients] * (models - self.centres[clients]) + samples

    def evaluate(self, model: Tensor) -> Evaluation:
        """Return the excess loss Σ p_i L_i(θ) − Σ p_i L_i(θ*) and the distance ‖θ − θ*‖."""
        losses = self._losses(model)
        excess = float(self.p @ (losses - self.least))
        distance = float((model - self.optimum).norm())
        return Evaluation({DISTANCE.name: distance, EXCESS_LOSS.name: excess}, losses)

    def _losses(self, model: Tensor) -> np.ndarray:
        return (self.curvature[:, 0] / 2 * ((model - self.centres) ** 2).sum(1)).cpu().numpy()
