"""What practice runs against asynchrony, and methods of 2024, as plain loops with a clock of their own."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import uneven
from quadratics import (
    IMPORTANCE,
    START,
    TIMES,
    N,
    always_busy,
    assert_same,
    experiment,
    local_sgd,
    played,
)

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recorded_names import Status
from fl_core.recording.recorder import Record, run
from fl_core.timing.clock import MICRO

LR, STEPS = 0.1, 3  # η_l, K
SGD = {"name": "sgd", "steps": STEPS}
LENGTHS = [Fraction(time) for time in TIMES]
EXPONENTIAL = {"name": "exponential", "times": TIMES}
Length = Callable[[int, int], Fraction]  # of a client's k-th job


def stepped(described: Experiment) -> tuple[list[Fraction], np.ndarray, Length]:
    """When the server stepped, every version [versions, d], and the lengths of jobs."""
    simulation = Simulation(described)
    unit, times, models = simulation.lengths.clock.unit, [], [START]
    for event in simulate(simulation):
        if event.stepped:
            times.append(event.time * unit)
            models.append(simulation.server.model.numpy().copy())
    return times, np.array(models), lambda client, job: simulation.lengths(client, job, STEPS) * unit


# -- Delayed Nesterov, DyLU ----------------------------------------------------------------------------


@pytest.mark.parametrize("buffer", [1, 3, 4])
def test_delayed_nesterov(buffer: int) -> None:
    """θ ← θ − ε g/N, and at every N-th arrival, after m ← β m + Δ/N, also θ ← θ − ε β m."""
    strategy = {"name": "delayed_nesterov", "buffer": buffer, "local_lr": LR, "server_lr": 0.7, "local": SGD}
    expected, m, arrived = [START], np.zeros(2), []
    for version, (client, start) in enumerate(always_busy(60)):
        g = -local_sgd(client, expected[start], LR, STEPS)
        arrived.append(g)
        step = g / buffer
        if (version + 1) % buffer == 0:
            m = 0.9 * m + np.mean(arrived[-buffer:], axis=0)
            step = step + 0.9 * m
        expected.append(expected[-1] - 0.7 * step)
    assert_same(played(experiment(strategy, updates=60))[1], expected, 61)


def test_delayed_nesterov_of_one_arrival_is_nesterov() -> None:
    """N = 1: torch's SGD with Nesterov momentum on the arrivals, in their order."""
    strategy = {"name": "delayed_nesterov", "buffer": 1, "momentum": 0.5, "local_lr": LR}
    arrivals, found = played(experiment(strategy, updates=60))
    theta = torch.tensor(START, requires_grad=True)
    optimiser = torch.optim.SGD([theta], lr=0.7, momentum=0.5, nesterov=True)
    expected = [START]
    for seen in arrivals:
        theta.grad = -torch.tensor(seen.delta)
        optimiser.step()
        expected.append(theta.detach().numpy().copy())
    assert_same(found, expected, 61)


def test_dylu_counts_steps_by_speed() -> None:
    """K_i = ⌊K v_i / max v⌋, at least one; a job takes K_i times as long as a step."""
    steps = [6, 2, 1, 1, 3]  # 6 / 1, 2.1, 3.7, 7.9, 5/3
    strategy = {"name": "delayed_nesterov", "dylu": True, "momentum": 0, "buffer": 1, "server_lr": 0.7}
    strategy |= {"local_lr": LR, "local": {"name": "sgd", "steps": 6}}
    heap = [(LENGTHS[client] * steps[client], client, 0) for client in range(N)]
    heapify(heap)
    expected, order = [START], []
    for version in range(60):
        now, client, start = heappop(heap)
        order.append((client, steps[client]))
        expected.append(expected[-1] + 0.7 * local_sgd(client, expected[start], LR, steps[client]))
        heappush(heap, (now + LENGTHS[client] * steps[client], client, version + 1))
    durations = {"name": "fixed", "times": TIMES, "per_step": True}
    arrivals, found = played(experiment(strategy, updates=60, durations=durations))
    assert [(seen.client, seen.steps) for seen in arrivals] == order
    assert_same(found, expected, 61)
    with pytest.raises(ValueError, match="dylu: "):
        experiment(strategy, updates=60)


