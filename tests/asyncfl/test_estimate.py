"""The estimated time of a suite against a problem whose gradients take a known time."""

from typing import ClassVar

import pytest
from torch import Tensor

from benchmarks.runs import estimate
from benchmarks.runs.estimate import core_seconds
from benchmarks.suite.suite import PlannedRun
from fl_core.experiment import Experiment
from fl_core.local.sgd import SGD
from fl_core.problems.quadratic import Quadratic, QuadraticWorld
from fl_core.scenario import Budget, Scenario
from fl_core.strategies.buffered.fedbuff import FedBuff
from fl_core.strategies.every_arrival.asgd import ASGD
from fl_core.text import duration

GRADIENT = 0.002  # seconds


class Clock:
    """A clock that only gradients advance: a real one depends on what else the machine does."""

    now = 0.0


class SlowWorld(QuadraticWorld):
    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        Clock.now += GRADIENT
        return super().gradient(model, client, sample)


class Slow(Quadratic):
    name: ClassVar[str] = "slow"
    built: ClassVar[list[int]] = []

    def world(self, seed: int) -> SlowWorld:
        self.built.append(seed)
        return SlowWorld(self, seed)


def test_a_little_is_measured_and_the_rest_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "perf_counter", lambda: Clock.now)
    updates, steps, seeds = 5000, 4, 6
    scenario = Scenario(problem=Slow(), budget=Budget(updates=updates), evaluations=1)
    strategy = ASGD(local=SGD(steps=steps))
    runs = [
        PlannedRun(
            "a suite", Experiment(scenario=scenario, strategy=strategy, seed=seed), "a label", "a label"
        )
        for seed in range(seeds)
    ]
    before = Clock.now
    assert core_seconds(runs, patience=0.5) == pytest.approx(updates * steps * seeds * GRADIENT, rel=0.01)
    assert Clock.now - before < 1  # of 240 s
    assert len(set(Slow.built)) == 1  # a world of one seed tells what those of the others cost


def test_a_run_that_iterations_end_is_judged_by_its_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured for less than an iteration, whose ten updates are a ten-thousandth of the budget's."""
    monkeypatch.setattr(estimate, "perf_counter", lambda: Clock.now)
    scenario = Scenario(problem=Slow(), budget=Budget(iterations=200, updates=100_000), evaluations=1)
    experiment = Experiment(scenario=scenario, strategy=FedBuff(buffer=10), seed=0)
    run = PlannedRun("a suite", experiment, "a label", "a label")
    steps = experiment.strategy.local.usual(0, 0)
    assert core_seconds([run], patience=4 * steps * GRADIENT) == pytest.approx(
        200 * 10 * steps * GRADIENT, rel=0.01
    )


def test_start_mlflow_and_page_count_at_the_pace_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "cores", lambda: 4)
    for pace in (1, 2):
        monkeypatch.setattr(estimate, "unit", lambda: pace * estimate.UNIT)  # noqa: B023
        around = pace * (estimate.START + estimate.PAGE)
        assert estimate.elapsed(0, 4, 0, 0) == pytest.approx(around)
        assert estimate.elapsed(80, 2, 0, 0) == pytest.approx(around + 40)
        assert estimate.elapsed(0, 2, 0, 10) == pytest.approx(around + pace * 10 * estimate.CELL)
        writing = pace * 1000 * estimate.RECORD  # which shares cores with workers, and nothing with itself
        assert estimate.elapsed(writing, 4, 1000, 0) == pytest.approx(around + writing)
        assert estimate.elapsed(7 * writing, 4, 1000, 0) == pytest.approx(around + 2 * writing)


def test_durations_are_said_as_people_say_them() -> None:
    assert [duration(seconds) for seconds in (0.2, 7.6, 400, 12600)] == ["0.2 s", "7.6 s", "7 min", "3.5 h"]
