"""Workloads whose recorded times stand for those of runs."""

from typing import Any

from asyncfl.claims import seconds
from benchmarks.suite.suite import PlannedRun
from fl_core.experiment import Experiment


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
