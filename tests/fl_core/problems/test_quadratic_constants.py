"""Quadratics: the constants of the theorems, and the lower bound of Anarchic FL."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fl_core.problems.quadratic import Quadratic, QuadraticWorld

points = st.lists(st.tuples(*[st.floats(-5, 5)] * 3), min_size=1, max_size=6)


def mean_gradient(world: QuadraticWorld, model: torch.Tensor) -> torch.Tensor:
    return sum(
        (float(p) * world.full_gradient(model, client) for client, p in enumerate(world.p)),
        torch.zeros(world.d, dtype=torch.float64),
    )


@given(points, st.floats(0.1, 4), st.integers(0, 99))
def test_dissimilarity_is_reached_and_never_passed(
    centres: list[tuple[float, ...]], curvature: float, seed: int
) -> None:
    world = Quadratic(centres=tuple(centres), curvature=(curvature,) * len(centres)).world(0)
    for model in torch.from_numpy(np.random.default_rng(seed).normal(0, 10, (3, 3))):
        middle = mean_gradient(world, model)
        apart = [float((world.full_gradient(model, i) - middle).square().sum()) for i in range(world.n)]
        assert max(apart) == pytest.approx(world.dissimilarity, rel=1e-9, abs=1e-9)


def test_dissimilarity_is_unbounded_where_curvatures_differ() -> None:
    world = Quadratic(centres=((0.0,), (0.0,)), curvature=(1.0, 2.0)).world(0)
    assert world.dissimilarity == float("inf")
    far = torch.tensor([1e6], dtype=torch.float64)
    assert (world.full_gradient(far, 0) - mean_gradient(world, far)).square().item() > 1e11


def test_smoothness_is_the_largest_slope_of_a_gradient() -> None:
    world = Quadratic(centres=((0.0, 1.0), (2.0, -1.0)), curvature=(0.5, 3.0)).world(0)
    x, y = torch.randn(2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    slopes = [
        float((world.full_gradient(x, i) - world.full_gradient(y, i)).norm() / (x - y).norm()) for i in (0, 1)
    ]
    assert max(slopes) == pytest.approx(world.smoothness)


def test_variance_is_that_of_the_stochastic_gradients() -> None:
    """Mean of N χ²-distributed squares with d = 4 degrees each; 4 standard errors."""
    world = Quadratic(centres=((0.0,) * 4,), noise=0.7).world(3)
    model, draws = torch.ones(4, dtype=torch.float64), 4000
    samples = world.samples(0, 0, draws, 1)
    errors = torch.stack([world.gradient(model, 0, sample) for sample in samples]) - model
    found = errors.square().sum(1).mean().item()
    assert found == pytest.approx(world.variance, abs=4 * 0.7**2 * (2 * 4 / draws) ** 0.5)
