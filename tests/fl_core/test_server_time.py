"""Rule 24: a server that takes time; updates wait in order of arrival, and are applied when service ends."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from test_golden import CENTRES
from test_network import ONE
from worlds import Scripted, play, resumed_everywhere, scenario

from fl_core.execution.execution import ComputeRequest
from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.live.run import refuses
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.scenario import Scenario

HALF = {"name": "fixed", "times": ["1/2"]}
MILLION = 1_000_000


def served(where: Scenario, service: Any = HALF, **timing: Any) -> Scenario:
    """A scenario with a server that takes time."""
    data = where.model_dump()
    return Scenario.model_validate(
        {**data, "timing": {**data["timing"], "server": {"durations": service}, **timing}}
    )


def experiment(where: Scenario, strategy: Any, seed: int = 0) -> Experiment:
    return Experiment.model_validate({"scenario": where, "strategy": strategy, "seed": seed})


def arrivals(simulation: Simulation) -> list[tuple[float, int, int]]:
    """Time, client and staleness of each update."""
    unit = float(simulation.lengths.clock.unit)
    return [
        (event.time * unit, event.client, event.staleness)  # type: ignore[misc]
        for event in simulate(simulation)
        if event.kind is EventKind.ARRIVAL
    ]


# -- by hand ---------------------------------------------------------------------------------------


def test_three_clients_by_hand() -> None:
    """Jobs of 1, 2 and 3, a service of ½: who comes while another is served waits for the end of that."""
    simulation = Simulation(experiment(served(scenario([1, 2, 3], updates=6)), {"name": "asgd"}))
    assert arrivals(simulation) == [
        (1.5, 0, 0),
        (2.5, 1, 1),
        (3.0, 0, 1),  # came at 2.5
        (3.5, 2, 3),
        (4.5, 0, 1),  # sent at 3
        (5.0, 1, 3),  # came at 4.5
    ]


def test_a_client_with_another_job_does_not_wait_for_the_server() -> None:
    """Two jobs of 1 at one client, a service of 5: the second is there at 2, and served from 6 to 11."""
    strategy = Scripted(on_next=lambda server: [] if server.updates or server.in_flight else [0, 0])
    record = run(experiment(served(scenario([1], updates=2), {"name": "fixed", "times": [5]}), strategy))
    assert list(record.arrivals["time"]) == [6, 11]
    # From 1 to 2 the client computes the second; then that waits for 4, and is served for 5
    spent = {name: column for name, column in record.clients.items() if name.endswith("_time")}
    assert spent == {
        "mean_time": [1],
        "computation_time": [2],
        "server_wait_time": [4],
        "server_time": [5],
    }
    assert (record.server_busy, record.server_wait) == (pytest.approx(10 / 11), 2)


def test_behind_a_network() -> None:
    """Download 1, computation 3, upload 1, service 2, and the second client 0.5 later."""
    where = scenario([3, "7/2"], updates=2)
    network = {"downlink": ONE, "uplink": ONE}
    record = run(experiment(served(where, {"name": "fixed", "times": [2]}, network=network), Scripted()))
    assert list(record.arrivals["time"]) == [7, 9]
    assert record.clients["upload_time"] == [1, 1]
    assert record.clients["server_wait_time"] == [0, 1.5]
    assert record.clients["server_time"] == [2, 2]
    assert record.curve[-1]["uploads_bytes"] == 16


# -- invariants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ace", "fedbuff", "generalized_asyncsgd", "quafl", "rennala"])
@pytest.mark.parametrize("network", [None, {"uplink": 3 * ONE, "latency": 0.1}])
def test_lindley_recursion(name: str, network: Any) -> None:
    """An update is applied at a_k = max(r_k, a_{k−1}) + S_k, and a client's next job begins when it is free.

    r_k is when the upload ends, S_k the k-th length of the server's law (Lindley, 1952).
    """
    where = scenario(["1", "11/15", "7/15", "2"], centres=CENTRES, noise=0.2, updates=60)
    law = {"name": "exponential", "mean": 0.4}
    where = served(where, law, **({"network": network} if network else {}))
    strategy = {"name": name, "local_lr": 0.05, "local": {"name": "sgd", "steps": 2}}
    simulation = Simulation(experiment(where, strategy, seed=3))
    assert where.timing.server is not None
    services = where.timing.server.lengths(3, (simulation.lengths.clock.unit,))
    jobs, before = [], (0, -1)
    free = [0] * 4
    applied = 0
    for event in simulate(simulation):
        if event.kind is not EventKind.ARRIVAL:
            continue
        job = simulation.arrived
        assert job is not None and job.reached is not None and job.served is not None
        jobs.append(job)
        if simulation.state.services != len(jobs) + bool(simulation.state.at_server):
            assert name == "rennala"  # dismisses an update in service: services have other numbers then
            return
        assert (job.reached, job.client) > before
        before = job.reached, job.client
        assert job.served == max(job.reached, applied)
        applied = job.served + services(0, len(jobs) - 1)
        assert event.time == applied
        assert job.began == max(job.sent, free[job.client])
        free[job.client] = job.reached
        if network is None:
            assert job.reached == job.leaves
    assert len(jobs) >= 20


@pytest.mark.parametrize("name", ["fedbuff", "malenia", "quafl"])
def test_taken_up_again_and_stacked_it_is_the_same_run(name: str, tmp_path: Path) -> None:
    where = scenario([1, "3/2", 2], updates=14, availability={"name": "spells", "mean_on": 6, "mean_off": 1})
    where = served(where, {"name": "exponential", "mean": 0.7}, network={"uplink": 2 * ONE})
    strategy = {"name": name, "local_lr": 0.05, "local": {"name": "scaffold", "steps": 2}}
    whole = run(experiment(where, strategy))
    for other in (
        resumed_everywhere(experiment(where, strategy), tmp_path),
        run(experiment(where, strategy), execution=AllInFlight()),
        run(experiment(where, strategy), execution=AllInFlight(1)),  # as `auto` begins
    ):
        assert other.arrivals == whole.arrivals
        assert other.clients.keys() == whole.clients.keys()
        for row, expected in zip(other.curve, whole.curve, strict=True):
            assert row == pytest.approx(expected, rel=1e-10)
        assert (other.server_busy, other.server_wait) == (whole.server_busy, whole.server_wait)


def test_the_update_in_service_is_computed_first() -> None:
    """Then those behind it, in order of arrival, each once; jobs at clients are last."""
    where = served(scenario([1, 2, 3, 4], updates=20), {"name": "fixed", "times": [4]})
    simulation, waiting = Simulation(experiment(where, {"name": "asgd"})), 0
    for request in simulation.events():
        if not isinstance(request, ComputeRequest):
            continue
        jobs, queue = list(request.jobs()), simulation.state.at_server
        assert queue[0] is request.job and request.job.delta is None
        assert jobs[: len(queue)] == queue
        assert len({id(job) for job in jobs}) == len(jobs) == len(simulation.state.flight)
        waiting = max(waiting, len(queue))
        ScheduleOnly().execute([request])
    assert waiting == 4


# -- against queueing theory -----------------------------------------------------------------------

SPEEDS, SERVER, ROUTING = (4, 2, 1), 4, (5, 3, 2)  # μ_i, μ_s, weights of p_i
TASKS = 6
WATTS, IDLE_WATTS = (5, 3, 2), 0.5


def normalizers(loads: list[Fraction], tasks: int) -> list[Fraction]:
    """Z_0, …, Z_m by Buzen's recursion."""
    column = [Fraction(1)] + [Fraction(0)] * tasks
    for load in loads:
        column = list(accumulate(column, lambda below, z, load=load: z + load * below))  # type: ignore[misc]
    return column


