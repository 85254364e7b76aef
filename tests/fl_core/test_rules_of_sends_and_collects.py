"""Rules 18 and 19 of the loop: starts that are no version of the server's, work collected before its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from worlds import Scripted, events, play, scenario

from fl_core.diagnostics.error_terms import ErrorTerms
from fl_core.diagnostics.staleness import predicted
from fl_core.execution.one_by_one import OneByOne, work
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local_work import SGD, LocalWork, Scaffold
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Event, Simulation, simulate
from fl_core.loop.stopping import NOTHING_COMES
from fl_core.recorded_names import Status
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder
from fl_core.server.jobs import Job, Send, Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy

# -- 18: starts ------------------------------------------------------------------------------------


def test_18_a_start_is_pinned_as_it_was_sent() -> None:
    """The strategy goes on writing into its tensor; a queued job, too, starts from what it held when sent."""
    table = torch.zeros(1, 1, dtype=torch.float64)
    got: list[tuple[float, float, int, int]] = []

    def receive(server: Server, update: Update) -> None:
        # One step on (θ − 0)²/2: Δ = −.1 θ_start.
        got.append((update.start.item(), update.delta.item(), update.version, update.staleness))
        torch.testing.assert_close(update.model, 0.9 * update.start)
        server.step()

    def following(server: Server) -> Iterator[Send | int]:
        if server.updates == 0:
            for value in (3, 5):
                table[0] = value
                yield Send(0, start=table[0])
            yield 0

    where = scenario([1], centres=[[0.0]], updates=3)
    play(Scripted(on_receive=receive, on_next=following), where)
    table[0] = 7
    assert got == [(3, pytest.approx(-0.3), 0, 0), (5, pytest.approx(-0.5), 0, 1), (0, 0, 0, 2)]


def test_18_version_and_brief_are_the_servers() -> None:
    """Staleness counts from the version at the sending, whose broadcast travels along."""

    class Counting(LocalWork):
        def broadcast(self, server: Server) -> dict[str, torch.Tensor]:
            return {"made": torch.tensor(float(server.version))}

    got: list[tuple[int, float, int]] = []

    def receive(server: Server, update: Update) -> None:
        got.append((update.version, update.broadcast["made"].item(), update.staleness))
        server.step()

    def following(server: Server) -> list[Send]:
        return [Send(client, start=torch.ones(1, dtype=torch.float64)) for client in server.due]

    play(
        Scripted(on_receive=receive, on_next=following, local=Counting()), scenario([2, 3, 3], updates=6)
    )  # arrivals of clients 0, 1, 2, 0, 0, 1 at times 2, 3, 3, 4, 6, 6
    assert got == [(0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 1, 2), (4, 4, 0), (2, 2, 3)]


def test_18_a_start_of_another_shape_is_named() -> None:
    """One line with both shapes."""
    wrong = Scripted(on_next=lambda server: [Send(0, start=torch.zeros(2))])
    with pytest.raises(
        ValueError,
        match=r"^Scripted sends a start of shape \[2\]: ",
    ):
        play(wrong, scenario([1]))


def test_18_the_stale_model_of_the_error_terms_is_the_start() -> None:
    """C = Σ p_i ∇F_i(start_i) − ∇F(w), and A = 0 without noise, where clients have models of their own."""
    where = scenario([1, 1], centres=[[0.0], [4.0]], updates=2)
    starts = {0: 10.0, 1: -2.0}

    def receive(server: Server, update: Update) -> None:
        memory = server.memory
        memory.total = getattr(memory, "total", 0) + update.delta / 2
        if server.updates == 2:
            server.step(memory.total)

    def following(server: Server) -> list[Send]:
        return [Send(client, start=torch.full_like(server.model, starts[client])) for client in server.due]

    strategy = Scripted(on_receive=receive, on_next=following)
    simulation = Simulation(Experiment(scenario=where, strategy=strategy))
    terms = ErrorTerms(simulation)
    *_, found = [terms.see(event) for event in simulate(simulation)]
    assert found is not None
    # ∇F_0(10) = 10 and ∇F_1(−2) = −6: u = 2; ∇F(0) = (0 − 4)/2 = −2.
    assert found.update.item() == pytest.approx(2)
    assert [term.item() for term in (found.noise, found.bias, found.delay)] == [
        pytest.approx(0, abs=1e-12),
        pytest.approx(0, abs=1e-12),
        pytest.approx(4),
    ]


# -- 19: collects ----------------------------------------------------------------------------------


def collecting(at: int, steps: int = 4, **more: Any) -> tuple[Simulation, list[Event], list[Update]]:
    """Two clients, K steps that last 10 and 3; the jobs in flight at tick `at` are collected."""
    updates: list[Update] = []

    def tick(server: Server) -> None:
        for job in list(server.jobs):
            if job.began is not None:
                server.collect(job)

    fields: dict[str, Any] = {
        "on_begin": lambda server: server.wake(at),
        "on_receive": lambda server, update: updates.append(update),
        "on_tick": tick,
        "on_next": lambda server: [0, 1] if server.now == 0 else [],
        "local": SGD(steps=steps),
    }
    where = scenario([10, 3], centres=[[1.0], [2.0]], noise=0.5, updates=9)
    return *play(Scripted(**fields | more), where, seed=4), updates


@pytest.mark.parametrize(("at", "steps"), [(2, 0), (3, 1), (5, 2), (7, 2), (8, 3), (10, 4), (11, 4)])
def test_19_a_length_is_split_evenly_over_the_steps(at: int, steps: int) -> None:
    """Four steps of 2.5: finished at 2.5, 5, 7.5 and 10; the update comes when it was asked for."""
    simulation, seen, updates = collecting(at)
    found = next(update for update in updates if update.client == 0)
    assert (found.steps, found.time, found.began) == (steps, min(at, 10), 0)
    assert simulation.state.local_steps == sum(update.steps for update in updates)
    assert [event.client for event in seen if event.kind is EventKind.ARRIVAL].count(0) == 1


@pytest.mark.parametrize("at", [3, 5, 9])
def test_19_what_is_collected_is_the_first_steps_of_the_same_job(at: int) -> None:
    """The same mini-batches: equal to a job of so many steps, bit for bit; gradient is their mean."""
    simulation, _, updates = collecting(at)
    found = next(update for update in updates if update.client == 0)
    job = Job(0, 0, 0, found.start, {}, found.steps, found.lr, 0)
    work(job, simulation.world, simulation.local)
    assert job.delta is not None and job.gradient is not None
    assert torch.equal(found.delta, job.delta) and torch.equal(found.gradient, job.gradient)
    whole = Job(0, 0, 0, found.start, {}, 4, found.lr, 0)
    samples = simulation.local.samples(simulation.world, whole)
    assert torch.equal(samples[: found.steps], simulation.local.samples(simulation.world, job))


def test_19_no_finished_step_is_an_update_of_zeros_that_local_work_never_sees() -> None:
    """It counts as an update; SCAFFOLD's control variates, which divide by K, stay as they are."""
    simulation, _, updates = collecting(2, local=Scaffold(steps=4))
    first = updates[0]
    assert (first.client, first.steps, first.model.item()) == (0, 0, first.start.item())
    assert not first.delta.any() and not first.gradient.any()
    assert list(simulation.server.local.clients) == [1]  # two thirds of its four steps, cut to two
    assert simulation.server.updates == 2


