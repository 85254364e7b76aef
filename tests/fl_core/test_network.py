"""Rule 22: a job is download, computation and upload, over links of clients and links that they share.

A model of these tests is one number, 8 bytes; a link of `ONE` Mbit/s carries one in a unit of virtual time.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats
from test_golden import CENTRES
from worlds import Scripted, events, play, resumed_everywhere, scenario

from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local_work import SGD, Scaffold
from fl_core.loop.events import EventKind
from fl_core.loop.simulation import Event, Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.scenario import Scenario
from fl_core.server.jobs import Job
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy
from fl_core.timing.characteristics import Links as LinksOfAPopulation
from fl_core.timing.network import Network, PerClient, Way

ONE = Fraction(64, 1_000_000)


def linked(where: Scenario, unit: Any = 1, **network: Any) -> Scenario:
    """A scenario with a network."""
    data = where.model_dump()
    return Scenario.model_validate({**data, "timing": {**data["timing"], "network": network, "unit": unit}})


def times(seen: list[Event], kind: EventKind = EventKind.ARRIVAL) -> list[tuple[int, float]]:
    """Client and time of each event of a kind."""
    return [(event.client or 0, event.time / 1_000_000) for event in seen if event.kind is kind]


def trail(where: Scenario, strategy: Any) -> list[Any]:
    """What happened, in virtual time, and the models."""
    simulation = Simulation(Experiment.model_validate({"scenario": where, "strategy": strategy, "seed": 5}))
    ticks = 1 / simulation.lengths.clock.unit
    return [
        (event.kind, event.time / ticks, event.client, event.staleness, simulation.server.model.tolist())
        for event in simulate(simulation)
    ]


# -- limits that must not matter -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "budget", "times"),
    [
        ("fedavg", {"time": 30}, [1, 2, 3, 5]),  # a clock of whole units, here of millionths
        ("fedbuff", {"time": 20}, ["1/3", "2/7", 1, "5/6"]),
        ("quafl", {"updates": 999, "bytes": 1000}, [1, 2, 3, 5]),
        ("malenia", {"updates": 40}, [2, 2, 1, 1]),
    ],
    ids=["time", "fractions", "bytes", "ties"],
)
def test_a_network_that_takes_no_time_changes_no_result(name: str, budget: Any, times: list[Any]) -> None:
    """Status, curve with all its clocks, arrivals and what is known of clients, bit for bit.

    The surrogate's metrics (sp/*) are left out: how often a client takes part has no formula with a network.
    """
    where = scenario(times, centres=CENTRES, noise=0.2, evaluations=13, **budget)
    strategy = {"name": name, "local_lr": 0.05, "local": {"name": "scaffold", "steps": 2}}
    experiment = Experiment.model_validate({"scenario": where, "strategy": strategy, "seed": 7})
    record = run(experiment)
    linked_one = run(experiment.model_copy(update={"scenario": linked(where, latency=0)}))
    assert len(record.curve) > 2
    assert (linked_one.status, linked_one.reason) == (record.status, record.reason)
    plain, linked_curve = (
        [{key: value for key, value in row.items() if not key.startswith("sp/")} for row in one.curve]
        for one in (record, linked_one)
    )
    assert linked_curve == plain
    assert linked_one.arrivals == record.arrivals
    assert {column: linked_one.clients[column] for column in record.clients} == record.clients


def test_without_a_network_a_description_is_as_before() -> None:
    """No new key in the identity, and so the same key."""
    assert scenario().timing.identity().keys() == {"durations", "availability"}


# -- how long a job takes --------------------------------------------------------------------------


def test_one_client_on_a_constant_link() -> None:
    """A job of 3 takes 2 down, 5 up, and half a second's latency twice."""
    where = linked(scenario([3], updates=4), downlink=ONE / 2, uplink=ONE / 5, latency=0.5)
    simulation, seen = play(Scripted(), where)
    assert times(seen) == [(0, 11.0 * k) for k in range(1, 5)]
    assert simulation.server.mean_time == (Fraction(11),)
    assert simulation.state.sent == {"down": 32, "up": 32}
    assert simulation.state.spent == [[10_000_000], [12_000_000], [22_000_000]]


def test_a_message_of_the_given_size() -> None:
    """A model of 40 bytes takes 5 units over a link that carries 8 bytes a unit; an update likewise."""
    where = linked(scenario([3], updates=4), downlink=ONE, uplink=ONE / 2, message=40)
    simulation, seen = play(Scripted(), where)
    assert times(seen) == [(0, 18.0 * k) for k in range(1, 5)]
    assert simulation.state.sent == {"down": 160, "up": 160}


