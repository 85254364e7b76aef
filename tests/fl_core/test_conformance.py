"""One suite of checks for everything that a suite file can name, present and future."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from worlds import scenario

from fl_core.arrangements.arrangement import Arrangement
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.local.work import LocalWork
from fl_core.loop.simulation import Simulation, simulate
from fl_core.parts import Part
from fl_core.problems.partitions.partition import Partition
from fl_core.problems.problem import Problem
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder, run
from fl_core.strategies.strategy import Strategy
from fl_core.timing.availability import Availability
from fl_core.timing.durations import Durations, Lengths

FAMILIES: tuple[type[Part], ...] = (
    *(Strategy, LocalWork, Arrangement),
    *(Problem, Partition, Durations, Availability),
)
MEMBERS = [member for family in FAMILIES for member in family.members().values()]
STRATEGIES = list(Strategy.members())
TIMES = [1, "11/15", "7/15", "1/5", 2, 2]
CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0], [0.0, 2.0], [2.0, -2.0]]


def experiment(strategy: str, local: Any = "sgd", seed: int = 1, **where: Any) -> Experiment:
    """A strategy with its defaults on six noisy quadratics, some of them slow."""
    where = {"times": TIMES, "centres": CENTRES, "noise": 0.3, "updates": 150} | where
    chosen = {"name": strategy, "local_lr": 0.05, "local": local}
    return Experiment.model_validate({"scenario": scenario(**where), "strategy": chosen, "seed": seed})


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_every_part_says_what_it_is(member: type[Part]) -> None:
    """A first line for `asyncfl list`; what is published names its paper; the name finds the class."""
    first = (member.__doc__ or "").partition("\n")[0]
    assert first.endswith(".")
    assert len(first) > 20
    assert member.family().members()[member.name] is member
    if issubclass(member, Strategy | LocalWork):
        assert re.search(r"\(.*\d{4}.*\)", first), f"{member.name}: the first line names no paper"


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_description_is_json_and_gives_the_same_experiment(name: str) -> None:
    """Description → JSON → experiment is the identity, and so is the key."""
    first = experiment(name)
    again = Experiment.model_validate(json.loads(json.dumps(first.description())))
    assert again == first
    assert again.key == first.key
    assert experiment(name, seed=2).key != first.key


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_run_repeats_bit_for_bit(name: str) -> None:
    """Same experiment, same curve, same arrivals; another seed, other numbers."""
    first, again, other = run(experiment(name)), run(experiment(name)), run(experiment(name, seed=2))
    assert first.status == "done"
    assert first.curve == again.curve
    assert first.arrivals == again.arrivals
    assert first.curve[-1] != other.curve[-1]


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_run_learns(name: str) -> None:
    """With its defaults every strategy comes nearer to the optimum, some slowly, some with a bias."""
    record = run(experiment(name, noise=0.0, updates=600))
    assert record.curve[-1]["excess_loss"] < 0.65 * record.curve[0]["excess_loss"]


@pytest.mark.parametrize(
    "local", ["sgd", {"name": "prox", "mu": 0.5}, "scaffold"], ids=["sgd", "prox", "scaffold"]
)
@pytest.mark.parametrize("name", STRATEGIES)
def test_batched_execution_changes_nothing(name: str, local: Any) -> None:
    """Stacked jobs: the same events exactly, the same models to 1e-10 in float64."""
    local = {"name": local} if isinstance(local, str) else local
    described = experiment(name, {**local, "steps": 3})
    models: dict[str, list[torch.Tensor]] = {}
    events: dict[str, list[Any]] = {}
    for execution in (OneByOne(), AllInFlight(max_batch=4), AllInFlight()):
        simulation, key = Simulation(described), f"{execution}"
        events[key] = []
        models[key] = []
        for event in simulate(simulation, execution):
            events[key].append(event)
            models[key].append(simulation.server.model)
    plain, *batched = models
    for other in batched:
        assert events[other] == events[plain]
        torch.testing.assert_close(torch.stack(models[other]), torch.stack(models[plain]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", STRATEGIES)
def test_resume_equals_uninterrupted(name: str, tmp_path: Path) -> None:
    """Saved at three points and taken up by new objects, under batched execution: bit for bit the same."""
    away = {"name": "dropouts", "share": 0.4, "at": 3, "back": 5}
    described = experiment(name, "scaffold", availability=away)
    whole = run(described, execution=AllInFlight())
    for stop in (1, 40, 120):
        recorder = Recorder(Simulation(described))
        recorder.start()
        for number, event in enumerate(simulate(recorder.simulation, AllInFlight())):
            recorder.see(event)
            if number == stop:
                break
        checkpoint.save(recorder, tmp_path / "run.pt")
        recorder = Recorder(Simulation(described))
        checkpoint.load(recorder, tmp_path / "run.pt")
        for event in simulate(recorder.simulation, AllInFlight()):
            recorder.see(event)
        assert recorder.finish() == whole


NEEDS_ALL = ("malenia", "ringleader")  # a client's update is needed again and again


@pytest.mark.parametrize("name", STRATEGIES)
def test_permanent_drop_outs_end_nothing_early(name: str) -> None:
    """Half of the clients leave for good: the run still spends its budget, unless each step needs them."""
    record = run(experiment(name, availability={"name": "dropouts", "share": 0.5, "at": 4}))
    if name in NEEDS_ALL:
        assert record.status == "stalled"
        assert record.reason.startswith("waits for clients that never come: ")
        assert record.curve[-1]["iteration"] > 0
        return
    assert record.status == "done"
    assert record.reason == "budget of client updates"
    last = set(record.arrivals["client"][-30:])
    assert len(last) == 3


def test_strategies_that_answer_next_alike_meet_the_same_events() -> None:
    """One arrival, one dispatch: the schedule does not depend on what is done with the update."""
    arrivals = [run(experiment(name)).arrivals for name in ("asgd", "async_fedavg")]
    assert arrivals[0] == arrivals[1]


@pytest.mark.parametrize("name", [n for n, law in Durations.members().items() if n not in ("trace", "fixed")])
def test_durations_do_not_depend_on_the_order_of_asking(name: str) -> None:
    """Client i's k-th job has one length, at least a tick, whoever asks when."""
    law = Durations.model_validate({"name": name})
    lengths, again = Lengths(law, 6, 7), Lengths(law, 6, 7)
    asked = [(client, job) for client in range(6) for job in range(5)]
    first = {pair: lengths(*pair) for pair in asked}
    assert {pair: again(*pair) for pair in reversed(asked)} == first
    assert min(first.values()) >= 1
    assert np.mean(list(first.values())) > 1
