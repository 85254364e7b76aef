"""How trials are computed."""

from collections import Counter
from typing import Any

import in_process
import pytest
from torch import Tensor

from fl_core.execution.auto import Auto
from fl_core.experiment import Experiment
from fl_core.problems.training.world import SupervisedWorld
from tuning.trials_job import TrialsJob


@pytest.mark.parametrize(("cost_in_a_stack", "stacked"), [(3.0, False), (0.3, True)])
def test_trials_are_stacked_where_that_is_measured_to_be_faster(
    monkeypatch: pytest.MonkeyPatch, cost_in_a_stack: float, stacked: bool
) -> None:
    alone, together = SupervisedWorld.gradient, SupervisedWorld.gradients
    seconds, jobs = [0.0], Counter[bool]()

    def gradient(self: SupervisedWorld, *args: Any) -> Tensor:
        seconds[0] += 1
        jobs[False] += 1
        return alone(self, *args)

    def gradients(self: SupervisedWorld, models: Tensor, *args: Any) -> Tensor:
        seconds[0] += cost_in_a_stack * len(models)
        jobs[True] += len(models)
        return together(self, models, *args)

    monkeypatch.setattr(SupervisedWorld, "gradient", gradient)
    monkeypatch.setattr(SupervisedWorld, "gradients", gradients)
    monkeypatch.setattr("fl_core.execution.auto.thread_time", lambda: seconds[0])
    monkeypatch.setattr(Auto, "known", {})
    experiment = Experiment.model_validate(
        {
            "scenario": {"problem": {"name": "digits", "clients": 20}, "budget": {"updates": 200}},
            "strategy": {"name": "asgd", "local_lr": 0.1},
        }
    )
    trials = dict.fromkeys(range(5), experiment.strategy)
    TrialsJob("a study", experiment.scenario, trials, (0,), "test/loss").compute(in_process.InProcess())
    assert jobs[stacked] > 0.9 * jobs.total()