@pytest.mark.parametrize("name", ["fedbuff", "quafl"])
def test_larger_messages_over_faster_links_change_bytes_alone(name: str) -> None:
    """Messages nine times as large over links nine times as fast: the same trail, nine times the bytes."""
    where = scenario(["1", "2", "3", "2"], centres=CENTRES, updates=24)
    strategy = {"name": name, "local_lr": 0.05, "uplink": {"name": "top_k", "share": 0.5}}
    if name == "quafl":
        strategy.pop("uplink")
    plain = linked(where, downlink=ONE, uplink=ONE / 2)
    larger = linked(where, downlink=9 * ONE, uplink=9 * ONE / 2, message="144 B")
    assert trail(larger, strategy) == trail(plain, strategy)
    sent = [
        run(Experiment.model_validate({"scenario": one, "strategy": strategy, "seed": 5})).curve[-1]
        for one in (plain, larger)
    ]
    assert [row["uploads_bytes"] for row in sent] == [sent[0]["uploads_bytes"] * factor for factor in (1, 9)]


@pytest.mark.parametrize(
    ("written", "bytes_"), [("40 MB", 40_000_000), ("1.5kB", 1500), ("2 MiB", 2**21), (7, 7), ("12", 12)]
)
def test_sizes_are_read_with_units(written: Any, bytes_: int) -> None:
    assert Network(message=written).message == bytes_


@pytest.mark.parametrize("written", ["40 Mbit", "", "-1 MB", 0, True, "0.5 B", 2.5])
def test_what_is_no_size_is_refused(written: Any) -> None:
    with pytest.raises(ValidationError):
        Network(message=written)


def test_a_unit_of_virtual_time_may_be_a_minute() -> None:
    """A model a minute is a model a unit."""
    where = linked(scenario([3], updates=1), unit=60, uplink=ONE / 60)
    assert times(play(Scripted(), where)[1]) == [(0, 4.0)]


def test_a_broadcast_takes_its_time() -> None:
    """SCAFFOLD sends c along: two numbers down and one up; `mean_time` knows before the strategy begins."""
    known: list[Any] = []
    strategy = Scripted(local=Scaffold(), on_begin=lambda server: known.append(server.mean_time))
    simulation, seen = play(strategy, linked(scenario([3], updates=2), downlink=ONE, uplink=ONE))
    assert times(seen) == [(0, 6.0), (0, 12.0)]
    assert known == [(6,)] and simulation.state.sent == {"down": 32, "up": 16}


def test_a_coded_update_takes_the_time_of_its_bytes() -> None:
    """A number in 2 bytes in place of 8."""
    strategy = Strategy.model_validate({"name": "asgd", "uplink": "float16"})
    simulation, seen = play(strategy, linked(scenario([3], updates=1), downlink=ONE, uplink=ONE))
    assert times(seen) == [(0, 4.25)]
    assert simulation.state.sent["up"] == 2


@pytest.mark.parametrize("clients", [1, 4])
def test_k_clients_at_a_time_share_the_servers_link(clients: int) -> None:
    """A round of k takes k models down, the computation, k models up; arrivals in the order of clients."""
    where = linked(scenario([3] * clients, updates=clients), shared={"downlink": ONE, "uplink": ONE})
    seen = play(Scripted(), where)[1]
    assert times(seen) == [(client, 3.0 + 2 * clients) for client in range(clients)]


def test_an_upload_in_progress_is_slowed_by_another_and_regains_its_rate() -> None:
    """Client 0 uploads alone from 3 to 3.5, then shares until client 1's upload... ends as the queue says."""
    # Client 0: half at 3.5; both at half rate: client 0 ends at 4.5, client 1 (half left) at 5.
    where = linked(scenario(["3", "3.5"], updates=2), shared={"uplink": ONE})
    strategy = Scripted(on_next=lambda server: [0, 1] if server.now == 0 else [])
    assert times(play(strategy, where)[1]) == [(0, 4.5), (1, 5.0)]


def test_phones_have_the_links_of_one_of_those_measured() -> None:
    """Pairs of down and up stay together, each as often as any; their extremes are the published ones."""
    network = Network.model_validate({"downlink": "phones_down", "uplink": "phones_up"})
    n = 19_000
    pairs = Counter(zip(network.rates(Way.DOWN, n, 1), network.rates(Way.UP, n, 1), strict=True))
    assert len(pairs) == 19 and stats.chisquare(list(pairs.values())).pvalue > 1e-3
    down, up = ([float(rate) for rate in rates] for rates in zip(*pairs, strict=True))
    assert (min(down), max(down), min(up), max(up)) == (2.37, 17.333, 0.431, 6.635)
    assert (17.333, 5.641) in zip(down, up, strict=True)


