"""Workloads whose recorded times stand for those of runs."""

from pathlib import Path
from typing import Any

import pytest

from asyncfl.claims import seconds
from asyncfl.claims.seconds import Costs, Seconds
from benchmarks.suite.suite import PlannedRun
from fl_core.experiment import Experiment


def run(problem: dict[str, Any], local: dict[str, Any], **budget: float) -> PlannedRun:
    scenario = {"problem": problem, "budget": budget or {"updates": 10}}
    strategy = {"name": "asgd", "local": {"name": "sgd", **local}}
    experiment = Experiment.model_validate({"scenario": scenario, "strategy": strategy})
    return PlannedRun("a suite", experiment, "a label", "a label")


def test_workloads_differ_by_what_a_gradient_costs() -> None:
    def name(problem: dict[str, Any], local: dict[str, Any]) -> str:
        return seconds.workload(run(problem, local))

    digits = {"name": "digits", "clients": 10}
    assert name(digits, {}) == name({**digits, "clients": 5, "partition": "disjoint_labels"}, {})
    others = [name({**digits, "model": "affine"}, {}), name(digits, {"batch": 8}), name(digits, {"steps": 2})]
    assert len({name(digits, {}), *others}) == 4


def test_processes_that_measure_at_once_keep_what_the_others_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seconds, "measured", lambda _: Seconds(1, 1, 1, 1, 1))
    first, second = Costs(tmp_path), Costs(tmp_path)  # which read the same, empty files
    own = {"name": "quadratic"}
    first.of(run(own, {}, time=2))
    second.of(run(own, {"steps": 2}, time=3))
    kept = Costs(tmp_path)
    assert kept.workloads == {**first.workloads, **second.workloads} and len(kept.workloads) == 2
    assert kept.counted == {**first.counted, **second.counted} and len(kept.counted) == 2
