"""Smoothness L and noise constants σ², σ_G² measured at a model.

`Diagnosis` measures them during a run where the user asks for `constants`.

Free: the measurement may get better; only recorded diagnostics change, no result of a run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fl_core.problems.problem import World

UNUSED_JOB = -1  # the number of a job that no run has, so that measuring draws no run's mini-batches


@dataclass(frozen=True)
class Constants:
    """The constants bounded in the papers' theorems, at a model w."""

    smoothness: float  # L of F: the largest |eigenvalue| of ∇²F(w)
    client_smoothness: float  # the largest L of a client
    noise_variance: float  # σ² = Σ p_i E‖g_i − ∇F_i(w)‖² for mini-batches of the run's size
    dissimilarity: float  # σ_G² = Σ p_i ‖∇F_i(w) − ∇F(w)‖²
    worst_dissimilarity: float  # ζ² = max_i ‖∇F_i(w) − ∇F(w)‖²


def constants(
    world: World, model: Tensor, batch: int, rng: np.random.Generator, draws: int = 32
) -> Constants:
    """Return the constants at a model; costs about 100 passes over all data.

    Args:
        world: Data and clients.
        model: w [d].
        batch: Data points of a mini-batch.
        rng: Start directions of the power iterations.
        draws: Mini-batches of each client for σ².
    """
    share = torch.from_numpy(world.p).to(model)
    table = torch.stack([world.full_gradient(model, client) for client in range(world.n)])
    apart = (table - share @ table).square().sum(1)
    spread = [noise(world, model, client, batch, draws) for client in range(world.n)]

    def whole(w: Tensor) -> Tensor:
        return share @ torch.stack([world.full_gradient(w, client) for client in range(world.n)])

    clients = [partial(world.full_gradient, client=client) for client in range(world.n)]
    return Constants(
        smoothness=smoothness(whole, model, rng),
        client_smoothness=max(smoothness(gradient, model, rng) for gradient in clients),
        noise_variance=float(world.p @ np.array(spread)),
        dissimilarity=float(share @ apart),
        worst_dissimilarity=float(apart.max()),
    )


def noise(world: World, model: Tensor, client: int, batch: int, draws: int) -> float:
    """Return E‖g − ∇F_i(w)‖² of a client's stochastic gradients, a mean over `draws` mini-batches."""
    mean = world.full_gradient(model, client)
    samples = world.samples(client, UNUSED_JOB, draws, batch).to(model.device).unbind()
    squares = [(world.gradient(model, client, sample) - mean).square().sum().item() for sample in samples]
    return float(np.mean(squares))


def smoothness(
    gradient: Callable[[Tensor], Tensor],
    model: Tensor,
    rng: np.random.Generator,
    *,
    tolerance: float = 1e-3,
    max_steps: int = 50,
) -> float:
    """Return the largest |eigenvalue| of the Hessian, by power iteration on differences of gradients.

    Approached from below; on a quadratic the differences are exact.

    Args:
        gradient: Model [d] → gradient [d].
        model: Where the Hessian is taken [d].
        rng: Start direction.
        tolerance: The iteration ends at a relative change of at most this.
        max_steps: Steps at most.
    """
    # Distance at which rounding and the third derivative disturb a central difference about equally
    reach = torch.finfo(model.dtype).eps ** (1 / 3) * (1 + float(model.norm()))
    direction = torch.from_numpy(rng.normal(size=model.shape)).to(model)
    eigenvalue = 0.0
    for _ in range(max_steps):
        direction = direction / direction.norm()
        curved = (gradient(model + reach * direction) - gradient(model - reach * direction)) / (2 * reach)
        previous, eigenvalue = eigenvalue, float(curved.norm())
        if eigenvalue == 0.0 or abs(eigenvalue - previous) <= tolerance * eigenvalue:
            break
        direction = curved
    return eigenvalue