# -- pairing ---------------------------------------------------------------------------------------


def test_computation_is_the_same_whatever_is_sent() -> None:
    """The lengths drawn for jobs do not depend on bytes: SCAFFOLD's broadcasts only take longer."""

    def computations(local: Any, **network: Any) -> dict[tuple[int, int], int]:
        jobs: dict[tuple[int, int], int] = {}

        def receive(server: Server, _: Any) -> None:
            server.step()

        where = scenario([1, 1, 1], updates=30)
        where = where.model_copy(
            update={"timing": where.timing.model_copy(update={"durations": exponential()})}
        )
        simulation = Simulation(
            Experiment(scenario=linked(where, **network), strategy=Scripted(on_receive=receive, local=local))
        )
        for _ in simulate(simulation):
            job = simulation.arrived
            assert job is not None and job.ends is not None and job.computes is not None
            jobs[job.client, job.index] = job.ends - job.computes
        return jobs

    slow = computations(Scaffold(), downlink=ONE, uplink=ONE / 3)
    fast = computations(SGD(), downlink=100 * ONE)
    both = slow.keys() & fast.keys()
    assert len(both) > 20 and all(slow[job] == fast[job] for job in both)


def exponential() -> Any:
    """Durations that are drawn."""
    return Scenario.model_validate(
        {
            "problem": {"name": "quadratic", "centres": [[0.0]]},
            "timing": {"durations": "exponential"},
            "budget": {"updates": 1},
        }
    ).timing.durations


# -- what happens in each phase --------------------------------------------------------------------

# Of a job of 4 steps sent at 0: download until 2, computation until 6, upload until 10.
PHASES = {"download": 1, "computation": 5, "upload": 8}


def in_phase(at: int, act: Any, clients: int = 1, **more: Any) -> tuple[Simulation, list[Event], list[Any]]:
    """Jobs of download 2, computation 4, upload 4; at time `at` something is done with the first one."""
    updates: list[Any] = []
    fields: dict[str, Any] = {
        "on_begin": lambda server: server.wake(at * 1_000_000),
        "on_tick": lambda server: act(server, next(server.jobs)),
        "on_receive": lambda server, update: updates.append(update),
        "on_next": lambda server: range(clients) if server.now == 0 else [],
        "local": SGD(steps=4),
    }
    where = linked(scenario([4] * clients, time=40), downlink=ONE / 2, uplink=ONE / 4)
    return *play(Scripted(**fields | more), where), updates


@pytest.mark.parametrize(
    ("phase", "spent", "down", "up"),
    [("download", (1, 0, 0), 4, 0), ("computation", (2, 3, 0), 8, 0), ("upload", (2, 4, 2), 8, 4)],
)
def test_dismissed_in_each_phase(phase: str, spent: Any, down: int, up: int) -> None:
    """No update; the transfer ends there, what was sent counts, and the client is due at once."""

    def dismiss(server: Server, job: Job) -> None:
        server.dismiss(job)
        assert server.due == [0]

    simulation, seen, _ = in_phase(PHASES[phase], dismiss)
    assert times(seen) == []
    assert simulation.state.sent == {"down": down, "up": up}
    assert tuple(ticks / 1_000_000 for (ticks,) in simulation.state.spent) == spent
    assert not any(link.transfers for links in simulation.state.links.values() for link in links)


@pytest.mark.parametrize(
    ("phase", "steps", "arrives"), [("download", 0, 5), ("computation", 3, 9), ("upload", 4, 10)]
)
def test_collected_in_each_phase(phase: str, steps: int, arrives: float) -> None:
    """The steps that are finished are uploaded from then on; what is on its way stays as it is."""
    _, seen, updates = in_phase(PHASES[phase], lambda server, job: server.collect(job))
    assert times(seen) == [(0, arrives)] and updates[0].steps == steps


def test_staleness_counts_from_the_sending() -> None:
    """Versions made during download and upload count: a slow link makes an update staler."""
    where = linked(scenario([1, 1], updates=9), uplink={"name": "table", "table": [ONE / 4, 100 * ONE]})
    seen = play(Scripted(), where)[1]
    slow = next(event for event in seen if event.client == 0)
    assert (slow.began, slow.staleness) == (0, 4)  # client 1 arrives every 1.01 until 5