def test_19_exactly_once_and_in_flight_until_it_arrives() -> None:
    """A second time is an error, and so is a job that waits in a queue; one that arrives now arrives once."""
    log: list[Any] = []

    def receive(server: Server, update: Update) -> None:
        log.append((server.now, update.client, update.steps))
        if server.now == 3 and update.client == 0:
            for job in [job for job in server.jobs if job.client == 1 and job.began is not None]:
                server.collect(job)  # it arrives at 3 in any case, with all of its steps
                with pytest.raises(RuntimeError, match="not in service, or is collected already"):
                    server.collect(job)
                assert server.in_flight == 3
            waiting = next(job for job in server.jobs if job.began is None)
            with pytest.raises(RuntimeError, match="the job is not in service"):
                server.collect(waiting)
        if server.now == 4:
            done = SimpleNamespace(client=0, began=0)
            with pytest.raises(RuntimeError, match="the job is not in service"):
                server.collect(done)  # type: ignore[arg-type]

    def following(server: Server) -> list[Send | int]:
        return [Send(0, length=3), 1, 1, 2] if server.now == 0 else []

    strategy = Scripted(on_receive=receive, on_next=following, local=SGD(steps=2))
    simulation, _ = play(strategy, scenario([3, 3, 4], updates=9))
    assert log == [(3, 0, 2), (3, 1, 2), (4, 2, 2), (6, 1, 2)]
    assert (simulation.state.serving, simulation.server.in_flight) == (0, 0)


