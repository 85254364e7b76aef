"""Experiments that never end, and random images in the shape of MNIST, so that no data set is needed."""

import functools
from typing import Any, ClassVar

import torch

from fl_core.experiment import Experiment
from fl_core.problems.data.data import Data
from fl_core.problems.problem import Problem
from fl_core.problems.supervised import Classification

CLIENTS, BATCH = 100, 64
ASGD = {"name": "asgd", "local_lr": 1e-4, "local": {"name": "sgd", "batch": BATCH}}


class Noise(Classification):
    """Random bytes 28×28 with random labels: nothing to learn, as costly to compute as MNIST."""

    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    samples: ClassVar[int] = 60_000

    def load(self) -> Data:
        return _noise(self.samples)


@functools.cache
def _noise(samples: int) -> Data:
    random = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (100 + samples, 1, 28, 28), dtype=torch.uint8, generator=random)
    y = torch.randint(0, 10, (100 + samples,), generator=random)
    return Data(x[100:], y[100:], x[:100], y[:100], classes=10, mean=(127.5,), std=(73.9,))


def endless(problem: Problem, strategy: dict[str, Any] = ASGD, seed: int = 0) -> Experiment:
    """Return an experiment under exponential delays that never ends."""
    timing, budget = {"durations": "exponential"}, {"updates": 10**9}
    scenario = {"problem": problem, "timing": timing, "budget": budget}
    return Experiment.model_validate({"scenario": scenario, "strategy": strategy, "seed": seed})