def test_a_poll_waits_for_the_answers_to_the_last_one() -> None:
    """QuAFL polls every Δt; an answer that takes longer to upload puts the next poll off."""
    where = linked(scenario([1] * 3, updates=12), uplink=ONE / 3)
    strategy = Strategy.model_validate({"name": "quafl", "sample": 1, "period": 2})
    simulation = Simulation(Experiment(scenario=where, strategy=strategy))
    seen = events(simulation)
    assert simulation.server.version == 12
    steps = [event.time for event in seen if event.stepped]
    assert [later - before for before, later in pairwise(steps)] == [4_000_000] * 11


# -- resumed, and computed together ----------------------------------------------------------------


def crowded() -> Scenario:
    """Clients of different speeds and links on a server's link that is too small for them."""
    where = scenario(
        ["1", "11/15", "7/15", "2"], centres=CENTRES, noise=0.2, updates=40,
        availability={"name": "spells", "mean_on": 6, "mean_off": 1},
    )  # fmt: skip
    law = {"name": "lognormal", "median": 3 * ONE, "sigma": 1}
    return linked(
        where, downlink=law, uplink=law, latency=0.05, shared={"downlink": 5 * ONE, "uplink": 4 * ONE}
    )


@pytest.mark.parametrize("name", ["rennala", "generalized_asyncsgd"])
def test_resumed_amid_transfers(name: str, tmp_path: Path) -> None:
    """Saved after every event and taken up again, it is the same run, bit for bit."""
    strategy = {"name": name, "local": {"name": "scaffold", "steps": 3}}
    experiment = Experiment.model_validate({"scenario": crowded(), "strategy": strategy, "seed": 2})
    assert resumed_everywhere(experiment, tmp_path) == run(experiment)


@pytest.mark.parametrize("name", ["fedbuff", "quafl", "rennala"])
def test_computed_together_alike(name: str) -> None:
    """Whatever the strategy, jobs in any phase may be computed ahead, stacked."""
    strategy = {"name": name, "local_lr": 0.05, "local": {"name": "scaffold", "steps": 2}}
    experiment = Experiment.model_validate({"scenario": crowded(), "strategy": strategy, "seed": 3})
    plain, stacked = Simulation(experiment), Simulation(experiment)
    assert events(plain) == list(simulate(stacked, AllInFlight()))
    assert (plain.server.model - stacked.server.model).abs().max() < 1e-10


def test_an_end_that_is_put_off_and_back_comes_once() -> None:
    """Client 1's upload begins at 3.5 and is dismissed at 3.5: client 0 ends at 4, as if nothing had been."""

    def dismiss(server: Server) -> None:
        server.dismiss(next(job for job in server.jobs if job.client == 1))

    strategy = Scripted(
        on_begin=lambda server: server.wake(3_500_000),
        on_tick=dismiss,
        on_next=lambda server: [0, 1, 2] if server.now == 0 else [],
    )
    where = linked(scenario(["3", "3.5", 6], time=9), shared={"uplink": ONE})
    assert times(play(strategy, where)[1]) == [(0, 4.0), (2, 7.0)]


@pytest.mark.parametrize("end", [1, "33/32", "31/32"])  # of the download; the poll is at 1/2
def test_an_upload_ends_once_whenever_its_download_would_have_ended(end: str) -> None:
    """Collected amid its download, a job is uploaded for 1/2: it arrives at 1, in each case."""
    where = linked(scenario([1], updates=1), downlink=ONE / Fraction(end), uplink=ONE * 2)
    strategy = Strategy.model_validate({"name": "favas", "sample": 1, "period": "1/2"})
    simulation, seen = play(strategy, where)
    assert times(seen) == [(0, 1.0)]
    assert simulation.state.spent == [[500_000], [0], [500_000]]


@pytest.mark.parametrize(("rate", "arrival"), [(64, 2.25), (63, 2.253205), (65, 2.246894)])
def test_a_download_that_ends_earlier_ends_no_upload(rate: int, arrival: float) -> None:
    """Client 0's second download is to end at 2.25, and ends at 2, as client 1's ends at 1.6.

    Of 13 bytes a second client 1 takes 5. Client 0 then computes for 1/8 and uploads for 8 / rate.
    """
    mbit = Fraction(8, 1_000_000)
    where = linked(
        scenario(["1/8", 50], updates=3),
        downlink={"name": "table", "table": [100 * mbit, 5 * mbit]},
        uplink=rate * mbit,
        shared={"downlink": 13 * mbit},
    )
    assert times(play(Scripted(), where)[1])[1] == (0, arrival)


