"""A run's mutable state is one dataclass; strategies see a part of it (docs/rules.md, rule 15)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import scenario

from fl_core.experiment import Experiment
from fl_core.loop.serialization import plain, restore, values
from fl_core.loop.simulation import Simulation, simulate
from fl_core.loop.state import RunState
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder
from fl_core.server.server import Server
from fl_core.strategies.asgd import ASGD

# What the docstring of Server promises, and nothing else.
READ = (
    "model version now time updates n p sizes mean_time service_time lr in_flight jobs due idle present"
    " ringing newly_gone blocks"
)
WRITTEN = "memory local local_lr misread"
VERBS = "step dismiss collect wake draw stream zeros ticks losses jobs_of"


@dataclass(slots=True, kw_only=True, eq=False)
class Longer(RunState):
    """A state with a field that no other module has heard of."""

    heard: dict[int, Any] = field(default_factory=dict)


def longer(**more: Any) -> Simulation:
    """A simulation with one field more in its state."""
    simulation = Simulation(Experiment(scenario=scenario(), strategy=ASGD()))
    simulation.state = Longer(**values(simulation.state), **more)
    return simulation


def test_a_new_field_is_saved_without_further_ado() -> None:
    """Named nowhere else: it comes back, its tensors included."""
    data = plain(longer(heard={3: [torch.tensor([1.5, -2]), "late", (None, 4)]}))
    again = longer()
    restore(again, data)
    assert isinstance(again.state, Longer)
    tensor, *rest = again.state.heard.pop(3)
    assert torch.equal(tensor, torch.tensor([1.5, -2])) and rest == ["late", (None, 4)]
    assert again.state.heard == {}


def test_a_new_field_that_would_not_come_back_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"^heard\[3\] is a builtins\.set, which cannot be saved"):
        plain(longer(heard={3: {1}}))


def test_a_checkpoint_without_the_new_field_is_refused(tmp_path: Path) -> None:
    """Not a KeyError in the middle of a suite."""
    plain_one = Simulation(Experiment(scenario=scenario(), strategy=ASGD()))
    checkpoint.save(Recorder(plain_one), tmp_path / "run.pt")
    with pytest.raises(ValueError, match=r"run\.pt is the checkpoint of another version of asyncfl"):
        checkpoint.load(Recorder(longer()), tmp_path / "run.pt")


def test_every_field_comes_back_from_the_middle_of_a_run() -> None:
    """Some clients are away, jobs are in flight; each of them is the same in flight and in the queue."""
    away = {"name": "dropouts", "share": 0.5, "at": 2, "back": 9}
    where = scenario([1, 2, "5/2", 4], noise=0.5, availability=away, updates=30)
    experiment = Experiment(scenario=where, strategy=ASGD(concurrency=3), seed=3)
    first, second = Simulation(experiment), Simulation(experiment)
    for _, event in zip(range(5), simulate(first), strict=False):
        assert event
    data = plain(first)
    assert data.keys() == {one.name for one in fields(RunState)} | {"jobs"}
    restore(second, data)
    one, other = plain(first), plain(second)
    assert repr(one) == repr(other)
    assert second.state.in_flight == 3 and second.state.returns and second.state.roster.absent
    heads = {id(queue[0]) for queue in second.state.flight.values()}
    assert heads >= {id(item) for *_, item in second.state.queue.earliest() if hasattr(item, "start")}


def test_a_strategy_sees_what_is_documented_and_nothing_else() -> None:
    server = Simulation(Experiment(scenario=scenario(), strategy=ASGD())).server
    seen = {name for name in dir(server) if not name.startswith("_")}
    assert seen == set(f"{READ} {WRITTEN} {VERBS}".split())
    assert Server.__doc__ is not None
    assert all(f"`{name}`" in Server.__doc__ for name in seen)


@pytest.mark.parametrize("name", ["version", "now", "updates", "in_flight", "model", "due"])
def test_a_strategy_cannot_set_what_the_loop_counts(name: str) -> None:
    server = Simulation(Experiment(scenario=scenario(), strategy=ASGD())).server
    with pytest.raises(AttributeError, match="no setter"):
        setattr(server, name, 7)
