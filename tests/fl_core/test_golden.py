"""Golden trajectories: every strategy's first versions on noisy quadratics, as recorded when they were right.

`python tests/fl_core/test_golden.py` records them anew, for a change that is meant to change results.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from worlds import scenario

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.strategies.strategy import Strategy

GOLDEN = Path(__file__).with_name("golden.json")
CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0]]
STEPS = 12


def trajectory(name: str) -> list[list[float]]:
    """[time, client, model…] after each of a strategy's first steps, with defaults and SCAFFOLD inside."""
    where = scenario(["1", "11/15", "7/15", "2"], centres=CENTRES, noise=0.2, updates=200)
    strategy = {"name": name, "local_lr": 0.05, "local": {"name": "scaffold", "steps": 2}}
    experiment = Experiment.model_validate({"scenario": where, "strategy": strategy, "seed": 5})
    simulation = Simulation(experiment)
    found: list[list[float]] = []
    for event in simulate(simulation):
        if event.stepped:
            client = -1 if event.client is None else event.client
            found.append([simulation.time, client, *simulation.server.model.tolist()])
        if len(found) == STEPS:
            break
    return found


@pytest.mark.parametrize("name", list(Strategy.members()))
def test_trajectory_is_the_recorded_one(name: str) -> None:
    """Events exactly, models to 1e-12."""
    golden = json.loads(GOLDEN.read_text())[name]
    found = trajectory(name)
    assert [row[:2] for row in found] == [row[:2] for row in golden]
    assert [row[2:] for row in found] == [pytest.approx(row[2:], rel=0, abs=1e-12) for row in golden]


def test_every_strategy_has_one_and_nothing_else_does() -> None:
    """A new strategy records its own; a removed one takes its own along."""
    assert json.loads(GOLDEN.read_text()).keys() == Strategy.members().keys()


if __name__ == "__main__":
    rows = {name: trajectory(name) for name in Strategy.members()}
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
