"""Runs in real time, held to the simulator by replay; what is lost on the way; what cannot run so."""

from __future__ import annotations

import builtins
from copy import deepcopy
from multiprocessing import Pipe
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fl_core.experiment import Experiment
from fl_core.live.client import ClientError, serve, train
from fl_core.live.processes import LIGHTNING, LocalProcesses, Sender
from fl_core.live.real_time import StoppedError
from fl_core.live.run import refuses
from fl_core.live.transport import JobMessage, LostClients, UpdateMessage
from fl_core.local_work import SGD
from fl_core.loop.events import EventKind
from fl_core.problems.digits import Digits
from fl_core.problems.problem import Problem
from fl_core.problems.quadratic import Quadratic
from fl_core.recorded_names import BYTES, TIME, Name, Reason, Status
from fl_core.recording.recorder import run as simulated
from fl_core.strategies.strategy import Strategy
from fl_core.testing.check_experiments import changed
from tests.fl_core.live.in_threads import Threads, held_to, lived, prepared
from tests.fl_core.worlds import scenario

TIMES = (1, "11/15", "7/15", "1/5", 2, 2)
CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0], [0.0, 2.0], [2.0, -2.0]]


def experiment(
    name: str, *, updates: int = 80, time: int = 10_000, availability: Any = "always", **fields: Any
) -> Experiment:
    """Six noisy quadratics; the time is a net for a run that makes no progress."""
    strategy = changed(Strategy.members()[name](), **fields)
    where = scenario(
        TIMES,
        centres=CENTRES,
        noise=0.3,
        availability=availability,
        time=time,
        updates=updates,
        evaluations=4,
    )
    return Experiment(scenario=where, strategy=strategy, seed=1)


SHOWN = {
    "buffer": ("fedbuff", {}),
    "dismissals of late jobs": ("ringmaster", {"max_delay": 2}),
    "alarms": ("fedfix", {}),
    "a deadline of rounds": ("fedavg", {"deadline": 1, "time": 50}),  # on a slow machine all jobs may be late
    "dismissals at alarms": ("mindflayer", {"time": 50}),
    "collected jobs": ("favas", {"local": {"name": "sgd", "steps": 4}}),
    "clients with models": ("quafl", {"local": {"name": "sgd", "steps": 3}}),
    "a first pass": ("ace", {}),
    "memory of clients": ("fedbuff", {"local": {"name": "scaffold", "steps": 2}}),
    "losses": ("fedasync", {"concurrency": 4}),
    "codings": ("ca2fl", {"uplink": {"name": "top_k", "share": 0.5, "feedback": "ef21"}}),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_replay_equals_the_run_in_real_time(name: str) -> None:
    strategy, fields = SHOWN[name]
    run = lived(experiment(strategy, **fields))
    compared = held_to(run)
    assert compared.events == len(run.log.events[TIME]) > 0
    assert compared.bit_for_bit, compared


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(Strategy.members()))
def test_a_replay_equals_the_run_in_real_time_for_every_strategy(name: str) -> None:
    away = {"name": "spells", "mean_on": 5, "mean_off": 2}
    for run in (lived(experiment(name, time=50)), lived(experiment(name, time=50, availability=away))):
        assert held_to(run).bit_for_bit


def killed(process: Any) -> None:
    """Kill a process and wait for its end: the run must not reach its own end before."""
    process.kill()
    process.join()


@pytest.mark.parametrize("name", ["fedavg", "favas"])
def test_a_killed_client_process_is_a_drop_out_and_the_run_goes_on(name: str) -> None:
    run = prepared(where := experiment(name))
    transport = LocalProcesses(where, 3)
    for number, event in enumerate(run.events(transport)):
        if number == 10:
            killed(transport.processes[1])  # of clients 1 and 4
        last = event
    transport.stop()
    run.service.stop()
    clients, kinds = run.log.events[Name.CLIENT], run.log.events[Name.KIND]
    first = kinds.index(EventKind.LOST)
    assert clients[first : first + 2] == [1, 4] == list(run.simulation.state.gone)
    assert {1, 4}.isdisjoint(clients[first + 2 :]) and last.kind is not EventKind.LOST
    assert held_to(run).bit_for_bit


