"""Booleans are no numbers: pydantic would take true for 1 and false for 0."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from benchmarks.errors import UserError
from benchmarks.suite.suite import load
from fl_core.experiment import Experiment

DESCRIBED: dict[str, Any] = {
    "scenario": {
        "problem": {"name": "quadratic", "clients": 2, "importance": [0.5, 0.5]},
        "timing": {"durations": {"name": "two_speed", "share": 0.5}},
        "budget": {"updates": 5, "time": 9},
        "evaluations": 2,
    },
    "strategy": {"name": "asgd", "local_lr": 0.1, "local": {"name": "sgd", "steps": 2}},
    "seed": 0,
}
PLACES = [
    *("seed", "strategy.local_lr", "strategy.local.steps", "scenario.budget.updates", "scenario.budget.time"),
    *("scenario.timing.durations.share", "scenario.problem.clients", "scenario.problem.noise"),
]


def changed(place: str, value: Any) -> dict[str, Any]:
    described = deepcopy(DESCRIBED)
    *outer, name = place.split(".")
    node = described
    for key in outer:
        node = node[key]
    node[name] = value
    return described


def test_the_description_is_valid() -> None:
    Experiment.model_validate(DESCRIBED)


@pytest.mark.parametrize("place", PLACES)
def test_a_boolean_is_no_number_of_a_part(place: str) -> None:
    for value in (True, np.True_):
        with pytest.raises(ValidationError):
            Experiment.model_validate(changed(place, value))


def test_a_boolean_is_no_number_in_a_list() -> None:
    with pytest.raises(ValidationError):
        Experiment.model_validate(changed("scenario.problem.importance", [True, False]))


@pytest.mark.parametrize("line", ["lr: true", "lr: {asgd: {local: true}}", "seeds: true", "seeds: [true, 2]"])
def test_a_boolean_is_no_number_of_a_suite(tmp_path: Path, line: str) -> None:
    keys = {"lr": "lr: 0.1", "seeds": "seeds: 1"}
    keys[line.partition(":")[0]] = line
    path = tmp_path / "s.yaml"
    path.write_text(
        "\n".join(
            ["name: s", "problem: quadratic", "budget: {updates: 5}", "strategies: [asgd]", *keys.values()]
        )
    )
    with pytest.raises(UserError):
        load(str(path)).runs()
