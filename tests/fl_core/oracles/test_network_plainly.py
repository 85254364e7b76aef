"""Runs over random links, held event by event to a plain simulation of their queues.

Lengths, periods and the transfers of a client that is alone are eighths of the same time, so that many things
happen at one tick. The tick is so short that no transfer ends halfway between two of them.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from plain_network import PlainJob, PlainNetwork, Rate

from fl_core.experiment import Experiment
from fl_core.loop.dispatch import Dispatch
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Event, Simulation, simulate
from fl_core.recorded_names import Name
from fl_core.recording.recorder import Recorder
from fl_core.server.jobs import Job, Send
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy

N, MODEL = 4, 16  # clients, bytes of a model
UNIT = 1_000_000  # ticks in a unit of virtual time
EIGHTH = Fraction(2)  # units of virtual time
TIME = 48 * EIGHTH
MORE = [  # beside the defaults: rounds that end early, trials of a limited time
    {"name": "fedavg", "take": 2},
    {"name": "fedavg", "deadline": 18 * EIGHTH},
    {"name": "fedfix", "growth": "1/8"},
    {"name": "mindflayer", "trials": 3, "allotted": "3/2"},
]
STRATEGIES = [{"name": name} for name in Strategy.members()] + MORE
RUNS = [
    pytest.param(
        strategy, seed, marks=pytest.mark.slow if seed else (), id=f"{strategy['name']}-{place}-{seed}"
    )
    for place, strategy in enumerate(STRATEGIES)
    for seed in range(12)
]


def eighths(rng: Random, most: int) -> Fraction:
    return rng.randint(1, most) * EIGHTH


def drawn_strategy(strategy: dict[str, Any], rng: Random) -> dict[str, Any]:
    """A strategy with periods, buffers and samples of any size, with or without a broadcast."""
    drawn: dict[str, Any] = {
        "period": eighths(rng, 16),
        "buffer": rng.randint(1, 3),
        "sample": rng.randint(1, 3),
    }
    fields = Strategy.members()[strategy["name"]].model_fields
    fitting = {name: value for name, value in drawn.items() if name in fields and rng.random() < 0.7}
    local = {"name": rng.choice(["sgd", "scaffold"]), "steps": rng.choice([1, 2, 4])}
    return {**fitting, **strategy, "local_lr": 0.05, "local": local}


def drawn_rates(rng: Random) -> dict[str, list[Rate]]:
    """Bytes a unit of virtual time, by direction; None where a direction has no limit."""
    return {
        way: [None] * N if rng.random() < 0.2 else [MODEL / eighths(rng, 8) for _ in range(N)]
        for way in ("down", "up")
    }


def mbit(rate: Fraction) -> str:
    return str(rate * 8 / 1_000_000)


def described(strategy: dict[str, Any], seed: int) -> tuple[Experiment, PlainNetwork]:
    """A random experiment, and the links of its network."""
    rng = Random(f"{strategy} {seed}")
    rates, latency = drawn_rates(rng), rng.choice([Fraction(0), EIGHTH])
    capacity: dict[str, Rate] = {
        way: MODEL / eighths(rng, 6) if rng.random() < 0.6 else None for way in ("down", "up")
    }
    cells = rng.choice([1, 1, 2])
    network: dict[str, Any] = {"latency": latency, "shared": {"cells": cells}}
    for way in ("down", "up"):
        if None not in rates[way]:
            network[f"{way}link"] = {"name": "table", "table": [mbit(rate) for rate in rates[way] if rate]}
        if (shared := capacity[way]) is not None:
            network["shared"][f"{way}link"] = mbit(shared)
    timing: dict[str, Any] = {
        "durations": {"name": "fixed", "times": [str(eighths(rng, 12)) for _ in range(N)]},
        "network": network,
    }
    if rng.random() < 0.4:
        leaves = eighths(rng, 16) + EIGHTH / 2
        timing["availability"] = {"name": "dropouts", "share": 0.5, "at": leaves, "back": leaves + 8 * EIGHTH}
    scenario = {
        "problem": {"name": "quadratic", "centres": [[float(i), float(-i)] for i in range(N)]},
        "timing": timing,
        "budget": {"time": TIME},
        "evaluations": 23,
    }
    experiment = Experiment.model_validate(
        {"scenario": scenario, "strategy": drawn_strategy(strategy, rng), "seed": seed}
    )
    a_tick = {way: [None if rate is None else rate / UNIT for rate in rates[way]] for way in ("down", "up")}
    shared_a_tick = {way: None if rate is None else rate / UNIT for way, rate in capacity.items()}
    return experiment, PlainNetwork(a_tick, shared_a_tick, cells, [int(latency * UNIT)] * N)


class Decisions:
    """What a strategy asks for at an event, carried over to the plain network."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, simulation: Simulation) -> None:
        self.dismissed: list[Job] = []
        self.collected: list[Job] = []
        self.sent: list[PlainJob] = []
        self.simulation = simulation
        dismiss, collect, send = Server.dismiss, Server.collect, Dispatch.send
        local = simulation.local.name
        down = 2 * MODEL if local == "scaffold" else MODEL  # the control variate goes with the model
        ticks = [int(time * simulation.lengths.clock.ticks(Fraction(1))) for time in simulation.lengths.means]

        def dismissing(server: Server, job: Job) -> None:
            dismiss(server, job)
            self.dismissed.append(job)

        def collecting(server: Server, job: Job) -> None:
            collect(server, job)
            self.collected.append(job)

        def sending(dispatch: Dispatch, wanted: int | Send) -> None:
            send(dispatch, wanted)
            client = wanted if isinstance(wanted, int) else wanted.client
            job = dispatch.state.flight[client][-1]
            self.sent.append(
                PlainJob(
                    job.client, job.index, job.steps, ticks[job.client], job.waits, down, MODEL, job.sent
                )
            )

        monkeypatch.setattr(Server, "dismiss", dismissing)
        monkeypatch.setattr(Server, "collect", collecting)
        monkeypatch.setattr(Dispatch, "send", sending)

    def send_opening(self, network: PlainNetwork) -> None:
        """Send the jobs of the run's start, which comes before the first event."""
        for plain in [plain for plain in self.sent if plain.sent == 0]:
            network.send(plain)
            self.sent.remove(plain)

    def carry_out(self, network: PlainNetwork) -> None:
        """Do to the plain network what was asked for since the last event."""
        for job in self.dismissed:
            network.dismiss(job.client, job.index)
        for job in self.collected:
            if job not in self.dismissed:
                network.collect(job.client)
        for plain in self.sent:
            network.send(plain)
        for asked in (self.dismissed, self.collected, self.sent):
            asked.clear()


