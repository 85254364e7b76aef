"""The energy of a run: the power of each client in each phase, times how long it lasted."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from test_golden import CENTRES
from test_network import ONE
from test_server_time import experiment, served
from worlds import Scripted, resumed_everywhere, scenario

from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import Recorder, run
from fl_core.scenario import Scenario

POWER = {
    "computation": {"name": "table", "table": [5, 3, 2]},
    "download": 2,
    "upload": 4,
    "idle": "1/2",
}


def powered(where: Scenario, power: Any, **timing: Any) -> Scenario:
    """A scenario in which clients draw power."""
    data = where.model_dump()
    return Scenario.model_validate({**data, "timing": {**data["timing"], "power": power, **timing}})


# -- by hand ---------------------------------------------------------------------------------------


def test_three_clients_by_hand() -> None:
    """Each computes once, for 1, 2 and 3 units of 10 s: 5 W, 3 W and 2 W, and ½ W from then on."""
    strategy = Scripted(on_next=lambda server: [] if server.now else [0, 1, 2])
    where = powered(scenario([1, 2, 3], time=4, evaluations=4), POWER, unit=10)
    curve = run(experiment(where, strategy)).curve
    assert [(row["time"], row["energy"]) for row in curve] == [
        (0, 0),
        (1, 10 * (5 + 3 + 2)),  # the model of the first update, before that of the second
        (2, 10 * (5 + 0.5 + 2 * 3 + 2 * 2)),
        (3, 10 * (5 + 2 * 0.5 + 2 * 3 + 0.5 + 3 * 2)),
    ]


def test_three_clients_with_links_and_a_server_by_hand() -> None:
    """Download 1, latency ¼, computation, latency ¼, upload 2; then clients wait, the server takes 1."""
    strategy = Scripted(on_next=lambda server: [] if server.now else [0, 1, 2])
    links = {"downlink": ONE, "uplink": ONE / 2, "latency": "1/4"}
    where = served(scenario([1, 2, 3], updates=3), {"name": "fixed", "times": [1]}, network=links)
    record = run(experiment(powered(where, POWER), strategy))
    assert list(record.arrivals["time"]) == [5.5, 6.5, 7.5]
    working = sum(1.25 * 2 + watts * length + 2.25 * 4 for watts, length in ((5, 1), (3, 2), (2, 3)))
    idle = 3 * 7.5 - (4.5 + 5.5 + 6.5)
    assert record.curve[-1]["energy"] == pytest.approx(working + idle / 2, rel=1e-12)


def test_between_two_events_energy_is_that_of_the_mark() -> None:
    """One job from 0 to 7 that is dismissed at 5, and marks at 1½, 3, 4½ and 6: 2 W until then."""

    def tick(server: Any) -> None:
        server.step(server.zeros())
        for job in tuple(server.jobs):
            server.dismiss(job)

    strategy = Scripted(
        on_begin=lambda server: server.wake(server.ticks(Fraction(5))),
        on_tick=tick,
        on_next=lambda server: [] if server.now else [0],
        exact=(Fraction(5), Fraction(3, 2)),
    )
    simulation = Simulation(
        experiment(powered(scenario([7], time=6, evaluations=4), {"computation": 2}), strategy)
    )
    recorder, marks = Recorder(simulation), []
    recorder.start()
    for event in simulate(simulation):
        assert simulation.energy is not None
        unit = simulation.lengths.clock.unit
        marks += [
            simulation.energy.used(Fraction(mark) / unit) for mark in (Fraction(3, 2), 3, Fraction(9, 2))
        ]
        recorder.see(event)
    assert marks == [3, 6, 9]
    assert recorder.finish().curve[-1]["energy"] == 10


# -- invariants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fedavg", "fedbuff", "malenia", "quafl"])
def test_one_watt_in_every_phase_is_one_joule_a_second_and_client(name: str, tmp_path: Path) -> None:
    """Whatever a strategy does; saved and taken up again after every event."""
    where = scenario(["1", "11/15", "7/15", "2"], centres=CENTRES, noise=0.2, time=8, evaluations=7)
    network = {"uplink": 3 * ONE, "latency": "1/10"}
    where = served(where, {"name": "exponential", "mean": 0.3}, network=network)
    one = powered(where, dict.fromkeys(("computation", "download", "upload", "idle"), 1), unit=3)
    strategy = {"name": name, "local_lr": 0.05, "local": {"name": "sgd", "steps": 2}}
    curve = run(experiment(one, strategy)).curve
    assert [row["energy"] for row in curve] == pytest.approx([12 * row["time"] for row in curve], rel=1e-12)
    uneven = experiment(powered(where, {"computation": 7, "upload": 2, "idle": "1/3"}), strategy)
    record = run(uneven)
    assert resumed_everywhere(uneven, tmp_path).curve == record.curve
    assert np.all(np.diff([row["energy"] for row in record.curve]) >= 0)
    # The table of clients says how long each phase lasted in all
    phases = ("computation", "upload", "download")
    computing, sending, receiving = (sum(record.clients[f"{phase}_time"]) for phase in phases)
    idle = 4 * 8 - computing - sending - receiving
    assert record.curve[-1]["energy"] == pytest.approx(7 * computing + 2 * sending + idle / 3, rel=1e-9)


def test_power_changes_nothing_else() -> None:
    where = scenario([1, "3/2", 2], centres=CENTRES[:3], noise=0.2, updates=30)
    plain, with_power = (
        run(experiment(here, {"name": "fedbuff", "local_lr": 0.1})) for here in (where, powered(where, POWER))
    )
    without = [{name: row[name] for name in row if name != "energy"} for row in with_power.curve]
    assert without == plain.curve
    assert "energy" not in plain.curve[-1]


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("power", "timing"),
    [
        ({"computation": {"name": "table", "table": [1, 2]}}, {}),
        ({"idle": -1}, {}),
        ({"computation": 1}, {"durations": {"name": "iterations"}}),
    ],
)
def test_mistakes_are_named(power: Any, timing: Any) -> None:
    with pytest.raises(ValidationError):
        powered(scenario([1, 2, 3]), power, **timing)
