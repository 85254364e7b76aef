"""Strategies against each other and against limits that other programs found (heterogeneous quadratics)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from worlds import Everyone, play, scenario

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.strategies import caches
from fl_core.strategies.ace import ACE
from fl_core.strategies.aced import ACED
from fl_core.strategies.afa_cd import AFACD
from fl_core.strategies.afa_cs import AFACS
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.ca2fl import CA2FL
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.malenia import Malenia
from fl_core.strategies.rennala import Rennala
from fl_core.strategies.ringleader import Ringleader
from fl_core.strategies.ringmaster import Ringmaster
from fl_core.strategies.strategy import Strategy

TIMES = ["1", "2.1", "3.7", "7.9"]
CENTRES = [[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0], [4.0, 1.0]]


def models(strategy: Strategy, **where: Any) -> torch.Tensor:
    """Every version [versions, d], the first model left out."""
    where = {"times": TIMES, "centres": CENTRES, "updates": 200} | where
    simulation = Simulation(Experiment(scenario=scenario(**where), strategy=strategy))
    return torch.stack([simulation.server.model for event in simulate(simulation) if event.stepped])


@pytest.mark.parametrize(
    ("strategy", "updates", "limit", "digits"),
    [
        (ASGD(local_lr=0.01), 3000, (0.665, 0.434), 3),
        (Ringmaster(max_delay=3, local_lr=0.01), 3000, (0.697, 0.606), 3),
        (Rennala(batch=5, local_lr=0.05), 3000, (0.4, 0.2), 6),
        pytest.param(Malenia(batch=5, local_lr=0.05), 6000, (1.0, 0.5), 6, marks=pytest.mark.slow),
        pytest.param(Ringleader(local_lr=0.01), 6000, (1.0, 0.5), 6, marks=pytest.mark.slow),
        (ACE(local_lr=0.01), 3000, (1.0, 0.5), 6),
    ],
    ids=lambda value: value.name if isinstance(value, Strategy) else "",
)
def test_long_run_limits_on_heterogeneous_quadratics(
    strategy: Strategy, updates: int, limit: tuple[float, float], digits: int
) -> None:
    """What the method's own code tends to; the optimum is (1, .5), weighted by speed (.6599, .4318)."""
    found = models(strategy, updates=updates)
    found = found[-len(found) // 5 :].mean(0)
    assert found.tolist() == pytest.approx(limit, abs=10.0 ** (1 - digits))


def same(first: torch.Tensor, second: torch.Tensor) -> None:
    """Equal from the last versions backwards."""
    k = min(len(first), len(second))
    assert k > 20
    torch.testing.assert_close(first[-k:], second[-k:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("strategy", [ACE, ACED])
def test_small_caches_come_near_the_full_one(strategy: type[Strategy]) -> None:
    """Half precision within 2^-11 of every entry, 8 bits within max|U|/127; the drift stays small."""
    full = models(strategy(), noise=0.1)
    for cache, bound in (("half", 1e-3), ("int8", 0.05)):
        small = models(strategy.model_validate({"cache": cache}), noise=0.1)
        assert 0 < (small - full).abs().max() < bound


def test_8_bit_rounding_is_unbiased() -> None:
    """E[s·q] = U within four standard errors, |s·q − U| ≤ s for each, and zero stays zero."""
    simulation, _ = play(ASGD(), scenario([1] * 4, centres=CENTRES, updates=1))
    server = simulation.server
    value = torch.tensor([0.303, -1.27], dtype=torch.float64)
    cache = caches.empty(server, "int8")
    found = []
    for simulation.state.updates in range(4000):
        caches.put(cache, 0, value, server)
        found.append(caches.row(cache, 0, value))
    kept = torch.stack(found)
    step = 1.27 / 127
    assert (kept - value).abs().max() <= step
    assert kept[:, 0].unique().numel() == 2
    assert (kept.mean(0) - value).abs().max() < 4 * step / 2 / 4000**0.5 + 1e-12
    caches.put(cache, 1, torch.zeros(2), server)
    assert caches.row(cache, 1, value).tolist() == [0, 0]
    assert cache["blocks"][0].dtype == torch.int8


def test_aced_with_a_large_threshold_is_ace() -> None:
    """τ_algo ≥ τ_max: nobody is ever too old, in both readings of the stamp."""
    same(models(ACE(), noise=0.3), models(ACED(max_age=1000), noise=0.3))
    same(models(ACE(), noise=0.3), models(ACED(max_age=1000, stamp="model"), noise=0.3))


@pytest.mark.parametrize("strategy", [FedBuff, CA2FL, AFACD, AFACS])
def test_buffers_of_everyone_are_synchronous(strategy: type[Strategy]) -> None:
    """In rounds of everyone, with a buffer of n, every one of them is FedAvg (K = 1)."""
    chosen = strategy.model_validate({"buffer": 4})
    everyone = {"times": [1, 2, 3, 4], "arrangement": Everyone(), "noise": 0.3}
    same(models(chosen, **everyone), models(FedAvg(), **everyone))


@pytest.mark.parametrize(
    ("strategy", "uploads", "first_pass"),
    [(ASGD(), 1, 0), (FedBuff(buffer=3), 3, 0), (CA2FL(buffer=3), 3, 0), (ACE(), 1, 3)],
    ids=lambda value: value.name if isinstance(value, Strategy) else str(value),
)
def test_uploads_of_a_server_iteration(strategy: Strategy, uploads: int, first_pass: int) -> None:
    """As the overhead table of ACE's paper has them; its first step takes those of all four clients."""
    simulation, _ = play(strategy, scenario(TIMES, centres=CENTRES, updates=63 + first_pass))
    assert simulation.server.version * uploads == 63


@pytest.mark.parametrize("name", ["fedbuff", "quafl"])
def test_a_clone_under_another_name_makes_the_same_run(name: str) -> None:
    """No draw depends on the name of a strategy: its row on a board would be that of the original."""
    member = Strategy.members()[name]
    clone = type("Clone", (member,), {"__doc__": "A clone.", "__module__": __name__})
    where = scenario(
        TIMES,
        centres=CENTRES,
        noise=0.3,
        availability={"name": "spells", "mean_on": 6, "mean_off": 1},
        updates=60,
    )
    first, second = (run(Experiment(scenario=where, strategy=kind())) for kind in (member, clone))
    assert (first.curve, first.arrivals) == (second.curve, second.arrivals)
    assert len(first.arrivals["client"]) == 60