@pytest.mark.parametrize(
    "problem", [Quadratic(centres=CENTRES), Digits(clients=6)], ids=["quadratic", "digits"]
)
def test_lightning_is_imported_before_client_processes_only_for_supervised_problems(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("multiprocessing.set_forkserver_preload", asked.append)
    scene = experiment("asgd").scenario.model_copy(update={"problem": problem})
    monkeypatch.setattr(LocalProcesses, "_start", Mock(side_effect=StoppedError))
    with pytest.raises(StoppedError):
        LocalProcesses(experiment("asgd").model_copy(update={"scenario": scene}), 1)
    assert [LIGHTNING in modules for modules in asked] == [isinstance(problem, Digits)]


def test_a_pipe_is_closed_only_once_nothing_is_being_sent() -> None:
    begun = Event()

    class Slow:
        def __reduce__(self) -> Any:
            begun.set()
            sleep(0.05)
            return str, ("sent",)

    ours, theirs = Pipe()
    sender = Sender(ours)
    sender.outgoing.put(Slow())
    begun.wait()
    sender.close()
    assert theirs.recv() == "sent"
    with pytest.raises(EOFError):
        theirs.recv()


class Truncated(SGD):
    """Raises what the end of a pipe raises, too."""

    error: str

    def correct(self, *_: Any) -> Any:
        raise getattr(builtins, self.error)("of one's own")


class Unreadable(Quadratic):
    """Quadratics whose world cannot be built."""

    def world(self, seed: int) -> Any:
        raise ConnectionRefusedError(f"no data for seed {seed}")


@pytest.mark.parametrize("error", ["EOFError", "OSError", "KeyboardInterrupt", "SystemExit"])
def test_an_error_of_local_work_is_no_lost_client_whatever_its_class(error: str) -> None:
    """Also errors that a closed pipe raises, and exceptions that ask Python to end."""
    where = experiment("asgd", local=Truncated(error=error))
    run, transport = prepared(where), Threads(where, 2)
    with pytest.raises(ClientError, match=rf"^{error}: of one's own \(.*test_live.py:\d+\)"):
        list(run.events(transport))
    transport.stop()


def test_an_error_of_a_world_reaches_the_server_and_ends_all_client_processes() -> None:
    stopped = []

    class Stopping(Threads):
        def stop(self) -> None:
            super().stop()
            stopped.append(len(self.processes))

    scene = experiment("asgd").scenario.model_copy(update={"problem": Unreadable(centres=CENTRES)})
    with pytest.raises(ClientError, match=r"^ConnectionRefusedError: no data for seed 1 \(.*test_live.py"):
        Stopping(experiment("asgd").model_copy(update={"scenario": scene}), 2)
    assert stopped == [2]


def test_a_client_whose_server_is_gone_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for sent in ([], [experiment("asgd")]):
        ours, theirs = Pipe()
        for content in sent:
            ours.send(content)
        ours.close()
        serve(theirs)
    assert capfd.readouterr().err == ""


def test_without_client_processes_no_client_is_left() -> None:
    run = prepared(where := experiment("asgd"))
    transport = LocalProcesses(where, 1)
    for number, _ in enumerate(run.events(transport)):
        if number == 5:
            killed(transport.processes[0])
    transport.stop()
    assert run.simulation.state.reason == Reason.NO_CLIENT
    assert sorted(run.simulation.state.gone) == list(range(6))
    assert held_to(run).bit_for_bit


def test_a_run_that_all_clients_left_before_any_update_is_stalled() -> None:
    class Dying(Threads):
        """All processes die at their first job."""

        def send(self, message: JobMessage) -> None:
            self._received.append(LostClients([message.client]))

    run, transport = prepared(experiment("asgd")), Dying(experiment("asgd"), 2)
    list(run.events(transport))
    transport.stop()
    record = run.finish()
    assert (record.status, record.reason) == (Status.STALLED, "no client is left, and no update came")
    assert {row["updates"] for row in record.curve} == {0}
    compared = held_to(run)
    assert compared.bit_for_bit and compared.events == 6


@pytest.mark.parametrize("lr", [1e25, 1e200])
def test_a_run_that_diverges_keeps_its_rows(lr: float) -> None:
    """As in virtual time: up to a loss that is not finite, or to an update that is not, where all are."""
    run = lived(where := experiment("asgd", local_lr=lr))
    record, virtual = run.recorder.finish(), simulated(where)
    assert record.status is virtual.status is Status.DIVERGED
    assert record.curve[0] == virtual.curve[0]
    finite = [bool(np.isfinite(row["fp/loss"])) for row in record.curve]
    assert all(finite[:-1]) and finite[-1] == ("update" in record.reason), record.reason
    assert held_to(run).bit_for_bit


@pytest.mark.parametrize("name", ["fedavg", "favas"])
def test_a_killed_server_resumes_and_sends_lost_jobs_again(name: str, tmp_path: Path) -> None:
    where, path = experiment(name), tmp_path / "checkpoint"
    first, transport = prepared(where), Threads(where, 2)
    for number, _ in enumerate(first.events(transport)):
        if number == 12:
            first.save(path, "extra")
        if number == 17:
            break  # what came since is lost, too
    transport.stop()
    again = prepared(where)
    assert again.load(path) == "extra"
    in_service = again.in_service
    assert in_service and len(again.log.events[TIME]) == 13
    list(again.events(transport := Threads(where, 3)))
    transport.stop()
    record = again.finish()
    jobs = zip(*(again.log.jobs[name] for name in (Name.CLIENT, Name.JOB, Name.RESENT)), strict=True)
    assert {(client, index) for client, index, resent in jobs if resent} == set(in_service)
    assert record.status is Status.DONE and held_to(again).bit_for_bit


def test_a_server_that_is_to_stop_can_be_saved(tmp_path: Path) -> None:
    where, stop = experiment("fedbuff"), [False]
    run, transport = prepared(where, stopping=lambda: stop[0]), Threads(where, 2)
    events = run.events(transport)
    next(events)
    stop[0] = True
    with pytest.raises(StoppedError):
        list(events)
    run.save(tmp_path / "checkpoint")
    transport.stop()


def test_the_record_has_the_marks_of_the_run_in_virtual_time() -> None:
    """Evaluated after the run, at the same shares of the budget, and from the same first model."""
    live = lived(experiment("asgd"))
    record, virtual = live.recorder.finish(), simulated(experiment("asgd"))
    assert [row["updates"] for row in record.curve] == [row["updates"] for row in virtual.curve]
    assert record.curve[0] == virtual.curve[0]
    assert (
        record.clients[Name.LOSS]
        == live.simulation.world.evaluate(live.simulation.server.model).client_loss.tolist()
    )


@pytest.mark.parametrize(
    "fields",
    [{}, {"downlink": "float16", "uplink": "float16"}, {"local": {"name": "scaffold", "steps": 2}}],
    ids=["plain", "coded", "broadcasts"],
)
def test_bytes_are_those_of_virtual_time(fields: dict[str, Any]) -> None:
    """A client of ASGD gets a model whenever its update arrived: equally many in both."""
    live, virtual = lived(where := experiment("asgd", **fields)).recorder.finish(), simulated(where)
    for name in (Name.DOWNLOADS, Name.UPLOADS, BYTES):
        assert [row[name] for row in live.curve] == [row[name] for row in virtual.curve]
    size = 2 if "downlink" in fields else 8  # bytes of each of the model's two numbers
    broadcast = 2 * 8 if "local" in fields else 0
    assert virtual.curve[-1][Name.DOWNLOADS] == (6 + 80) * (2 * size + broadcast)


def test_bytes_of_jobs_that_are_sent_again_count_once(tmp_path: Path) -> None:
    """As in a replay, which knows of no server that was killed."""
    where, path = experiment("fedbuff"), tmp_path / "checkpoint"
    first, transport = prepared(where), Threads(where, 2)
    for number, _ in enumerate(first.events(transport)):
        if number == 12:
            break
    first.save(path)
    transport.stop()
    again = prepared(where)
    again.load(path)
    list(again.events(transport := Threads(where, 2)))
    transport.stop()
    sends = sum(again.simulation.state.indices)
    assert again.simulation.state.sent == {"down": 16 * sends, "up": 16 * 80}
    assert again.service.sent_again


def test_a_replay_names_the_first_difference() -> None:
    run = lived(experiment("fedbuff"))
    events, jobs = run.log.events, run.log.jobs
    run.log.events = deepcopy(events)
    run.log.events[Name.STALENESS][7] += 1
    was = events[Name.STALENESS][7]
    assert str(held_to(run)) == f"event 8: staleness {was + 1} live, {was} in the replay"
    run.log.events = events
    run.log.jobs = deepcopy(jobs)
    run.log.jobs[Name.ARRIVED][3] += 1e-3
    assert "live" in held_to(run).difference
    run.log.jobs = {name: column[:5] for name, column in jobs.items()}
    assert held_to(run).difference.endswith("none in the replay")
    run.log.jobs = jobs
    run.simulation.state.versions[run.simulation.state.version] = torch.zeros(2)
    assert str(held_to(run)).startswith(f"{len(events[TIME])} events equal, models differ")


def test_an_update_of_another_model_than_was_sent_is_an_error() -> None:
    class Damaging(Threads):
        def _receive(self, pipe: Any) -> Any:
            message = super()._receive(pipe)
            object.__setattr__(message, "received", "0" * 16)
            return message

    run, transport = prepared(where := experiment("asgd")), Damaging(experiment("asgd"), 1)
    with pytest.raises(RuntimeError, match=r"client \d did not start from the model that it was sent"):
        list(run.events(transport))
    transport.stop()
    assert where.scenario.budget.updates == 80


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"timing": {"network": {"uplink": 1}}}, "network"),
        ({"timing": {"durations": {"name": "iterations"}}}, "iterations"),
        ({"arrangement": {"name": "rounds"}}, "arrangement"),
        ({"budget": {"updates": 10, "target": 0.1}}, "target"),
    ],
)
def test_what_cannot_run_in_real_time_says_why(change: dict[str, Any], word: str) -> None:
    described = experiment("fedbuff").model_dump(mode="json")
    described["scenario"] |= change
    assert word in (refuses(Experiment.model_validate(described)) or "")
    assert refuses(experiment("fedbuff")) is None