def mean_numbers(loads: list[Fraction], tasks: int) -> list[Fraction]:
    z = normalizers(loads, tasks)
    return [
        sum((load**k * z[tasks - k] for k in range(1, tasks + 1)), Fraction(0)) / z[tasks] for load in loads
    ]


def test_a_closed_network_with_one_more_station() -> None:
    """Throughput, mean numbers, utilisation, watts and staleness, within 4 standard errors.

    Watts are Σ P_idle + Σ (P_i − P_idle) λ p_i/μ_i. Standard errors are those of 40 parts of a run.
    """
    p = [Fraction(weight, sum(ROUTING)) for weight in ROUTING]
    loads = [share / speed for share, speed in zip(p, SPEEDS, strict=True)] + [Fraction(1, SERVER)]
    z = normalizers(loads, TASKS)
    throughput, numbers = z[TASKS - 1] / z[TASKS], mean_numbers(loads, TASKS)
    left = mean_numbers(loads, TASKS - 1)  # after an update, the other tasks
    staleness = [left[i] / p[i] + left[-1] for i in range(3)]

    parts, updates = 40, 12_000
    law = {"name": "exponential", "times": [f"1/{speed}" for speed in SPEEDS]}
    where = served(
        scenario([1, 1, 1], updates=updates),
        {"name": "exponential", "mean": f"1/{SERVER}"},
        durations=law,
        power={"computation": {"name": "table", "table": WATTS}, "idle": IDLE_WATTS},
    )
    strategy = {"name": "generalized_asyncsgd", "concurrency": TASKS, "routing": ROUTING}
    simulation = Simulation(experiment(where, strategy))
    assert simulation.energy is not None
    of_parts, ages = [], [[], [], []]  # type: ignore[var-annotated]
    for _ in range(parts):
        began, joules = simulation.time, simulation.energy.used(simulation.state.now)
        inside = np.zeros(4)  # task time at each station
        for event in simulate(simulation, ScheduleOnly()):
            job = simulation.arrived
            assert job is not None and None not in (job.reached, event.staleness)
            ages[job.client].append(event.staleness)
            inside[job.client] += job.reached - job.sent  # type: ignore[operator]
            inside[3] += event.time - job.reached  # type: ignore[operator]
            if simulation.state.updates % (updates // parts) == 0:
                break
        length = simulation.time - began
        watts = (simulation.energy.used(simulation.state.now) - joules) / length
        of_parts.append([updates / parts / length, *(inside / MILLION / length), watts])
    mean, error = np.mean(of_parts, axis=0), np.std(of_parts, axis=0) / parts**0.5
    busy_watts = sum((w - IDLE_WATTS) * throughput * load for w, load in zip(WATTS, loads, strict=False))
    expected = np.array([float(value) for value in (throughput, *numbers, 3 * IDLE_WATTS + busy_watts)])
    assert np.all(np.abs(mean - expected) < 4 * error), (mean, expected, error)
    assert np.all(error < 0.05 * expected)
    for client, expected_age in enumerate(staleness):
        batches = np.array_split(np.array(ages[client], float), parts)
        means = np.array([batch.mean() for batch in batches])
        assert abs(means.mean() - float(expected_age)) < 4 * means.std() / parts**0.5
    busy = simulation.state.server_ticks[1] / MILLION / simulation.time
    assert busy == pytest.approx(float(throughput) / SERVER, rel=0.05)


def test_staleness_is_predicted_beside_what_was_measured() -> None:
    p = [Fraction(weight, sum(ROUTING)) for weight in ROUTING]
    loads = [share / speed for share, speed in zip(p, SPEEDS, strict=True)] + [Fraction(1, SERVER)]
    left = mean_numbers(loads, TASKS - 1)
    law = {"name": "exponential", "times": [f"1/{speed}" for speed in SPEEDS]}
    where = served(scenario([1, 1, 1]), {"name": "exponential", "mean": f"1/{SERVER}"}, durations=law)
    strategy = {"name": "generalized_asyncsgd", "concurrency": TASKS, "routing": ROUTING}
    predicted = run(experiment(where, strategy)).clients["staleness_predicted"]
    assert predicted == pytest.approx([float(left[i] / p[i] + left[-1]) for i in range(3)], rel=1e-12)
    assert "staleness_predicted" not in run(experiment(where, {"name": "asgd"})).clients


# -- what strategies do to updates at the server ---------------------------------------------------


@pytest.mark.parametrize(("client", "times"), [(0, [3, 5]), (1, [3, 5]), (2, [3, 5])])
def test_an_update_dismissed_at_the_server_is_gone_at_once(client: int, times: list[float]) -> None:
    """Three updates are there at 1; a service of 2. At 1½ one is dismissed: in service, next, or last."""

    def tick(server: Any) -> None:
        (job,) = server.jobs_of(client)
        server.dismiss(job)

    strategy = Scripted(
        on_begin=lambda server: server.wake(server.ticks(Fraction(3, 2))),
        on_tick=tick,
        on_next=lambda server: [] if server.now else [0, 1, 2],
        exact=(Fraction(1, 2),),
    )
    where = served(scenario([1, 1, 1], time=20), {"name": "fixed", "times": [2]})
    simulation = Simulation(Experiment(scenario=where, strategy=strategy))
    seen = arrivals(simulation)
    begin = 1.5 if client == 0 else 1
    others = [other for other in range(3) if other != client]
    assert [(time, who) for time, who, _ in seen] == [(begin + 2, others[0]), (begin + 4, others[1])]
    assert not simulation.state.at_server
    assert simulation.state.sent["up"] == 8 * 3  # all were received


def test_an_update_at_the_server_is_collected_no_more() -> None:
    def tick(server: Any) -> None:
        server.collect(*server.jobs_of(0))

    strategy = Scripted(
        on_begin=lambda server: server.wake(server.ticks(Fraction(3, 2))),
        on_tick=tick,
        on_next=lambda server: [] if server.now else [0],
        exact=(Fraction(1, 2),),
    )
    where = served(scenario([1], time=20), {"name": "fixed", "times": [2]})
    assert arrivals(Simulation(Experiment(scenario=where, strategy=strategy))) == [(3, 0, 0)]


def test_an_update_is_applied_though_its_client_has_left() -> None:
    """Client 1 leaves for good at 1½, with an update at the server: that comes; there is no other."""
    where = scenario([1, 1], availability={"name": "dropouts", "share": 0.5, "at": "3/2"}, updates=6)
    simulation, seen = play(Scripted(), served(where, {"name": "fixed", "times": [2]}))
    gone = next(iter(simulation.state.gone))
    assert [event.client for event in seen if event.kind is EventKind.ARRIVAL].count(gone) == 1


def test_an_update_at_the_server_keeps_a_run_going() -> None:
    strategy = Scripted(on_next=lambda server: [] if server.now else [0])
    simulation, seen = play(strategy, served(scenario([1], updates=6), {"name": "fixed", "times": [9]}))
    assert [event.time for event in seen] == [10]
    assert simulation.status == "stalled"


# -- what it does not go with ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "timing", "place"),
    [
        ({"name": "iterations"}, {}, "server"),
        ({"name": "fixed", "per_step": True}, {}, "server"),
        ({"name": "fixed", "times": [1, 2]}, {}, "server"),
        (HALF, {"durations": {"name": "iterations"}}, "timing"),
    ],
)
def test_laws_that_are_none_of_a_service(service: Any, timing: Any, place: str) -> None:
    with pytest.raises(ValidationError) as raised:
        served(scenario([1, 1]), service, **timing)
    assert any(
        place in map(str, error["loc"]) or place in str(error["ctx"]) for error in raised.value.errors()
    )


def test_in_real_time_a_server_takes_what_it_takes() -> None:
    assert refuses(experiment(served(scenario([1, 1])), {"name": "asgd"})) is not None
    assert refuses(experiment(scenario([1, 1]), {"name": "asgd"})) is None


def test_a_stationary_opening_has_no_tasks_at_the_server() -> None:
    strategy = {"name": "generalized_asyncsgd", "concurrency": 3, "opening": "stationary"}
    with pytest.raises(ValidationError):
        experiment(served(scenario([1, 1])), strategy)
