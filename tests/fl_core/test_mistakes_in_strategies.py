"""What an author's strategy may ask of the loop by mistake is told in one line, and never done in part."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from worlds import Scripted, play, scenario

from fl_core.execution.execution import Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local_work import SGD, Work
from fl_core.loop.simulation import Event, Simulation
from fl_core.recording.interleave import RunSlot, interleave
from fl_core.recording.recorder import run
from fl_core.server.jobs import Send, Update
from fl_core.server.server import Server
from fl_core.strategies.fedavg import FedAvg


@pytest.mark.parametrize(
    ("sends", "line"),
    [
        *((lambda client=client: [client], r"^Scripted\.next ") for client in (2, -1, "a", 0.0)),
        *((lambda clients=clients: clients, r"^Scripted\.next ") for clients in (None, 0)),
        (lambda: [Send(0, version=7)], "^Scripted sends version 7"),
        (lambda: [Send(0, steps=0)], r"^Send\.steps "),
        (lambda: [Send(0, length=-3)], r"^Send\.length "),
    ],
)
def test_who_works_next(sends: Callable[[], Any], line: str) -> None:
    with pytest.raises((TypeError, ValueError), match=line):
        play(Scripted(on_next=lambda _: sends()), scenario([1, 3]))


@pytest.mark.parametrize("numbers", [np.array, torch.tensor], ids=["NumPy", "torch"])
def test_clients_may_be_numbers_of_arrays(numbers: Callable[[list[int]], Any]) -> None:
    """They are the same clients: a tensor's elements would be another key each time."""

    def receive(server: Server, update: Update) -> None:
        assert type(update.client) is int
        server.step(update.delta)

    def with_idle(kind: Callable[[list[int]], Any]) -> list[Event]:
        strategy = Scripted(on_receive=receive, on_next=lambda server: kind(list(server.idle)))
        return play(strategy, scenario([1, 3]))[1]

    assert with_idle(numbers) == with_idle(list)


@pytest.mark.parametrize(
    "step",
    [
        lambda server, delta: server.step(model=delta.int()),
        lambda server, delta: server.step(delta.to(torch.complex64)),
        lambda server, delta: server.step(delta.clone().requires_grad_()),
    ],
)
def test_a_step_has_the_models_dtype_and_no_gradient(step: Callable[..., None]) -> None:
    with pytest.raises(TypeError):
        play(Scripted(on_receive=lambda server, update: step(server, update.delta)), scenario([1, 3]))


class InPlace(SGD):
    """Steps in the model that the client was sent."""

    def move(self, y: torch.Tensor, g: torch.Tensor, lr: Any, state: dict[str, Any]) -> torch.Tensor:
        y -= lr * g
        return y


class Scalar(SGD):
    """A corrected gradient without an axis of parameters, which broadcasts in a step."""

    def correct(self, g: torch.Tensor, y: torch.Tensor, job: Work) -> torch.Tensor:
        return g.mean()


@pytest.mark.parametrize("execution", [OneByOne(), AllInFlight()])
@pytest.mark.parametrize(("local", "name"), [(InPlace(), "InPlace"), (Scalar(), r"Scalar\.correct")])
def test_local_work_returns_new_models_of_the_same_shape(local: SGD, name: str, execution: Execution) -> None:
    """Else the server's model would change with a client's, and delta be nothing, without a word."""
    experiment = Experiment(scenario=scenario([1, 1, 1]), strategy=FedAvg(local=local))
    with pytest.raises((RuntimeError, ValueError), match=name):
        run(experiment, execution=execution)


class Counted(SGD):
    """As many local steps as given."""

    given: Any

    def count(self, server: Server, client: int, job: int) -> int:
        steps: int = self.given
        return steps


@pytest.mark.parametrize("steps", [-1, 0, 1.5, 2.0, math.nan, None])
def test_local_steps_are_counted(steps: Any) -> None:
    with pytest.raises(ValueError, match=r"Counted\.count of client 0 "):
        play(Scripted(local=Counted(given=steps)), scenario([1, 3]))


def test_local_steps_may_be_a_number_of_an_array() -> None:
    counts = {
        kind: play(Scripted(local=Counted(given=kind(2))), scenario([1, 3]))[1] for kind in (int, np.int64)
    }
    assert counts[int] == counts[np.int64]


@pytest.mark.parametrize("given", [{"steps": 0}, {"steps": 1.5}, {"length": -1}, {"length": math.nan}])
def test_what_is_sent_has_whole_steps_and_length(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^Send\.(steps|length) "):
        Send(0, **given)
    assert type(Send(0, steps=np.int64(3)).steps) is int


@pytest.mark.parametrize("at", [math.nan, 1.5])
def test_an_alarm_rings_at_a_whole_tick(at: Any) -> None:
    with pytest.raises(TypeError, match=r"^server\.wake: "):
        play(Scripted(on_begin=lambda server: server.wake(at)), scenario([1, 3]))


def test_one_that_ends_python_ends_its_own_run_alone() -> None:
    def ends(_: Server, __: Update) -> None:
        sys.exit(3)

    strategies = Scripted(on_receive=ends), Scripted()
    slots = [
        RunSlot(Simulation(Experiment(scenario=scenario([1, 3]), strategy=strategy)).events())
        for strategy in strategies
    ]
    assert [slot for slot, event in interleave(slots) if event is None] == slots
    assert isinstance(slots[0].error, SystemExit) and slots[1].error is None
