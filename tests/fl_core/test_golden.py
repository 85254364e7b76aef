"""Golden trajectories: every strategy's first versions on noisy quadratics, as recorded when they were right.

They are a tripwire: a change of results is seen, never judged; what is right is shown by the other tests.
`python tests/fl_core/test_golden.py` records them anew, for a new strategy or a change that is meant.
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
RECORD = "python tests/fl_core/test_golden.py"  # from the root of the repository
CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0]]
STEPS = 12
TRAJECTORIES: dict[str, list[list[float]]] = json.loads(GOLDEN.read_text())


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
    golden = TRAJECTORIES[name]
    found = trajectory(name)
    meant = f"{name} has changed; if that is meant, record it anew: {RECORD}"
    assert [row[:2] for row in found] == [row[:2] for row in golden], meant
    assert [row[2:] for row in found] == [pytest.approx(row[2:], rel=0, abs=1e-12) for row in golden], meant


def test_every_strategy_has_one_and_no_other() -> None:
    """A removed strategy takes its trajectory along."""
    assert TRAJECTORIES.keys() == Strategy.members().keys(), f"record anew: {RECORD}"


if __name__ == "__main__":
    rows = {name: trajectory(name) for name in Strategy.members()}
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