def test_19_the_next_queued_job_begins_and_a_dismissed_one_never_arrives() -> None:
    """Service goes on where the collected job ends; a job both collected and dismissed is abandoned."""
    log: list[Any] = []

    def tick(server: Server) -> None:
        for job in [job for job in server.jobs if job.began is not None]:
            server.collect(job)
            if job.client == 1:
                server.dismiss(job)

    strategy = Scripted(
        on_begin=lambda server: server.wake(5),
        on_tick=tick,
        on_receive=lambda server, update: log.append((update.client, update.steps, update.began, server.now)),
        on_next=lambda server: [0, 0, 1] if server.now == 0 else [],
        local=SGD(steps=2),
    )
    simulation, _ = play(strategy, scenario([10, 9], updates=9))
    assert log == [(0, 1, 0, 5), (0, 2, 5, 15)]
    assert (simulation.state.serving, simulation.server.in_flight, simulation.reason) == (0, 0, NOTHING_COMES)


def test_19_a_job_that_waits_arrives_only_when_it_is_collected() -> None:
    """After K steps the client keeps its model; alone it keeps no run going; it may be dismissed."""
    log: list[Any] = []

    def tick(server: Server) -> None:
        jobs = list(server.jobs)
        if server.now == 8:
            server.dismiss(jobs[1])
            server.collect(jobs[0])
        else:
            server.wake(8)

    strategy = Scripted(
        on_begin=lambda server: server.wake(4),
        on_tick=tick,
        on_receive=lambda server, update: log.append((update.client, update.steps, server.now)),
        on_next=lambda server: [Send(i, waits=True) for i in range(3)] if server.now == 0 else [],
        local=SGD(steps=2),
    )
    simulation, seen = play(strategy, scenario([1, 1, 1], updates=9))
    assert log == [(0, 2, 8)]
    assert [(event.kind, event.time) for event in seen] == [
        (EventKind.TICK, 4),
        (EventKind.TICK, 8),
        (EventKind.ARRIVAL, 8),
    ]
    assert (simulation.status, simulation.state.serving, simulation.server.in_flight) == ("stalled", 0, 1)


def test_19_a_collected_job_may_be_dismissed_before_it_arrives() -> None:
    """Of two that waited the second is abandoned at the first one's arrival: nothing is left in service."""
    sends = iter([[Send(0, waits=True), Send(1, waits=True)]])

    def tick(server: Server) -> None:
        for job in list(server.jobs):
            server.collect(job)

    def receive(server: Server, update: Update) -> None:
        for job in list(server.jobs):
            server.dismiss(job)

    strategy = Scripted(
        on_begin=lambda server: server.wake(5),
        on_tick=tick,
        on_receive=receive,
        on_next=lambda server: next(sends, []),
    )
    simulation, seen = play(strategy, scenario([1, 1], updates=9))
    assert [event.client for event in seen if event.kind is EventKind.ARRIVAL] == [0]
    assert (simulation.state.serving, simulation.server.in_flight) == (0, 0)
    assert (simulation.status, simulation.reason) == (Status.STALLED, NOTHING_COMES)


