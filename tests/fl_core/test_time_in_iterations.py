"""Where time is counted in server iterations, all that arrives in one makes one step (rule 20)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from worlds import Scripted, play

from fl_core.diagnostics.diagnosis import Diagnostics
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.loop.events import EventKind
from fl_core.loop.serialization import plain, restore
from fl_core.loop.simulation import Simulation, simulate
from fl_core.recording.recorder import run
from fl_core.scenario import Scenario, Timing
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.ace import ACE
from fl_core.strategies.aced import ACED
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.delay_adaptive import DelayAdaptive
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.strategy import Strategy
from fl_core.timing.durations import Iterations

CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0], [0.0, 2.0], [2.0, -2.0]]
FITTING: list[Strategy] = [DelayAdaptive(), FedBuff(buffer=3, concurrency=4), ACED(max_age=3)]


def where(mean: Any = 1, **fields: Any) -> Scenario:
    """Six noisy quadratics whose delays are counted in iterations."""
    return Scenario.model_validate(
        {
            "problem": {"name": "quadratic", "centres": CENTRES, "noise": 0.3},
            "timing": {"durations": {"name": "iterations", "mean": mean}},
            "budget": {"updates": 150},
            **fields,
        }
    )


def each(strategy: Strategy) -> str:
    return strategy.reference()


@pytest.mark.parametrize("strategy", FITTING[:2], ids=each)
def test_20_one_step_an_iteration_and_sends_after_it(strategy: Strategy) -> None:
    """Only the last arrival of a tick makes a version; what is sent at that tick starts from it."""
    simulation, seen = play(strategy, where(0.5))
    arrivals = [event for event in seen if event.kind is EventKind.ARRIVAL]
    several = 0
    for event, following in pairwise(arrivals):
        several += event.time == following.time
        assert not (event.stepped and event.time == following.time)
    assert several > 20
    newest = {0: 0} | {event.time: event.version for event in arrivals}  # the version at the end of a tick
    for before, event in pairwise(arrivals):
        assert event.sent is not None and event.staleness is not None
        now = before.version if before.time < event.time else event.version - event.stepped
        assert now - event.staleness == newest[event.sent]
    assert simulation.server.version == sum(event.stepped for event in arrivals) > 10


@pytest.mark.parametrize("strategy", FITTING, ids=each)
def test_20_a_run_saved_amid_an_iteration_goes_on_as_it_would_have(strategy: Strategy) -> None:
    """Through plain data and back at every event, in stacks."""
    described = Experiment(scenario=where(), strategy=strategy)
    whole = Simulation(described)
    expected = list(simulate(whole, AllInFlight()))
    simulation, seen, amid = Simulation(described), [], 0
    for _ in range(60):
        seen.append(next(simulate(simulation, AllInFlight())))
        amid += bool(simulation.state.gathered)
        saved = plain(simulation)
        restore(simulation := Simulation(described), saved)
    assert seen + list(simulate(simulation, AllInFlight())) == expected
    torch.testing.assert_close(simulation.server.model, whole.server.model, rtol=0, atol=0)
    assert amid


def test_20_the_error_terms_of_all_arrivals_of_an_iteration() -> None:
    """All clients have a weight in ACE's step, whose term B is zero; in vanilla's, those that came."""
    found = {
        strategy.reference(): run(
            Experiment(scenario=where(2), strategy=strategy), diagnostics=Diagnostics(errors=1)
        ).diagnostics
        for strategy in (ACE(), ASGD())
    }
    assert all(row["participants"] == 6 and row["bias_sq"] < 1e-20 for row in found["ace"])
    counts = [row["participants"] for row in found["asgd"]]
    uploads = [row["updates"] for row in found["asgd"]]
    assert len(set(counts)) > 1
    assert counts == [after - before for before, after in pairwise([0, *uploads])]


class Single(ASGD):
    """A strategy whose several arrivals have no rule."""

    name: ClassVar[str] = "single"
    receive_together = Strategy.receive_together


@pytest.mark.parametrize("strategy", [FedAvg(), Single()], ids=each)
def test_20_a_strategy_without_a_rule_for_several_arrivals_is_refused(strategy: Strategy) -> None:
    """One sentence that names both."""
    with pytest.raises(ValidationError, match=strategy.reference()):
        Experiment(scenario=where(), strategy=strategy)


class Twos(Iterations):
    """Every job arrives in the second iteration."""

    def draw(self, mean: float, rng: np.random.Generator) -> float:
        return 2


def test_20_a_dismissed_job_is_not_waited_for() -> None:
    """Three jobs would arrive at 2. That of client 2 is dismissed at 1, and the other two come together."""
    came: list[list[int]] = []

    class Heard(Scripted):
        def receive_together(self, server: Server, updates: Sequence[Update]) -> None:
            came.append([update.client for update in updates])

    strategy = Heard(
        on_begin=lambda server: server.wake(1),
        on_tick=lambda server: [server.dismiss(job) for job in list(server.jobs) if job.client == 2],
        on_next=lambda server: [0, 1, 2] if server.now == 0 else [],
    )
    simulation, seen = play(strategy, where(timing=Timing(durations=Twos())))
    assert came == [[0, 1]]
    assert [event.time for event in seen] == [1, 2, 2]
    assert simulation.server.in_flight == 0


def test_a_mean_delay_far_below_an_iteration_is_none() -> None:
    """E⌊X⌋ of X ~ Exp(β) is 1/(e^(1/β) − 1), which vanishes as β does."""
    assert Iterations(mean=Fraction(1, 1000)).means(2, seed=0) == (pytest.approx(1), pytest.approx(1))
    assert Iterations(mean=Fraction(5)).means(1, seed=0)[0] == pytest.approx(1 + 1 / (np.exp(0.2) - 1))
