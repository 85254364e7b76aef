"""The cost of an event does not grow with the number of clients, counted in operations of Python."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from types import FrameType
from typing import Any

import numpy as np
import pytest
from torch import Tensor
from worlds import play, quick_for_one_of_each_kind, scenario

from fl_core.execution.schedule_only import ScheduleOnly
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.problems.quadratic import Quadratic
from fl_core.server.block_sums import BlockSums
from fl_core.strategies import async_fedavg, caches
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.malenia import Malenia
from fl_core.strategies.strategy import Strategy
from fl_core.streams import stream

AT_WORK = 10


def of_few_clients(name: str) -> dict[str, Any]:
    """A strategy by which few clients work at a time, as far as it lets one say so."""
    if name in ("fedavg", "fedstale"):
        return {"name": name, "sampling": {"name": "fastest", "sample": AT_WORK}}
    takes = Strategy.members()[name].model_fields["concurrency"].annotation is not type(None)
    return {"name": name, "concurrency": AT_WORK} if takes else {"name": name}


def operations(strategy: dict[str, Any], clients: int, events: int = 60, availability: Any = "always") -> int:
    """Bytecode operations of the events after the first one."""
    problem = Quadratic(centres=((0.0,),) * clients)
    timing = {"durations": "exponential", "availability": availability}
    where = {"problem": problem, "timing": timing, "budget": {"updates": 10**6}}
    experiment = Experiment.model_validate({"scenario": where, "strategy": strategy})
    stream = simulate(Simulation(experiment), ScheduleOnly())
    next(stream)
    executed = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal executed
        executed += event == "opcode"
        frame.f_trace_opcodes = "fl_core" in frame.f_code.co_filename
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        for _ in islice(stream, events):
            pass
    finally:
        sys.settrace(before)
    return executed


@pytest.mark.parametrize("name", quick_for_one_of_each_kind(Strategy.members()))
def test_an_event_costs_no_more_with_more_clients(name: str) -> None:
    """30 times the clients, at most 1.5 times the operations."""
    strategy = of_few_clients(name)
    assert operations(strategy, 3000) <= 1.5 * operations(strategy, 100)


DRAWING = [
    {"name": "fedavg", "sampling": {"name": "md", "sample": AT_WORK}},
    {"name": "fedast", "concurrency": AT_WORK},
    {"name": "favas"},
]


@pytest.mark.parametrize("strategy", DRAWING, ids=lambda strategy: strategy["name"])
def test_an_event_costs_no_more_where_many_leave_and_come_back(strategy: dict[str, Any]) -> None:
    """Among more clients each moves less often: as many as with few between two events."""
    few, many = (
        operations(strategy, n, availability={"name": "spells", "mean_on": f"{n}/20", "mean_off": f"{n}/20"})
        for n in (100, 2000)
    )
    assert many <= 1.5 * few


def test_estimated_weights_cost_no_more_with_more_clients() -> None:
    strategy = {"name": "async_fedavg", "weights": "estimated", "concurrency": AT_WORK}
    assert operations(strategy, 2000) <= 1.5 * operations(strategy, 100)


@pytest.mark.parametrize("precision", [2**256, 2**8])
def test_estimated_weights_are_those_of_exact_sums(precision: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """d_i = p_i τ_i Σ 1/τ_j over mean times so far, to the last bit, however precise the kept sum is."""
    monkeypatch.setattr(async_fedavg, "PRECISION", precision)
    where = {
        "problem": Quadratic(centres=((0.0,),) * 7, importance=(1, 2, 3, 4, 5, 6, 7)),
        "timing": {"durations": "exponential"},
        "budget": {"updates": 60},
    }
    strategy = {"name": "async_fedavg", "weights": "estimated"}
    simulation = Simulation(Experiment.model_validate({"scenario": where, "strategy": strategy}))
    spent: dict[int, list[int]] = {}
    for event in simulate(simulation):
        assert event.client is not None and event.began is not None
        spent.setdefault(event.client, []).append(event.time - event.began)
        all_spent = [ticks for of_client in spent.values() for ticks in of_client]
        times = [
            Fraction(sum(of_client), len(of_client))
            for of_client in (spent.get(i, all_spent) for i in range(7))
        ]
        factor = times[event.client] * sum(1 / time for time in times)
        exact = float(factor) * (event.client + 1) / 28
        assert simulation.server.memory.weights[event.client] == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("name", ["ace", "mifa", "ringleader"])
def test_an_event_costs_no_more_with_more_lost_clients(name: str) -> None:
    """Half of all clients leave for good while they compute their first update, which still arrives."""
    lost = {"name": "dropouts", "share": 0.5, "at": "1/1000000"}
    few, many = (operations({"name": name}, clients, availability=lost) for clients in (100, 2000))
    assert many <= 1.5 * few


def test_many_clients_are_not_averaged_anew_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """ACE's table of 1,100 rows: a step reads few of them, after the first pass as well."""
    read = 0

    def counted(table: caches.Table, clients: Iterable[int], like: Tensor) -> Tensor:
        nonlocal read
        found = rows(table, clients, like)
        read += len(found)
        return found

    rows = caches.rows
    monkeypatch.setattr(caches, "rows", counted)
    experiment = Experiment.model_validate(
        {
            "scenario": scenario([1] * 1100, updates=1120),
            "strategy": {"name": "ace", "form": "direct", "concurrency": AT_WORK},
        }
    )
    assert sum(event.stepped for event in simulate(Simulation(experiment), ScheduleOnly())) == 21
    assert read <= 21


