"""Rule 16 of the loop: what a table of all clients' updates waits for before its first step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import leaving, play, resumed_everywhere, scenario

from fl_core.arrangements import IterationDelay
from fl_core.arrangements import Rounds as FewWorkers
from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.strategies.ace import ACE
from fl_core.strategies.aced import ACED
from fl_core.strategies.afa_cs import AFACS
from fl_core.strategies.mifa import MIFA

TABLES = [ACE(), AFACS(start="first_pass"), ACED(stamp="model", max_age=2)]
SENDERS: list[dict[str, Any]] = [
    {"arrangement": IterationDelay(mean=3)},
    {"arrangement": FewWorkers(workers=2)},
    {"concurrency": 2},
]


@pytest.mark.parametrize("how", SENDERS, ids=["iteration delay", "rounds", "concurrency"])
@pytest.mark.parametrize("strategy", TABLES, ids=lambda strategy: strategy.label())
def test_16_first_pass(strategy: Any, how: dict[str, Any]) -> None:
    """The first n updates are one of each client, at version 0, by their lengths; then one step."""
    where = scenario([3, 1, 4, 2, 5, 5], noise=0.5, updates=40)
    where = where.model_copy(update={"arrangement": how.get("arrangement")})
    strategy = strategy.model_copy(update={"concurrency": how.get("concurrency")})
    simulation = Simulation(Experiment(scenario=where, strategy=strategy))
    first, deltas, after = [], {}, None
    for event in simulate(simulation):
        if len(first) < 6:
            assert simulation.server.in_flight >= 5 - len(first)
            assert event.stepped == (len(first) == 5)
            first.append((event.time, event.client, event.staleness))
            assert simulation.arrived is not None
            deltas[event.client] = simulation.arrived.delta
            after = simulation.server.model
    assert first == [(1, 1, 0), (2, 3, 0), (3, 0, 0), (4, 2, 0), (5, 4, 0), (5, 5, 0)]
    assert simulation.server.updates == 40
    # K = 1 and η_g = 1: the mean of all clients' updates, of w^0 = 0
    mean = torch.stack([deltas[client] for client in range(6)]).mean(0)
    torch.testing.assert_close(after, mean, rtol=0, atol=1e-12)


def test_16_first_pass_waits_for_absent_clients(tmp_path: Path) -> None:
    """Two clients come at 10: they begin then; saved and resumed after each event, it is the same run."""
    away = {"name": "dropouts", "share": 0.5, "at": 0, "back": 10}
    where = scenario([1, 2, 3, 4], noise=0.5, availability=away, updates=20)
    where = where.model_copy(update={"arrangement": IterationDelay()})
    experiment = Experiment(scenario=where, strategy=ACE())
    late = leaving(where)
    simulation = Simulation(experiment)
    seen = [event for event in simulate(simulation) if event.kind is EventKind.ARRIVAL]
    assert [event.staleness for event in seen[:4]] == [0] * 4
    assert {event.client for event in seen[:2]} == {0, 1, 2, 3} - set(late)
    assert [(event.client, event.time) for event in seen[2:4]] == [(i, 11 + i) for i in late]
    assert all(event.began == 10 for event in seen[2:4])
    assert [event.version for event in seen[:6]] == [0, 0, 0, 1, 2, 3]
    assert resumed_everywhere(experiment, tmp_path).curve == run(experiment).curve


def test_16_when_all_heard_sends_as_usual_and_waits_for_clients_not_for_arrivals() -> None:
    """Drawn one by one, clients come twice before the last is heard: no step until then, or after that."""
    for strategy, after in (
        *((ACE(start="when_all_heard"), 1), (ACED(start="when_all_heard"), 1)),
        *((MIFA(), 0), (MIFA(start="next_round"), 1)),
    ):
        where = scenario([1] * 8, updates=60).model_copy(update={"arrangement": IterationDelay()})
        simulation, seen = play(strategy, where)
        first = next(number for number, event in enumerate(seen) if event.stepped)
        filled = first - after  # the arrival that fills the table
        assert len({event.client for event in seen[: filled + 1]}) == 8
        assert len({event.client for event in seen[:filled]}) == 7
        assert filled + 1 > 8  # in this draw; with n arrivals it would be 8
        assert simulation.server.version == 60 - first


def test_16_mifa_from_zeros_steps_after_its_first_round() -> None:
    """Of four clients two are there: the step is their mean update, halved by two rows of zeros."""
    away = {"name": "dropouts", "share": 0.5, "at": 0, "back": 50}
    centres = [[4.0]] * 4
    where = scenario([1] * 4, centres=centres, availability=away, updates=2)
    zeros, _ = play(MIFA(start="zeros", local_lr=0.5), where)
    assert (zeros.server.version, zeros.server.model.item()) == (1, 1.0)  # ½ · ½ · 4
    waits, _ = play(MIFA(local_lr=0.5), where)
    assert waits.server.version == 0
