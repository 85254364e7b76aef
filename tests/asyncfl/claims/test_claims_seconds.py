"""Estimated times of runs: jobs counted without data, against runs in full."""

from typing import Any

import pytest

from asyncfl.claims import seconds
from benchmarks.suite.suite import PlannedRun
from fl_core.experiment import Experiment
from fl_core.recording.recorder import run
from fl_core.scenario import Budget, Scenario


@pytest.mark.parametrize("strategy", ["asgd", {"name": "fedbuff", "buffer": 3}, "fedavg"])
@pytest.mark.parametrize("budget", [{"time": 60}, {"iterations": 40, "updates": 10_000}, {"updates": 300}])
def test_updates_are_those_of_a_run_in_full(
    strategy: Any, budget: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted to the end, and extrapolated after a few arrivals."""
    scenario = Scenario.model_validate(
        {
            "problem": {"name": "digits", "clients": 10},
            "timing": {"durations": "fx"},
            "budget": Budget(**budget),
            "evaluations": 1,
        }
    )
    experiment = Experiment.model_validate({"scenario": scenario, "strategy": strategy})
    received = run(experiment).curve[-1]["updates"]
    monkeypatch.setattr(seconds, "ARRIVALS", 1e6)
    assert seconds.updates(experiment) == received
    monkeypatch.setattr(seconds, "ARRIVALS", 50)
    assert seconds.updates(experiment) == pytest.approx(received, rel=0.3)


def test_workloads_differ_by_what_a_gradient_costs() -> None:
    def name(problem: dict[str, Any], local: dict[str, Any]) -> str:
        scenario = {"problem": problem, "budget": {"updates": 10}}
        strategy = {"name": "asgd", "local": {"name": "sgd", **local}}
        experiment = Experiment.model_validate({"scenario": scenario, "strategy": strategy})
        return seconds.workload(PlannedRun("a suite", experiment, "a label", "a label"))

    digits = {"name": "digits", "clients": 10}
    assert name(digits, {}) == name({**digits, "clients": 5, "partition": "disjoint_labels"}, {})
    others = [name({**digits, "model": "affine"}, {}), name(digits, {"batch": 8}), name(digits, {"steps": 2})]
    assert len({name(digits, {}), *others}) == 4