@pytest.mark.parametrize("batch", [3, 30])
def test_malenia_sums_up_all_counts_only_near_its_condition(batch: int) -> None:
    """It steps at the first arrival after which n/Σ 1/B_i exceeds S/n, looked up at every arrival."""
    where = scenario([1, 2, 3, "7/2", 5], updates=400)
    counts = Counter[int]()
    for event in simulate(Simulation(Experiment(scenario=where, strategy=Malenia(batch=batch)))):
        assert event.client is not None
        counts[event.client] += 1
        enough = len(counts) == 5 and 5 / sum(1 / Fraction(b) for b in counts.values()) > Fraction(batch, 5)
        assert event.stepped == enough
        if enough:
            counts.clear()


@pytest.mark.parametrize("busy", [True, False])
def test_sums_that_are_kept_draw_the_same_clients(busy: bool) -> None:
    """A tuple of probabilities as an array, while clients leave, come back, work and are idle again."""
    assert kept_draws(tuple, busy) == (drawn := kept_draws(np.array, busy))
    assert len({client for clients in drawn for client in clients}) > 20


def test_a_share_close_to_a_sum_is_settled_by_the_sums_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here as if every share were too close to say."""
    monkeypatch.setattr(BlockSums, "find", lambda *_: None)
    for busy in (True, False):
        assert kept_draws(tuple, busy, move=False) == kept_draws(np.array, busy, move=False)


def kept_draws(kind: Any, busy: bool, move: bool = True) -> list[list[int]]:
    """Draws among present or idle clients, of which some leave, come back, work or stop working between."""
    simulation, _ = play(ASGD(), scenario([1] * 40, updates=1))
    server, roster = simulation.server, simulation.state.roster
    random = np.random.default_rng(2)
    drawn: list[list[int]] = []
    for turn in range(6):
        p = kind((random.random(40) * (random.random(40) < 0.7)).tolist())
        for client in range(turn, 40, 7):
            if move and roster.present[client]:
                roster.leave(client)
            elif move:
                roster.come_back(client, free=True, version=0)
            if roster.idle:
                roster.engage(roster.idle[client % len(roster.idle)])
            drawn += [server.draw(k, p, busy=busy, replace=True) for k in (1, 1, 5)]
        for client in range(40):
            if roster.present[client] and client not in roster.idle:
                roster.release(client, 0)
    return drawn


def test_clients_are_drawn_by_their_place_among_those_present() -> None:
    """As from a list of all who are present, made anew for every draw."""
    simulation, _ = play(ASGD(), scenario([1] * 40, updates=1))
    server, roster, state = simulation.server, simulation.state.roster, simulation.state
    for turn in range(60):
        if roster.present[client := turn * 7 % 40]:
            roster.leave(client)
        if turn > 20 and not roster.present[client := turn * 11 % 40]:
            roster.come_back(client, free=True, version=0)
        present, k = [i for i in range(40) if roster.present[i]], turn % 4 + 1
        rng = stream(0, "select", state.draws)
        expected = [rng.integers(len(present))] if k == 1 else rng.choice(len(present), k, replace=False)
        assert server.draw(k, busy=True) == [present[i] for i in expected]
    assert 5 < roster.absent < 30


def test_sums_of_blocks_find_what_sums_of_all_find() -> None:
    """Whole weights, so that both are exact, also after changes; none covers the whole sum or more."""
    random = np.random.default_rng(5)
    for n in (1, 2, 7, 64, 100):
        weights = random.integers(0, 4, n).astype(float)
        sums = BlockSums(weights)
        for place in range(n):
            weights[place] = sums[place] = float(random.integers(0, 4))
            upto = weights.cumsum()
            for amount in np.arange(0, upto[-1] + 1, 0.5):
                found = sums.find(amount)
                if amount >= upto[-1]:
                    assert found is None
                else:
                    assert found is not None
                    assert found.place == upto.searchsorted(amount, side="right")
                    assert (found.lower, found.upper) == (
                        upto[found.place] - weights[found.place],
                        upto[found.place],
                    )
