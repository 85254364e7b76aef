"""Function calls of an update, of Python and of C: what a run does not use costs it none."""

from __future__ import annotations

from cProfile import Profile
from itertools import islice
from pstats import Stats

import torch

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.data.data import Data
from fl_core.problems.supervised import Classification

MAX_CALLS = 110


class Noise(Classification):
    """Random images with random labels."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, 8, 8)

    @property
    def samples(self) -> int:  # type: ignore[override]
        return 1_000

    def load(self) -> Data:
        random = torch.Generator().manual_seed(0)
        x = torch.randint(0, 256, (1_000, 1, 8, 8), dtype=torch.uint8, generator=random)
        y = torch.randint(0, 10, (1_000,), generator=random)
        return Data(x, y, x[:10], y[:10], classes=10, mean=(127.5,), std=(73.9,))


def test_an_update_of_fedbuff_one_by_one() -> None:
    """Logistic regression without network, codings and absences, 10 of 20 clients at work."""
    where = {
        "problem": Noise(clients=20),
        "timing": {"durations": "exponential"},
        "budget": {"updates": 10**6},
    }
    strategy = {"name": "fedbuff", "concurrency": 10, "local": {"name": "sgd", "batch": 16}}
    experiment = Experiment.model_validate({"scenario": where, "strategy": strategy})
    events, updates, profile = simulate(Simulation(experiment)), 200, Profile()
    next(events)
    profile.enable()
    for _ in islice(events, updates):
        pass
    profile.disable()
    calls: int = Stats(profile).total_calls  # type: ignore[attr-defined]
    assert calls <= MAX_CALLS * updates