def test_bytes_at_a_time_mark_are_those_complete_by_then() -> None:
    """Client 0's jobs are downloaded for 1 from 0, 12, 24 and 36 on, and arrive after 2."""
    where = linked(scenario([1, 40], time=40, evaluations=8), downlink=ONE)
    strategy = Strategy.model_validate({"name": "fedfix", "period": 12})
    curve = run(Experiment(scenario=where, strategy=strategy)).curve
    assert [(row["time"], row["downloads_bytes"], row["uploads_bytes"]) for row in curve] == [
        (0, 0, 0),
        (15, 24, 16),
        (25, 32, 16),
        (40, 40, 32),
    ]


def test_every_job_of_many_arrives_once() -> None:
    """Ends are put off and back, by as little as a tick; phases follow one another; no byte is lost."""
    fast = 10_000  # a job takes some hundred ticks
    where = linked(
        scenario([Fraction(1, fast * (1 + i % 7)) for i in range(60)], updates=800),
        uplink={"name": "lognormal", "median": fast * ONE * 2},
        shared={"uplink": fast * ONE * 9},
    )
    simulation = Simulation(Experiment(scenario=where, strategy=Scripted(), seed=1))
    busy = [0] * 60
    for event in simulate(simulation):
        assert event.client is not None and event.began is not None
        busy[event.client] += event.time - event.began
        assert busy == [sum(ticks) for ticks in zip(*simulation.state.spent, strict=True)]
    state, transfers = simulation.state, simulation.transfers
    assert state.sent["up"] == 8 * 800 and transfers is not None
    for job in list(simulation.server.jobs):
        transfers.abandon(job)
    # The link is busy from the first computation on: nine models in a unit of time / 10,000.
    assert state.sent["up"] == pytest.approx(8 * 9 * fast * simulation.time, rel=0.02)


def test_bytes_are_a_clock_and_a_budget() -> None:
    """A job of one number is 8 bytes down and 8 up; a budget of 80 of them is ten transfers."""
    where = linked(scenario([3], updates=99), downlink=ONE / 2, uplink=ONE / 5)
    data = where.model_dump() | {"budget": {"updates": 99, "bytes": 80}, "evaluations": 5}
    record = run(Experiment(scenario=Scenario.model_validate(data), strategy=Scripted(), seed=0))
    assert record.reason == "budget of bytes"
    end = record.curve[-1]
    assert (end["uploads_bytes"], end["downloads_bytes"], end["bytes"]) == (40, 40, 80)
    assert [sum(record.clients[f"{name}_time"]) for name in ("download", "computation", "upload")] == [
        10,
        15,
        25,
    ]


class Links(PerClient):
    """A law of a user's own, of these rates."""

    given: Any

    def values(self, n: int, seed: int, purpose: str) -> tuple[Fraction, ...]:
        values: tuple[Fraction, ...] = self.given
        return values


@pytest.mark.parametrize("given", [None, [1, 1, 1], [1.5, 1], [1, -1], [1, float("nan")]], ids=str)
def test_the_links_of_a_law_of_ones_own_are_exact(given: Any) -> None:
    """A rate that is a float was no limit at all."""
    for field in ("downlink", "latency"):
        with pytest.raises(ValidationError, match=r":Links"):
            linked(scenario([1, 1]), **{field: Links(given=given)})
    assert Network(downlink=Links(given=[1, 2])).rates(Way.DOWN, 2, 0) == (Fraction(1), Fraction(2))


@pytest.mark.parametrize("means", [(1, 1, 1, 1), (1, 2, 3, 10), (40, 50, 60, 70)])
def test_the_wait_for_a_shared_link_is_about_that_of_a_run(means: tuple[int, ...]) -> None:
    """Eight clients, whose uploads of two units each share a link for one: throughput within 10 %."""
    network = {"uplink": ONE / 2, "shared": {"uplink": ONE / 2}}
    where = linked(scenario([*means, *means], updates=600), **network)
    run_by_events = simulate(Simulation(Experiment.model_validate({"scenario": where, "strategy": "asgd"})))
    arrivals = times(list(run_by_events))
    cycles = np.array([*means, *means]) + 2.0
    waiting = LinksOfAPopulation(Network.model_validate(network), message=8, unit=1).waiting(
        cycles, at_work=8
    )
    assert (1 / (cycles + waiting)).sum() == pytest.approx(len(arrivals) / arrivals[-1][1], rel=0.1)
