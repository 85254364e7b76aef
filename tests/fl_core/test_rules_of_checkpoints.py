"""Rule 15 of the loop: a run goes on from its checkpoint as if nothing had happened, or not at all."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from worlds import resumed_everywhere, scenario

from fl_core.experiment import Experiment
from fl_core.local_work import SGD, Scaffold
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder, run
from fl_core.strategies.ace import ACE
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.ca2fl import CA2FL
from fl_core.strategies.favas import FAVAS
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.fedfix import FedFix
from fl_core.strategies.quafl import QuAFL

STRATEGIES = [
    FedAvg(local=Scaffold(steps=2)),
    FedFix(period=Fraction(1, 3)),
    FedBuff(buffer=2, concurrency=3),
    CA2FL(buffer=2, concurrency=3),
    ACE(local=Scaffold()),
    ASGD(concurrency=2),
    FAVAS(local=SGD(steps=3), period=Fraction(3, 2)),
    QuAFL(local=SGD(steps=3), period=Fraction(3, 2)),
]


@pytest.mark.parametrize(
    "strategy",
    [pytest.param(one, marks=() if one.name == "fedfix" else pytest.mark.slow) for one in STRATEGIES],
    ids=lambda strategy: strategy.name,
)
def test_15_checkpoint_between_any_two_events(strategy: Any, tmp_path: Path) -> None:
    """Saved after every event and taken up by new objects: the same curve, bit for bit."""
    away = {"name": "dropouts", "share": 0.3, "at": 3, "back": 8}
    where = scenario([1, 2, "5/2", 4], noise=0.5, availability=away, updates=30)
    experiment = Experiment(scenario=where, strategy=strategy, seed=3)
    whole, resumed = run(experiment), resumed_everywhere(experiment, tmp_path)
    assert resumed.curve == whole.curve
    assert resumed.arrivals == whole.arrivals
    assert (resumed.status, resumed.reason) == (whole.status, whole.reason)


def test_15_absences_go_on_where_they_were(tmp_path: Path) -> None:
    """Of a law that makes one absence after the other: none is skipped, and none comes twice."""
    away = {"name": "spells", "mean_on": "1/2", "mean_off": "1/4"}
    where = scenario([1, "1/2", "3/2"], availability=away, updates=15)
    experiment = Experiment(scenario=where, strategy=ASGD())
    whole, resumed = run(experiment), resumed_everywhere(experiment, tmp_path)
    assert whole.curve[-1]["time"] > 4 * 3 / 4  # four absences of each client on average
    assert resumed.arrivals == whole.arrivals


class Count(IntEnum):
    """A number that is more than a number."""

    ONE = 1


REFUSED = [
    *((np.float64(0.5), "numpy.float64"), (np.int64(3), "numpy.int64"), (np.zeros(2), "numpy.ndarray")),
    *((Fraction(1, 3), "fractions.Fraction"), (deque([1]), "collections.deque"), ({1, 2}, "builtins.set")),
    *((defaultdict(int), "collections.defaultdict"), (Counter("a"), "collections.Counter")),
    *((Count.ONE, "test_rules_of_checkpoints.Count"), (SimpleNamespace(), "types.SimpleNamespace")),
]


def save_with(value: Any, path: Path) -> None:
    """A run whose strategy keeps `value` as `server.memory.kept` is saved."""
    simulation = Simulation(Experiment(scenario=scenario(), strategy=ASGD()))
    simulation.server.memory.kept = value
    checkpoint.save(Recorder(simulation), path)


@pytest.mark.parametrize(("value", "kind"), REFUSED, ids=[kind for _, kind in REFUSED])
def test_15_what_would_not_come_back_is_refused_when_it_is_saved(
    value: Any, kind: str, tmp_path: Path
) -> None:
    """By its key and type, however deep it lies; and no file is left."""
    nested = {"table": [0, (1.5, value)]}
    for kept, where in ((value, "kept"), (nested, "kept['table'][1][1]")):
        with pytest.raises(TypeError) as error:
            save_with(kept, tmp_path / "checkpoint.pt")
        assert str(error.value) == (
            f"server.memory.{where} is a {kind}, which cannot be saved. Use tensors, Python's own numbers, "
            "strings and None, and lists, tuples and dicts of these"
        )
    assert not list(tmp_path.iterdir())


def test_15_a_key_that_would_not_come_back_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"server\.memory\.kept\[np\.int64\(3\)\] is a numpy\.int64"):
        save_with({np.int64(3): 1}, tmp_path / "checkpoint.pt")


@pytest.mark.parametrize("rubbish", [b"", b"no checkpoint", b"PK\x03\x04"])
def test_15_a_damaged_checkpoint_is_named(rubbish: bytes, tmp_path: Path) -> None:
    saved = tmp_path / "checkpoint.pt"
    saved.write_bytes(rubbish)
    recorder = Recorder(Simulation(Experiment(scenario=scenario(), strategy=ASGD())))
    with pytest.raises(
        ValueError, match=rf"^{saved} is damaged, or was saved by an earlier version of asyncfl$"
    ):
        checkpoint.load(recorder, saved)


def test_15_no_damage_to_a_checkpoint_changes_a_result(tmp_path: Path) -> None:
    """A flipped bit, a page of zeros, a lost end: refused before anything is used, or the same result."""
    experiment = Experiment(scenario=scenario(noise=0.5, updates=12), strategy=ACE())
    recorder = Recorder(Simulation(experiment))
    recorder.start()
    for _, event in zip(range(6), simulate(recorder.simulation), strict=False):
        recorder.see(event)
    saved = tmp_path / "checkpoint.pt"
    checkpoint.save(recorder, saved)
    whole, truth = saved.read_bytes(), run(experiment)
    bits = range(0, 8 * len(whole), 101)
    damaged = [
        whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :] for bit in bits
    ]
    damaged += [whole[:at] + bytes(512) + whole[at + 512 :] for at in range(0, len(whole), 512)]
    damaged += [whole[:at] for at in range(0, len(whole), 512)]
    for content in damaged:
        if content == whole:  # a page that is zero anyway
            continue
        saved.write_bytes(content)
        recorder = Recorder(Simulation(experiment))
        try:
            checkpoint.load(recorder, saved)
        except ValueError:
            continue
        for event in simulate(recorder.simulation):
            recorder.see(event)
        record = recorder.finish()
        assert (record.curve, record.arrivals) == (truth.curve, truth.arrivals)


def test_15_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    """A clear sentence, not a silently wrong state."""
    saved = tmp_path / "checkpoint.pt"
    checkpoint.save(Recorder(Simulation(Experiment(scenario=scenario(), strategy=ASGD()))), saved)
    other = Recorder(Simulation(Experiment(scenario=scenario(), strategy=ASGD(), seed=1)))
    with pytest.raises(ValueError, match="checkpoint of another run"):
        checkpoint.load(other, saved)