@given(
    start=st.lists(st.floats(width=32), max_size=5),
    reported=st.dictionaries(st.text(), st.floats(allow_nan=False)),
    double=st.booleans(),
)
@settings(max_examples=15)
def test_messages_arrive_as_they_were_sent(
    start: list[float], reported: dict[str, float], double: bool
) -> None:
    vector = torch.tensor(start, dtype=torch.float64 if double else torch.float32)
    state = {"c": torch.arange(6).reshape(2, 3), "empty": torch.zeros(0), "one": torch.tensor(1.5)}
    sent = JobMessage(
        client=1, index=2, version=3, start=vector, broadcast=state, client_state={}, moments={}, steps=4,
        lr=0.1, reports=True, seconds=0.25, waits=False,
    )  # fmt: skip
    received = JobMessage.unpack(sent.pack())
    assert (
        received.start.dtype == vector.dtype and received.start.numpy().tobytes() == vector.numpy().tobytes()
    )
    assert received.broadcast.keys() == state.keys()
    assert all(torch.equal(received.broadcast[name], value) for name, value in state.items())
    assert (received.lr, received.seconds, received.waits) == (0.1, 0.25, False)
    update = UpdateMessage(
        client=1, index=2, version=3, received="", steps=4, delta=vector, gradient=vector, new_moments=state,
        reported=reported,
        finite=False, began=1.5, computed=0.1,
    )  # fmt: skip
    assert UpdateMessage.unpack(update.pack()).reported == reported


def test_a_collected_job_is_the_first_steps_of_the_whole() -> None:
    """Its steps are those of the clock, and its mini-batches the same (rule 19)."""
    where = experiment("favas", local={"name": "sgd", "steps": 4})
    world, local = where.scenario.problem.world(1), where.strategy.local
    message = JobMessage(
        client=2, index=5, version=0, start=world.initial(), broadcast={}, client_state={}, moments={},
        steps=4, lr=0.05, reports=False, seconds=2.0, waits=True,
    )  # fmt: skip
    assert [message.finished(t) for t in (0.0, 0.49, 0.5, 1.99, 2.0, 9.0)] == [0, 0, 1, 3, 4, 4]
    model = world.initial()
    for steps, sample in enumerate(world.samples(2, 5, 4, local.batch), start=1):
        model = model - 0.05 * world.gradient(model, 2, sample)
        assert torch.equal(train(message, world, local, steps).delta, model - world.initial())
