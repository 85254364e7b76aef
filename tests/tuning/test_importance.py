"""Importance of parameters: the same numbers as Optuna's."""

import math
import warnings

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

from tuning.importance import importance

SPACE = {
    "rate": FloatDistribution(1e-4, 1, log=True),
    "power": FloatDistribution(0, 1),
    "buffer": IntDistribution(2, 9),
    "clients": IntDistribution(1, 1000, log=True),
    "steps": IntDistribution(0, 400),
    "kind": CategoricalDistribution(["sgd", "adam", "yogi"]),
    "fixed": IntDistribution(3, 3),
}


def study(count: int, seed: int, direction: str, weight: float) -> optuna.Study:
    random = np.random.default_rng(seed)
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=seed))
    for _ in range(count):
        trial = study.ask(SPACE)
        kind = ["sgd", "adam", "yogi"].index(trial.params["kind"])
        loss = math.log(trial.params["rate"] / 0.01) ** 2 + weight * kind + trial.params["buffer"] / 4
        study.tell(trial, round(loss + random.normal(), 1))
    return study


@pytest.mark.parametrize(
    ("count", "seed", "direction", "weight"),
    [(2, 0, "minimize", 0), (7, 1, "maximize", 8), (20, 2, "minimize", 8), (100, 4, "maximize", 0)],
)
def test_importance_is_optunas(count: int, seed: int, direction: str, weight: float) -> None:
    tried = study(count, seed, direction, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = get_param_importances(tried, evaluator=PedAnovaImportanceEvaluator())
    sign = 1 if direction == "minimize" else -1
    shares = importance(tried.trials, [sign * trial.value for trial in tried.trials])
    assert shares == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert [*shares.values()] == sorted(shares.values(), reverse=True) and shares["fixed"] == 0


def test_importance_is_undetermined_for_one_trial_and_for_equal_trials() -> None:
    tried = study(12, 0, "minimize", 0)
    assert importance(tried.trials[:1], [1]) == {} == importance(tried.trials, [1] * 12)


def test_importance_of_bounds_beyond_64_bits() -> None:
    tried = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trials = [
        optuna.trial.create_trial(
            params={"wide": value}, distributions={"wide": IntDistribution(0, 2**70)}, value=float(value)
        )
        for value in (0, 2**68, 2**70)
    ]
    tried.add_trials(trials)
    assert importance(tried.trials, [trial.value for trial in tried.trials]) == {"wide": 1}