def follow(network: PlainNetwork, event: Event, steps: int) -> None:
    """Let the plain network come to an event, which must be the next one there, too."""
    network.advance(event.time)
    if event.kind is EventKind.ARRIVAL:
        assert network.arrivals()[:1] == [event.client]
        job = network.arrive(event.client)
        assert (job.began, job.steps) == (event.began, steps)
    else:
        assert not network.arrivals()  # which come first at a tick
    if event.kind is EventKind.PRESENCE and event.client is not None:
        network.away.discard(event.client)
        network.begin(event.client)


@pytest.mark.parametrize(("strategy", "seed"), RUNS)
def test_every_phase_ends_when_the_rules_say(
    strategy: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every arrival with its tick and steps, the bytes at all marks and the time of each phase."""
    experiment, network = described(strategy, seed)
    recorder = Recorder(simulation := Simulation(experiment))
    assert simulation.lengths.clock.unit == Fraction(1, UNIT)
    decisions = Decisions(monkeypatch, simulation)
    law = experiment.scenario.timing.availability
    leaving = {client: leaves for client in range(N) for leaves, _ in law.absences(client, N, seed)}
    recorder.start()
    for event in simulate(simulation):
        decisions.send_opening(network)
        for client, leaves in list(leaving.items()):
            if leaves * UNIT < event.time:
                network.advance(int(leaves * UNIT))
                network.away.add(client)
                del leaving[client]
        arrived = simulation.arrived
        follow(network, event, arrived.steps if arrived else 0)
        decisions.carry_out(network)
        recorder.see(event)
    decisions.send_opening(network)  # of a run without any event
    record = recorder.finish()
    end = int(min(TIME, record.curve[-1]["time"]) * UNIT)
    network.advance(end)
    for row in record.curve[1:]:
        bytes_by_then = network.totals(round(row["time"] * UNIT))
        assert (row[Name.DOWNLOADS], row[Name.UPLOADS]) == bytes_by_then, row["time"]
    assert simulation.service.spent(end) == network.all_spent()
