"""A strategy may keep a dataclass of its own: the run is the same, and a checkpoint brings it back."""

from pathlib import Path
from typing import Any

import pytest
import torch
from typed_memory import Fixed, Frozen, Named, Names, Typed, Untyped, Velocity
from worlds import scenario

from asyncfl import Experiment, Strategy, conformance
from fl_core.diagnostics.overhead import overhead
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder, run

KINDS: dict[type[Strategy], type] = {Typed: Velocity, Frozen: Fixed, Named: Names}


def test_it_resumes_in_stacks() -> None:
    [resumes] = [check for check in conformance.checks(Typed) if "resumed" in check.requirement.__name__]
    resumes()


@pytest.mark.parametrize("kind", KINDS)
def test_the_run_is_that_of_a_plain_namespace(kind: type[Strategy]) -> None:
    where = scenario(noise=0.3, updates=40)
    plain = run(Experiment(scenario=where, strategy=Untyped(), seed=2))
    assert run(Experiment(scenario=where, strategy=kind(), seed=2)).curve == plain.curve


@pytest.mark.parametrize("kind", KINDS)
def test_its_class_and_values_come_back(kind: type[Strategy], tmp_path: Path) -> None:
    experiment = Experiment(scenario=scenario(noise=0.3, updates=40), strategy=kind())
    saved, loaded = Simulation(experiment), Simulation(experiment)
    for _, event in zip(range(9), simulate(saved), strict=False):
        assert event
    checkpoint.save(Recorder(saved), tmp_path / "run.pt")
    checkpoint.load(Recorder(loaded), tmp_path / "run.pt")
    one, other = saved.server.memory, loaded.server.memory
    assert type(one) is type(other) is KINDS[kind] and one is not other
    assert one.steps == other.steps > 0 and torch.equal(one.last, other.last)


def test_its_bytes_are_counted() -> None:
    where = scenario(updates=3)
    kept = {}
    for kind in (Typed, Frozen):
        simulation = Simulation(Experiment(scenario=where, strategy=kind()))
        assert list(simulate(simulation))
        kept[kind] = overhead(simulation)
    size = 8 * len(simulation.server.model)
    assert kept == {Typed: {"server": 0, "clients": size}, Frozen: {"server": size, "clients": 0}}


@pytest.mark.parametrize(("memory", "kind"), [({}, "dict"), (3, "int"), (Velocity, "type")])
def test_another_kind_of_object_is_refused_at_once(memory: Any, kind: str) -> None:
    server = Simulation(Experiment(scenario=scenario(), strategy=Untyped())).server
    with pytest.raises(TypeError, match=f"must be a dataclass or a SimpleNamespace, not a {kind}"):
        server.memory = memory