# -- MindFlayer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("allotted", ["1/3", "1", "5/2"])
def test_mindflayer(allotted: str) -> None:
    """x ← x + η_g ΣΔ/B over trials that end within t_i; a round ends with the last trial of any client."""
    strategy = {"name": "mindflayer", "trials": 6, "allotted": allotted, "local_lr": LR, "local": SGD}
    times, found, length = stepped(experiment(strategy, durations=EXPONENTIAL, iterations=60, time=10**6))
    limits = [ceil(Fraction(allotted) * time * 10**6) * MICRO for time in LENGTHS]
    trials = [0] * N
    for _, client in sorted((k * LENGTHS[i], i) for i in range(N) for k in range(1, 7))[:6]:
        trials[client] += 1
    assert trials == [3, 1, 0, 0, 2]
    now, expected, ends, jobs, gradients = Fraction(0), [START], [], [0] * N, 0
    for rounds in range(1, 61):
        total, spent = np.zeros(2), [Fraction(0)] * N
        for client in range(N):
            for _ in range(trials[client]):
                took = length(client, jobs[client])
                jobs[client] += 1
                spent[client] += min(took, limits[client])
                if took <= limits[client]:
                    total += local_sgd(client, expected[-1], LR, STEPS)
                    gradients += 1
        now += max(spent)
        ends.append(now)
        expected.append(expected[-1] + (total * rounds / gradients if gradients else 0))
    assert times == ends
    assert_same(found, expected, 61)
    assert 60 < gradients < 360


CLOCKS: dict[str, dict[str, Any]] = {  # of whole units, of sevenths, of millionths
    "whole": {},
    "sevenths": {"availability": {"name": "dropouts", "share": 0, "at": "1/7"}},
    "millionths": {"network": {"latency": 0}},
}


def trials_on(clock: str, durations: dict[str, Any], clients: int, **strategy: Any) -> Record:
    """Run MindFlayer on a clock of a given unit, for 60 units of time."""
    problem = {"name": "quadratic", "centres": [[float(client)] for client in range(clients)]}
    timing = {"durations": durations, **CLOCKS[clock]}
    scenario = {"problem": problem, "timing": timing, "budget": {"time": 60, "updates": 1000}}
    return run(
        Experiment.model_validate(
            {"scenario": scenario, "strategy": {"name": "mindflayer", "local_lr": LR, **strategy}}
        )
    )


@pytest.mark.parametrize("clock", CLOCKS)
def test_mindflayer_deals_out_trials_by_exact_times(clock: str) -> None:
    """t = 3/2 τ = (1.5, 3): the five trials that end first are B = (4, 1); t = (2, 3) gives (3, 2)."""
    record = trials_on(clock, {"name": "fixed", "times": [1, 2]}, 2, trials=5, allotted="3/2")
    assert np.bincount(record.arrivals["client"]).tolist() == [60, 15]
    assert record.curve[-1]["iteration"] == 15


@pytest.mark.parametrize("clock", CLOCKS)
def test_mindflayer_abandons_a_trial_at_the_exact_time(clock: str, tmp_path: Path) -> None:
    """Jobs of 1 and 4 in turn, t = 5/4: each second trial is abandoned, 9/4 after the last that was not."""
    trace = tmp_path / "trace.csv"
    trace.write_text("0,1\n0,4\n")
    durations = {"name": "trace", "path": str(trace)}
    record = trials_on(clock, durations, 1, trials=1, allotted="1/2")
    assert list(record.arrivals["time"]) == [1 + 2.25 * k for k in range(27)]
    assert record.curve[-1]["iteration"] == 2 * 27 - 1


# -- FedStale ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0, 0.3, 1])
def test_fedstale(beta: float) -> None:
    """θ ← θ + η_g [Σ_S d_i (Δ_i − β h_i) + β Σ p_i h_i], then h_i ← Δ_i, for two of five clients a round."""
    uniform = {"name": "uniform", "sample": 2}
    run = uneven.simulated("fedstale", beta=beta, sampling=uniform)
    p, h, expected = uneven.IMPORTANCE, np.zeros((uneven.CLIENTS, 2)), [uneven.FIRST]
    for clients in run.rounds:
        delta = {i: uneven.delta(expected[-1], i) for i in clients}
        step = sum(uneven.CLIENTS / 2 * p[i] * (delta[i] - beta * h[i]) for i in clients) + beta * p @ h
        expected.append(expected[-1] + uneven.SERVER_LR * step)
        for i in clients:
            h[i] = delta[i]
    uneven.assert_same(run, expected, 190)
    if not beta:
        uneven.assert_same(run, uneven.simulated("fedavg", sampling=uniform).versions, 190)


def test_fedstale_of_all_stale_updates_is_fedvarp() -> None:
    """Of equal clients: v = (1/|S|) Σ_S (Δ_i − y_i) + (1/N) Σ y_j (Jhunjhunwala et al., UAI 2022)."""
    rates = {"local_lr": LR, "local": SGD, "sampling": {"name": "uniform", "sample": 2}}
    described = experiment({"name": "fedstale", "beta": 1, **rates}, updates=100).description()
    described["scenario"]["problem"]["importance"] = "equal"
    arrivals, found = played(Experiment.model_validate(described))
    y, expected = np.zeros((N, 2)), [START]
    for first, second in zip(arrivals[::2], arrivals[1::2], strict=True):
        pair = [first.client, second.client]
        delta = np.array([local_sgd(i, expected[-1], LR, STEPS) for i in pair])
        expected.append(expected[-1] + (delta - y[pair]).mean(0) + y.mean(0))
        y[pair] = delta
    assert_same(found, expected, 51)


