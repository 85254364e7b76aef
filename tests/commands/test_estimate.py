"""The estimated time of a suite against a problem whose gradients and evaluations take a known time."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from torch import Tensor

from benchmarks.errors import UserError
from benchmarks.runs import estimate
from benchmarks.suite.suite import PlannedRun
from fl_core.experiment import Experiment
from fl_core.local_work import SGD
from fl_core.problems.problem import Evaluation
from fl_core.problems.quadratic import Quadratic, QuadraticWorld
from fl_core.scenario import Budget, Scenario
from fl_core.server.server import Server
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.strategy import Strategy

GRADIENT_SECONDS, TEST_SECONDS, LOSSES_SECONDS = 0.002, 0.5, 7.0


class Clock:
    """A clock that only gradients and evaluations advance: a real one depends on the machine's load."""

    now = 0.0


class SlowWorld(QuadraticWorld):
    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        Clock.now += GRADIENT_SECONDS
        return super().gradient(model, client, sample)

    def test(self, model: Tensor) -> Evaluation:
        Clock.now += TEST_SECONDS
        return super().test(model)

    def losses(self, model: Tensor) -> Any:
        Clock.now += LOSSES_SECONDS
        return super().losses(model)


class Slow(Quadratic):
    name: ClassVar[str] = "slow"
    built: ClassVar[list[int]] = []

    def world(self, seed: int) -> SlowWorld:
        self.built.append(seed)
        return SlowWorld(self, seed)


class Broken(ASGD):
    """Ends in an error at the first alarm."""

    def begin(self, server: Server) -> None:
        server.wake(1)

    def tick(self, server: Server) -> None:
        raise LookupError("no such table")


@pytest.fixture(autouse=True)
def _own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "perf_counter", lambda: Clock.now)
    monkeypatch.setattr(Slow, "built", [])


def planned(
    strategy: Strategy, budget: Budget, seed: int = 0, evaluations: int = 1, evaluate: Any = "test"
) -> PlannedRun:
    scenario = Scenario(problem=Slow(), budget=budget, evaluations=evaluations)
    experiment = Experiment(scenario=scenario, strategy=strategy, seed=seed)
    return PlannedRun("a suite", experiment, "a label", "a label", evaluate=evaluate)


def at_marks(marks: int, losses: int = 1) -> float:
    """The seconds of a run's evaluations."""
    return marks * TEST_SECONDS + losses * LOSSES_SECONDS


@pytest.mark.parametrize("processes", [1, 4])
def test_a_little_is_timed_and_the_rest_extrapolated(processes: int) -> None:
    updates, steps, seeds = 5000, 4, 8
    runs = [planned(ASGD(local=SGD(steps=steps)), Budget(updates=updates), seed) for seed in range(seeds)]
    before = Clock.now
    found = estimate.seconds(runs, processes, timed=0.5)
    each = updates * steps * GRADIENT_SECONDS + at_marks(1)
    assert found == pytest.approx(seeds * each / processes, rel=0.01)
    assert Clock.now - before < 2 + 2 * at_marks(1)  # of 320 s
    assert len(set(Slow.built)) == 1  # a world of one seed tells what those of the others cost


def test_more_processes_than_runs_save_nothing() -> None:
    runs = [planned(ASGD(), Budget(updates=100), seed) for seed in range(2)]
    assert estimate.seconds(runs, 2) == pytest.approx(estimate.seconds(runs, 8))


@pytest.mark.parametrize(("evaluate", "losses"), [("test", 1), ("clients", 11)])
def test_evaluations_at_the_marks_count(evaluate: Any, losses: int) -> None:
    """Training losses are evaluated at the end, and where a suite asks at every mark, too."""
    run = planned(ASGD(), Budget(updates=1000), evaluations=10, evaluate=evaluate)
    steps = run.experiment.strategy.local.usual(0, 0)
    wanted = 1000 * steps * GRADIENT_SECONDS + at_marks(10, losses)
    assert estimate.seconds([run], 1) == pytest.approx(wanted, rel=0.01)


def test_a_kind_is_timed_once_and_counts_as_often_as_it_runs() -> None:
    """Three times as many local steps take three times as long; two seeds of each."""
    runs = [
        planned(ASGD(local=SGD(steps=steps)), Budget(updates=2000), seed)
        for steps in (1, 3)
        for seed in (0, 1)
    ]
    wanted = 2 * 2000 * (1 + 3) * GRADIENT_SECONDS + 4 * at_marks(1)
    assert estimate.seconds(runs, 1, timed=0.5) == pytest.approx(wanted, rel=0.01)


def test_a_run_that_iterations_end_is_estimated_by_its_updates() -> None:
    """Timed for less than an iteration, whose ten updates are a ten-thousandth of the budget's."""
    run = planned(FedBuff(buffer=10), Budget(iterations=200, updates=100_000))
    steps = run.experiment.strategy.local.usual(0, 0)
    found = estimate.seconds([run], 1, timed=4 * steps * GRADIENT_SECONDS)
    assert found == pytest.approx(200 * 10 * steps * GRADIENT_SECONDS + at_marks(1), rel=0.01)


def test_a_run_that_ends_in_an_error_is_named() -> None:
    with pytest.raises(UserError, match=r"no such table"):
        estimate.seconds([planned(Broken(), Budget(updates=10))], 1)
