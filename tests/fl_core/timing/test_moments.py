"""Means and variances of speeds and lengths against closed forms, five standard errors wide.

The standard error of a sample variance is σ² √((κ − 1)/N), κ the kurtosis, which has a closed form as well.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.timing.availability import Availability
from fl_core.timing.durations import Durations, Lengths


def log_normal(mean: float, sigma: float) -> tuple[float, float, float]:
    """Mean, variance, kurtosis."""
    w = exp(sigma**2)
    return mean, mean**2 * (w - 1), w**4 + 2 * w**3 + 3 * w**2 - 3


def test_log_normal_speeds_over_clients() -> None:
    """Means of 20,000 clients; without noise each client's jobs all take its mean."""
    law = Durations.model_validate({"name": "lognormal", "mean": 3, "sigma": 0.7, "noise": 0})
    mean, variance, kurtosis = log_normal(3, 0.7)
    sample = np.array([float(length) for length in law.means(20_000, 5)])
    assert abs(sample.mean() - mean) < 5 * sqrt(variance / sample.size)
    assert abs(sample.var() - variance) < 5 * variance * sqrt((kurtosis - 1) / sample.size)
    lengths = Lengths(law, 3, 5)
    assert [lengths(client, job) * lengths.clock.unit for client in range(3) for job in range(2)] == [
        length for length in law.means(3, 5) for _ in range(2)
    ]


@pytest.mark.parametrize(
    ("law", "moments"),
    [
        ({"name": "persistent", "mean": 5}, (5, 25, 9)),
        ({"name": "fx", "spread": 60, "reading": "uniform"}, (0.7, 0.03, 1.8)),  # U(.4, 1): width²/12
    ],
    ids=["persistent", "fx"],
)
def test_drawn_means_of_clients(law: dict[str, Any], moments: tuple[float, float, float]) -> None:
    """Of 5,000 clients."""
    mean, variance, kurtosis = moments
    means = np.array([float(each) for each in Durations.model_validate(law).means(5000, 11)])
    assert abs(means.mean() - mean) < 5 * sqrt(variance / means.size)
    assert abs(means.var() - variance) < 5 * variance * sqrt((kurtosis - 1) / means.size)


def test_fixed_lengths_are_exact_to_the_tick() -> None:
    """The k-th arrival of a client of F60 is at k τ_i, in fractions."""
    described = {
        "scenario": {
            "problem": {"name": "quadratic", "centres": [[0.0], [1.0], [2.0], [3.0]]},
            "timing": {"durations": {"name": "fx", "spread": 60}},
            "budget": {"updates": 40},
        },
        "strategy": {"name": "asgd"},
    }
    simulation = Simulation(Experiment.model_validate(described))
    tau = [Fraction(1), Fraction(4, 5), Fraction(3, 5), Fraction(2, 5)]
    found = [(event.time * simulation.lengths.clock.unit, event.client) for event in simulate(simulation)]
    expected = sorted((k * tau[client], client) for client in range(4) for k in range(1, 60))
    assert found == expected[:40]


@pytest.mark.parametrize("dynamic", [False, True])
def test_mean_times_of_jobs_by_the_step(dynamic: bool) -> None:
    """τ_i = τ K_i, or τ (2K_i + 1)/2 where K is uniform in 1 … 2K_i; so are the lengths of the jobs done."""
    described = {
        "scenario": {
            "problem": {"name": "quadratic", "centres": [[0.0], [1.0], [2.0]]},
            "timing": {"durations": {"name": "fixed", "times": ["1/2", "1/3", "2"], "per_step": True}},
            "budget": {"updates": 900},
        },
        "strategy": {"name": "asgd", "local": {"name": "sgd", "steps": [3, 2, 1], "dynamic": dynamic}},
    }
    simulation = Simulation(Experiment.model_validate(described))
    taken: list[list[float]] = [[], [], []]
    for event in simulate(simulation):
        assert event.client is not None and event.began is not None
        taken[event.client].append((event.time - event.began) * float(simulation.lengths.clock.unit))
    plain = [Fraction(3, 2), Fraction(2, 3), Fraction(2)]
    uniform = [Fraction(7, 4), Fraction(5, 6), Fraction(3)]
    expected = uniform if dynamic else plain
    assert list(simulation.server.mean_time) == expected
    for client, (step, steps) in enumerate([(0.5, 3), (1 / 3, 2), (2.0, 1)]):
        variance = step**2 * ((2 * steps) ** 2 - 1) / 12 if dynamic else 0.0
        error = 5 * sqrt(variance / len(taken[client])) + 1e-12
        assert abs(np.mean(taken[client]) - float(expected[client])) < error


# -- who is there ----------------------------------------------------------------------------------


def test_dropouts_leave_and_come_back_at_their_instants() -> None:
    """Jobs of length 1, everyone away from 7/2 to 6: the job of 3 is delivered at 4, the next ends at 7."""
    described = {
        "scenario": {
            "problem": {"name": "quadratic", "centres": [[0.0], [1.0]]},
            "timing": {"availability": {"name": "dropouts", "share": 1, "at": 3.5, "back": 6}},
            "budget": {"updates": 12},
        },
        "strategy": {"name": "asgd"},
    }
    simulation = Simulation(Experiment.model_validate(described))
    unit = simulation.lengths.clock.unit
    times = [float(event.time * unit) for event in simulate(simulation) if event.staleness is not None]
    assert times == [1, 1, 2, 2, 3, 3, 4, 4, 7, 7, 8, 8]
    gone = Availability.model_validate({"name": "dropouts", "share": 0.5, "at": "7/3"})
    left = [list(islice(gone.absences(client, 6, 0), 2)) for client in range(6)]
    assert sorted(map(len, left)) == [0, 0, 0, 1, 1, 1]
    assert {absence for own in left for absence in own} == {(Fraction(7, 3), None)}


def test_mean_lengths_unless_said() -> None:
    """1, also of an exponential law by client; half of a shifted one's is the part that every job takes."""
    assert Durations.model_validate("exponential").means(2, 0) == (1, 1)
    shifted = Durations.model_validate("shifted_exponential")
    assert shifted.means(2, 0) == (1, 1)
    least = min(Lengths(shifted, 1, 0)(0, job) for job in range(200))
    assert (
        500_000 <= least < 530_000
    )  # of 200, the least rest is Exp(1/400): above .03 with a chance of e^−12