# -- FedAvg as deployed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "lasts", "clients"),
    [
        ({"take": 3}, "2.1", [0, 1, 4]),
        ({"take": 1}, "1", [0]),
        ({"deadline": 2}, "2", [0, 4]),
        ({"deadline": "2.1"}, "2.1", [0, 1, 4]),  # who is done at the deadline is in time
        ({"deadline": 2, "take": 1}, "1", [0]),
        ({"deadline": 9}, "7.9", [0, 1, 2, 3, 4]),
    ],
    ids=str,
)
def test_rounds_that_end_early(fields: dict[str, Any], lasts: str, clients: list[int]) -> None:
    """By hand: clients 0, 4, 1, 2, 3 need 1, 5/3, 2.1, 3.7 and 7.9; all begin a round together."""
    strategy = {"name": "fedavg", "local_lr": LR, "server_lr": 0.8, "local": SGD, **fields}
    times, found, _ = stepped(experiment(strategy, iterations=20, time=999))
    assert times == [Fraction(lasts) * (n + 1) for n in range(20)]
    expected = [START]
    share = IMPORTANCE[clients].sum()
    for _ in range(20):
        step = sum(IMPORTANCE[i] / share * local_sgd(i, expected[-1], LR, STEPS) for i in clients)
        expected.append(expected[-1] + 0.8 * step)
    assert_same(found, expected, 21)


@pytest.mark.parametrize(("take", "deadline"), [(2, None), (None, "1/4"), (3, "3/2")])
def test_rounds_of_random_lengths(take: int | None, deadline: str | None) -> None:
    """The first m within the deadline; a round without an answer is abandoned, and none goes on for long."""
    strategy = {"name": "fedavg", "local_lr": LR, "local": SGD, "take": take, "deadline": deadline}
    times, found, length = stepped(experiment(strategy, durations=EXPONENTIAL, time=60))
    now, number, expected, ends = Fraction(0), 0, [START], []
    while now <= 60:
        took = sorted((length(client, number), client) for client in range(N))
        took = [(t, client) for t, client in took if deadline is None or t <= Fraction(deadline)][:take]
        now += took[-1][0] if len(took) == (take or N) else Fraction(deadline or 0)
        number += 1
        if took:
            share = sum(IMPORTANCE[client] for _, client in took)
            step = sum(IMPORTANCE[i] / share * local_sgd(i, expected[-1], LR, STEPS) for _, i in took)
            expected.append(expected[-1] + step)
            ends.append(now)
    assert times == ends[: len(times)] and len(ends) - len(times) <= 1
    assert_same(found, expected[: len(found)], 20)
    assert (number > len(ends) + 5) == (deadline == "1/4")


def test_over_selection() -> None:
    """Four are asked, the first two are averaged, and all are free for the next round."""
    sampling = {"name": "uniform", "sample": 4}
    strategy = {"name": "fedavg", "local_lr": LR, "sampling": sampling, "take": 2}
    simulation, rounds = Simulation(experiment(strategy, updates=80)), []
    for event in simulate(simulation):
        asked = sorted(job.client for job in simulation.server.jobs)
        if event.stepped:
            rounds.append((asked, []))
        if rounds and not event.stepped:
            rounds[-1][1].append(event.client)
    for asked, first in rounds[:-1]:
        assert len(asked) == 4
        assert first == sorted(asked, key=lambda client: LENGTHS[client])[:1]
    assert len({tuple(asked) for asked, _ in rounds}) == 5


def test_deadlines_that_nobody_can_meet_are_refused() -> None:
    """Rounds without an end, and trials without success."""
    with pytest.raises(ValueError, match="deadline: "):
        experiment({"name": "fedavg", "deadline": "0.9"}, updates=9)
    with pytest.raises(ValueError, match="allotted: "):
        experiment({"name": "mindflayer", "allotted": "0.9"}, updates=9)


@pytest.mark.parametrize(
    "strategy", [{"name": "fedavg", "deadline": "1/4"}, {"name": "mindflayer", "allotted": "1/4"}]
)
def test_deadlines_that_random_lengths_never_meet_end_the_run(strategy: dict[str, Any]) -> None:
    """Half of a job's length is certain: nobody is ever done, and nothing but updates is asked for."""
    simulation = Simulation(experiment(strategy, durations={"name": "shifted_exponential"}, updates=9))
    assert not any(event.kind is EventKind.ARRIVAL for event in simulate(simulation, ScheduleOnly()))
    assert (simulation.status, simulation.reason[:22]) == (Status.STALLED, "no job ends in time: 5")
