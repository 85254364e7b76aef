"""Rescaled ASGD (Mahran et al., arXiv 2605.13434, 2026) is asynchronous FedAvg with time-based weights.

Its step sizes are in proportion to the workers' computation times, so that each contributes the same total
over a cycle: eq. (12) of Fraboni et al. (JMLR 2023) with equal importances, up to a factor of the rate.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quadratics import CENTRES, CURVATURE, START, N, always_busy, assert_same, gradient

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate

TIMES = [1, 2, 3, 4, 6]  # τ_i
CYCLE = 12  # lcm{τ_i}
ARRIVALS = 27  # in a cycle: Σ 12/τ_i
OPTIMUM = CURVATURE @ CENTRES / CURVATURE.sum()  # of the mean of λ_i/2 ‖θ − c_i‖²


def versions(name: str, updates: int, lr: float, **fields: Any) -> np.ndarray:
    """Every version [versions, d] of a run whose clients matter alike, one local step a job."""
    problem = {
        "name": "quadratic",
        "centres": CENTRES.tolist(),
        "curvature": CURVATURE.tolist(),
        "start": START.tolist(),
    }
    timing = {"durations": {"name": "fixed", "times": TIMES}}
    described = {
        "scenario": {"problem": problem, "timing": timing, "budget": {"updates": updates}},
        "strategy": {"name": name, "local_lr": lr, **fields},
    }
    simulation = Simulation(Experiment.model_validate(described))
    models = [START]
    stepped = (event.stepped for event in simulate(simulation))
    models += [simulation.server.model.numpy().copy() for new in stepped if new]
    return np.array(models)


def test_its_trajectory_is_that_of_time_based_weights() -> None:
    """x ← x − γ τ_i ∇L_i(x_sent); (Σ_j 1/τ_j) τ_i / n is the same with γ = η (Σ_j 1/τ_j) / n."""
    eta = 0.05
    gamma = eta * (ARRIVALS / CYCLE) / N
    expected = [START]
    for client, start in always_busy(300, TIMES):
        expected.append(expected[-1] - gamma * TIMES[client] * gradient(client, expected[start]))
    assert_same(versions("async_fedavg", 300, eta), expected, 301)


@cache
def bias(name: str, lr: float, **fields: Any) -> float:
    """The distance from the optimum of the mean model of a cycle, after many."""
    settled = 40 * int(1 / lr)
    models = versions(name, settled + ARRIVALS, lr, **fields)
    return float(np.linalg.norm(models[-ARRIVALS:].mean(0) - OPTIMUM))


def test_vanilla_steps_end_at_a_frequency_weighted_optimum() -> None:
    """The minimiser for importances ∝ 1/τ_i, as η → 0: Σ (λ_i/τ_i) c_i / Σ λ_i/τ_i."""
    frequency = CURVATURE / np.array(TIMES)
    apart = float(np.linalg.norm(frequency @ CENTRES / frequency.sum() - OPTIMUM))  # 0.37
    assert apart > 0.3
    assert bias("asgd", 0.02) == pytest.approx(apart, rel=0.05)


def test_rescaling_removes_the_bias_to_first_order_and_memory_all_of_it() -> None:
    """At no memory what is left is in proportion to the rate; those that keep n gradients have none."""
    large, small = bias("async_fedavg", 0.04), bias("async_fedavg", 0.02)
    assert small / large == pytest.approx(0.5, abs=0.05)
    assert bias("asgd", 0.02) > 10 * small
    tables: dict[str, dict[str, Any]] = {"ace": {}, "ringleader": {}, "afa_cs": {"buffer": 1}}
    assert max(bias(name, 0.04, **fields) for name, fields in tables.items()) < 1e-3 * small


@pytest.mark.parametrize(("row", "name"), [("vanilla ASGD", "asgd"), ("Rescaled ASGD", "async_fedavg")])
def test_the_page_on_step_sizes_has_these_distances(row: str, name: str) -> None:
    page = Path(__file__).parents[3] / "docs" / "explanation" / "step-sizes.md"
    (line,) = (
        own for own in page.read_text(encoding="utf-8").splitlines() if own.startswith(f"| {row} | 0.")
    )
    _, _, large, small, *_ = line.split("|")
    assert float(large) == pytest.approx(bias(name, 0.04), rel=0.005)
    assert float(small) == pytest.approx(bias(name, 0.02), rel=0.005)