def test_19_results_thrown_away_are_counted() -> None:
    """A job that was computed whole, in company, and is then cut is computed again and told to `auto`."""
    simulation = Simulation(
        Experiment(
            scenario=scenario([10, 2], updates=2),
            strategy=Scripted(
                on_receive=lambda server, update: [
                    server.collect(job) for job in list(server.jobs) if server.updates == 1
                ],
                on_next=lambda server: server.due if server.now == 0 else [],
                local=SGD(steps=5),
            ),
        )
    )
    wasted, execution = [], AllInFlight()
    for happened in simulation.events():
        if not isinstance(happened, Event):
            wasted.append(happened.wasted)
            execution.execute([happened])
    assert wasted == [0, 1]
    assert simulation.arrived is not None and simulation.arrived.steps == 1


def test_8_results_of_dismissed_jobs_are_counted() -> None:
    """Two were computed in company when the first arrived at 1, none when the second did at 2."""
    simulation = Simulation(
        Experiment(
            scenario=scenario([1, 9, 9], updates=4),
            strategy=Scripted(
                on_receive=lambda server, update: [
                    server.dismiss(job) for job in list(server.jobs) if server.updates < 3
                ],
                on_next=lambda server: list(server.idle),
            ),
        )
    )
    wasted, execution = [], AllInFlight()
    for happened in simulation.events():
        if not isinstance(happened, Event):
            wasted.append(happened.wasted)
            if len(wasted) == 2:
                OneByOne().execute([happened])
            else:
                execution.execute([happened])
    assert wasted == [0, 2, 0, 0]


# -- both, whatever computes them ------------------------------------------------------------------


def polled() -> Experiment:
    """Four clients of different speed, three local steps, noise, SCAFFOLD inside, some away for a while."""
    away = {"name": "dropouts", "share": 0.4, "at": 6, "back": 11}
    where = scenario(
        [1, "5/2", "7/2", 9],
        centres=[[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [3.0, 3.0]],
        noise=0.3,
        availability=away,
        updates=60,
    )
    chosen = {"name": "quafl", "local_lr": 0.1, "local": {"name": "scaffold", "steps": 3}, "period": "3/2"}
    return Experiment.model_validate({"scenario": where, "strategy": chosen, "seed": 2})


def trajectory(experiment: Experiment, execution: AllInFlight) -> tuple[list[Event], torch.Tensor]:
    simulation, models = Simulation(experiment), []
    seen = []
    for event in simulate(simulation, execution):
        seen.append(event)
        models.append(simulation.server.model)
    return seen, torch.stack(models)


def test_a_checkpoint_between_a_poll_and_its_answers(tmp_path: Path) -> None:
    """The jobs are cut and on their way, one of them computed before: taken up bit for bit."""
    experiment = polled()
    plain, models = trajectory(experiment, AllInFlight())
    ticks = [place for place, event in enumerate(plain) if event.kind is EventKind.TICK]
    for stop in ticks[1:9:3]:
        recorder = Recorder(Simulation(experiment))
        recorder.start()
        for number, event in enumerate(simulate(recorder.simulation, AllInFlight())):
            recorder.see(event)
            if number == stop:
                break
        assert any(job.ends == recorder.simulation.server.now for job in recorder.simulation.server.jobs)
        checkpoint.save(recorder, tmp_path / "run.pt")
        recorder = Recorder(Simulation(experiment))
        checkpoint.load(recorder, tmp_path / "run.pt")
        assert events(recorder.simulation) == plain[stop + 1 :]
        assert torch.equal(recorder.simulation.server.model, models[-1])


def test_no_staleness_is_predicted_for_clients_that_are_polled() -> None:
    """All are busy and every arrival is a step, as with one job each; but jobs end at polls."""
    strategy = Strategy.model_validate({"name": "favas", "sample": 1})
    simulation, _ = play(strategy, scenario([1, 2, 3], updates=40))
    assert simulation.server.in_flight == simulation.server.n
    assert simulation.server.version == simulation.server.updates
    assert predicted(simulation) is None
