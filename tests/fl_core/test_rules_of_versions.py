"""Rule 3 of the loop: a step makes a version, which stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from worlds import Scripted, play, scenario

from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local_work import SGD
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.server.jobs import Update
from fl_core.server.server import Server


def test_3_version() -> None:
    """At most one step an event, always +1, a new tensor; staleness counts versions before receive."""
    seen: list[tuple[int, int]] = []
    models: list[torch.Tensor] = []

    def receive(server: Server, update: Update) -> None:
        assert update.staleness == server.version - update.version
        before = server.model
        server.step()  # nothing changes, and yet it is a version
        assert server.version == update.version + update.staleness + 1
        with pytest.raises(RuntimeError, match="called twice in one event"):
            server.step()
        models.append(before)

    def following(server: Server) -> list[int]:
        seen.append((server.version, server.updates))
        return server.due

    play(Scripted(on_receive=receive, on_next=following), scenario([1, 3], updates=6))
    assert seen == [(k, k) for k in range(7)]

    kept = [torch.zeros(1, dtype=torch.float64)]

    def mix(server: Server, update: Update) -> None:
        old, value = server.model, server.model.clone()
        kept[0] += 1
        server.step(model=kept[0])
        assert torch.equal(old, value)
        assert server.model is not kept[0]

    play(Scripted(on_receive=mix), scenario(updates=3))


def scribble(server: Server, update: Update) -> None:
    server.model.add_(update.delta)


def scribble_and_step(server: Server, update: Update) -> None:
    server.model.mul_(0.9)
    server.step(update.delta)


def scribble_into_the_new_version(server: Server, update: Update) -> None:
    server.step(update.delta)
    server.model.mul_(0.9)


def scribble_by_another_name(server: Server, update: Update) -> None:
    memory = server.memory
    memory.average = getattr(memory, "average", server.model)
    memory.average.mul_(0.9).add_(0.1 * server.model)
    server.step(update.delta)


def scribble_into_the_start(server: Server, update: Update) -> None:
    server.step(update.delta)
    if update.staleness:
        update.start.add_(1)


@pytest.mark.parametrize(
    ("receive", "what"),
    [
        *((scribble, "the server's model"), (scribble_and_step, "the server's model")),
        (scribble_into_the_new_version, "the server's model"),
        (scribble_by_another_name, "the server's model"),
        (scribble_into_the_start, "update.start"),
    ],
)
def test_3_a_strategy_that_writes_into_a_version_is_named(receive: Any, what: str) -> None:
    """One line, in the event in which it happens."""
    with pytest.raises(RuntimeError, match=rf"^Scripted changes {what} in place, but clients .*clone\(\)"):
        play(Scripted(on_receive=receive), scenario([1, 3]))


@pytest.mark.parametrize("method", ["on_begin", "on_next"])
def test_3_nor_may_other_methods_write(method: str) -> None:
    """Before the first event, and when it is asked whom to send to."""

    def write(server: Server) -> list[int]:
        server.model.zero_()
        return server.due

    with pytest.raises(RuntimeError, match="Scripted changes the server's model in place"):
        play(Scripted(**{method: write}), scenario())


def test_3_the_model_is_not_set_either() -> None:
    """As in `server.model += update.delta`."""

    def receive(server: Server, update: Update) -> None:
        server.model = server.model + update.delta

    with pytest.raises(AttributeError, match=r"server\.model has no setter: make a new .* server\.step"):
        play(Scripted(on_receive=receive), scenario([1, 3]))


@pytest.mark.parametrize("given", [3.0, torch.ones(2)], ids=["number", "shape"])
def test_3_a_step_is_a_tensor_as_long_as_the_model(given: Any) -> None:
    for asked in ({"delta": given}, {"model": given}):
        with pytest.raises(
            TypeError, match=r"server\.step: the argument must be a tensor of shape \[1\], not "
        ):
            play(Scripted(on_receive=lambda server, _, asked=asked: server.step(**asked)), scenario([1, 3]))


def test_3_an_update_is_the_strategys_own() -> None:
    """It may scale what it received in place: nobody else holds it."""

    def receive(server: Server, update: Update) -> None:
        server.step(update.delta.mul_(0.5).add_(0 * update.gradient.mul_(2)))

    def out_of_place(server: Server, update: Update) -> None:
        server.step(0.5 * update.delta)

    for execution in (None, AllInFlight()):
        found = [
            run(
                Experiment(scenario=scenario([1, 3, 2]), strategy=Scripted(on_receive=method)),
                None,
                execution,
            )
            for method in (receive, out_of_place)
        ]
        assert found[0].curve == found[1].curve


class Counting(SGD):
    """Sends a tensor along, and keeps one for each client, that it goes on writing into."""

    def begin(self, server: Server) -> None:
        server.local.sent, server.local.kept = server.zeros(), server.zeros(server.n)

    def broadcast(self, server: Server) -> dict[str, Tensor]:
        return {"updates": server.local.sent}

    def client_state(self, server: Server, client: int) -> dict[str, Tensor]:
        return {"updates": server.local.kept[client]}

    def receive(self, server: Server, update: Update) -> None:
        server.local.sent += 1
        server.local.kept += 1


def test_3_what_local_work_writes_later_is_not_in_jobs_that_were_sent() -> None:
    """A job has the broadcast of its version, and the client's memory when its service began."""
    strategy = Scripted(local=Counting())
    simulation = Simulation(Experiment(scenario=scenario([1, 3], updates=6), strategy=strategy))
    known: dict[int, int] = {}  # how many updates had come when the client's job began
    for received, event in enumerate(simulate(simulation), start=1):
        job = simulation.arrived
        assert job is not None
        assert job.broadcast["updates"].tolist() == [job.version]
        assert job.client_state["updates"].tolist() == [known.get(job.client, 0)]
        assert event.version == received
        known[job.client] = received
    assert known == {0: 6, 1: 4}
