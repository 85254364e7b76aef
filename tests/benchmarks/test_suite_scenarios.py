"""Scenarios with budgets and targets of their own; a label that is none is a mistake in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.errors import UserError
from benchmarks.suite.suite import Suite, load
from fl_core.recorded_names import Tag

SUITE = {
    "name": "goals",
    "seeds": 1,
    "problem": {"name": "digits", "clients": 3, "target": 0.5},
    "budget": {"time": 10},
    "strategies": ["asgd"],
    "grid": {"problem.partition": ["iid", {"name": "class_dirichlet", "alpha": 0.1}]},
}


def suite(folder: Path, **goals: Any) -> Suite:
    path = folder / "goals.yaml"
    path.write_text(yaml.safe_dump({**SUITE, "scenarios": goals}))
    return load(str(path))


def test_a_scenario_has_its_own_and_the_others_those_of_the_suite(tmp_path: Path) -> None:
    plain, skewed = suite(tmp_path).runs()
    own = suite(tmp_path, **{skewed.scenario: {"budget": {"time": 30, "target": 0.8}, "target": 0.7}}).runs()
    assert [run.scenario for run in own] == [plain.scenario, skewed.scenario]
    assert own[0].key == plain.key and own[1].key != skewed.key
    budget = own[1].experiment.scenario.budget
    assert (budget.time, budget.target, own[1].problem.target) == (30, 0.8, 0.7)


def test_a_label_of_no_scenario_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"scenarios: .*'digits · nowhere'") as caught:
        suite(tmp_path, **{"digits · nowhere": {"budget": {"time": 30}}})
    assert len(caught.value.lines) == 1 and "Available: digits · " in str(caught.value)


def test_a_label_of_the_suite_stands_for_what_its_scenarios_share(tmp_path: Path) -> None:
    """Runs keep keys and conditions; a budget of a scenario is given by the new label."""
    path = tmp_path / "goals.yaml"
    plain = suite(tmp_path).runs()
    goals = {"fleet · Dirichlet 0.1": {"budget": {"time": 30}}}
    path.write_text(yaml.safe_dump({**SUITE, "label": "fleet"}))
    labelled = load(str(path)).runs()
    assert [run.scenario for run in labelled] == ["fleet · i.i.d.", "fleet · Dirichlet 0.1"]
    assert [run.key for run in labelled] == [run.key for run in plain]
    assert [run.conditions for run in labelled] == [run.conditions for run in plain]
    path.write_text(yaml.safe_dump({**SUITE, "label": "fleet", "scenarios": goals}))
    assert load(str(path)).runs()[1].experiment.scenario.budget.time == 30
    path.write_text(yaml.safe_dump({**SUITE, "label": "fleet", "grid": {}}))
    assert {run.scenario for run in load(str(path)).runs()} == {"fleet"}


def test_names_of_runs_say_what_varies(tmp_path: Path) -> None:
    """What all scenarios share, however long, is in none of the names; a single scenario is in none."""
    path = tmp_path / "goals.yaml"
    assert [run.name for run in suite(tmp_path).runs()] == [
        "ASGD · i.i.d. · seed 0",
        "ASGD · Dirichlet 0.1 · seed 0",
    ]
    path.write_text(yaml.safe_dump({**SUITE, "grid": {}, "seeds": 2}))
    assert [run.name for run in load(str(path)).runs()] == ["ASGD · seed 0", "ASGD · seed 1"]


@pytest.mark.parametrize("label", ["x" * 61, "two\nlines"])
def test_a_label_is_a_short_line(tmp_path: Path, label: str) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text(yaml.safe_dump({**SUITE, "label": label}))
    with pytest.raises(UserError, match=r"goals\.yaml:\d+: label: "):
        load(str(path))


def test_conditions_are_recorded_apart_from_the_label_that_joins_them(tmp_path: Path) -> None:
    path = tmp_path / "goals.yaml"
    grid = {**SUITE["grid"], "problem.clients": [3, 4], "local.steps": [1, 2]}
    path.write_text(yaml.safe_dump({**SUITE, "grid": grid}))
    runs = load(str(path)).runs()
    assert len({run.conditions for run in runs}) == len({run.scenario for run in runs}) == 8
    for run in runs:
        assert run.scenario == " · ".join(run.conditions)
        assert run.conditions[0] == "digits" and f"clients {run.problem.clients}" in run.conditions
        assert json.loads(run.tags()[Tag.CONDITIONS]) == list(run.conditions)
