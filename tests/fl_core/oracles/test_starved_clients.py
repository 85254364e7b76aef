"""FedBuff and CA²FL as the code of the ACE paper draws their clients, written out from its description.

A list of idle clients in random order; the first of it works next; a client that has finished returns to the
list only if the list is empty. The random order is read off the simulation, all else is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from quadratics import CENTRES, START, TIMES, N, assert_same, experiment, local_sgd, played

from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Simulation, simulate
from fl_core.strategies.ca2fl import CA2FL
from fl_core.strategies.fedbuff import FedBuff

LR, BUFFER, UPDATES = 0.1, 2, 120


def by_the_list(order: Sequence[int], at_work: int, calibrated: bool) -> tuple[list[Any], list[np.ndarray]]:
    """Arrivals (client, version of its model), and all models: means of a buffer, or CA²FL's steps."""
    idle = list(order)
    models, buffer = [START], []
    last, mean = np.zeros_like(CENTRES), np.zeros_like(START)
    flight = [(Fraction(TIMES[client]), client, 0) for client in idle[:at_work]]
    heapify(flight)
    del idle[:at_work]
    arrivals = []
    while len(arrivals) < UPDATES:
        now, client, version = heappop(flight)
        arrivals.append((client, version))
        delta = local_sgd(client, models[version], LR, steps=1)
        buffer.append(delta - last[client] if calibrated else delta)
        last[client] = delta
        if len(buffer) == BUFFER:
            models.append(models[-1] + (mean if calibrated else 0) + sum(buffer) / BUFFER)
            mean, buffer = last.mean(0), []
        if not idle:
            idle.append(client)
        works = idle.pop(0)
        heappush(flight, (now + Fraction(TIMES[works]), works, len(models) - 1))
    return arrivals, models


@pytest.mark.parametrize("at_work", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["fedbuff", "ca2fl"])
def test_against_the_list(name: str, at_work: int) -> None:
    """The same arrivals and models; without the defect all clients go on."""
    strategy = {"name": name, "buffer": BUFFER, "concurrency": at_work, "local_lr": LR}
    strategy |= {"scaling": "none"} if name == "fedbuff" else {}
    arrivals, found = played(experiment({**strategy, "selection": "starved"}, updates=UPDATES))
    first_sent = {one.client: one.sent for one in reversed(arrivals)}
    order = sorted(range(N), key=first_sent.__getitem__)
    expected, models = by_the_list(order, at_work, calibrated=name == "ca2fl")
    assert [(one.client, one.start) for one in arrivals] == expected
    assert_same(found, models, UPDATES // BUFFER)
    unimpaired, _ = played(experiment(strategy, updates=UPDATES))
    assert {one.client for one in unimpaired[-60:]} == set(range(N))


@pytest.mark.parametrize("name", ["fedbuff", "ca2fl"])
def test_twenty_of_a_hundred_clients_train_alone_after_eight_steps(name: str) -> None:
    """n = 100, M_c = 20, M = 10, independent exponential times, as in the paper: 80 clients train once."""
    described = experiment(
        {"name": name, "selection": "starved", "local_lr": LR}, durations="exponential", updates=600
    )
    problem = {"name": "quadratic", "centres": [[float(client)] for client in range(100)]}
    described = described.model_validate(
        described.model_dump() | {"scenario": described.scenario.model_dump() | {"problem": problem}}
    )
    senders, versions = [], []
    for event in simulate(Simulation(described)):
        if event.kind is EventKind.ARRIVAL:
            senders.append(event.client)
            versions.append(event.version)
    assert len(set(senders[:80])) == 80
    assert versions[79] == 8
    assert len(set(senders[80:])) == 20
    assert set(senders) == set(range(100))


def test_one_client_at_work_ends_alone_by_hand() -> None:
    """M_c = 1, K = 1, rate 1/2, centres 8, −8, 24: θ moves half-way to each, then to the last alone."""
    where = experiment(
        {"name": "fedbuff", "buffer": 1, "concurrency": 1, "selection": "starved", "local_lr": 0.5}, updates=9
    )
    problem = {"name": "quadratic", "centres": [[8.0], [-8.0], [24.0]], "start": [0.0]}
    timing = {"durations": {"name": "fixed", "times": [1, 2, 3]}}
    where = where.model_validate(
        where.model_dump()
        | {"scenario": where.scenario.model_dump() | {"problem": problem, "timing": timing}}
    )
    arrivals, models = played_in(where)
    assert sorted(arrivals[:3]) == [0, 1, 2]
    assert set(arrivals[3:]) == {arrivals[2]}
    first, second, third = ([8.0, -8.0, 24.0][client] for client in arrivals[:3])
    by_hand = [0, first / 2, first / 4 + second / 2, first / 8 + second / 4 + third / 2]
    assert models[:4] == by_hand
    assert models[9] == third + (by_hand[3] - third) / 64


def played_in(where: Any) -> tuple[list[int | None], list[float]]:
    """Who arrives, and the first coordinate of all models."""
    simulation, arrivals = Simulation(where), []
    models = [simulation.server.model[0].item()]
    for event in simulate(simulation):
        if event.kind is EventKind.ARRIVAL:
            arrivals.append(event.client)
        if event.stepped:
            models.append(simulation.server.model[0].item())
    return arrivals, models


@pytest.mark.parametrize("kind", [FedBuff, CA2FL])
def test_the_defect_is_announced_and_needs_clients_to_starve(kind: type[FedBuff | CA2FL]) -> None:
    """A remark before the run; no arrangement beside it, and no starving where all clients work."""
    assert not kind().remarks()
    assert kind(selection="starved").remarks()
    assert kind(selection="starved").refuses_arrangement
    with pytest.raises(ValidationError):
        kind.model_validate({"selection": "starved", "concurrency": None})
