"""A problem without data, in as few lines as it needs: the rest are the defaults of `World`."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.metrics import Metric
from fl_core.problems.problem import Evaluation, Problem, World
from fl_core.recording.recorder import run

GAP = Metric("gap", "Distance to the optimum", higher=False)


class Cosh(Problem):
    """L_i(θ) = log cosh(θ − c_i), c_i = i: convex, not quadratic."""

    name: ClassVar[str] = "cosh"

    metric: str = "gap"

    def metrics(self) -> tuple[Metric, ...]:
        return (GAP,)

    def world(self, seed: int) -> World:
        return CoshWorld(self)


class CoshWorld(World):
    """By symmetry the optimum is the mean of the centres."""

    def __init__(self, problem: Cosh) -> None:
        super().__init__(problem.weights(np.ones(problem.clients)), d=1)
        self.centres = torch.arange(problem.clients, dtype=torch.float64)

    def gradient(self, model: Tensor, client: int, sample: Tensor) -> Tensor:
        return torch.tanh(model - self.centres[client])

    def evaluate(self, model: Tensor) -> Evaluation:
        losses = (model - self.centres).cosh().log().cpu().numpy()
        return Evaluation({"gap": abs(float(model) - (self.n - 1) / 2)}, losses)


def experiment(updates: int = 600) -> Experiment:
    problem = {"name": f"{__name__}:Cosh", "clients": 5}
    strategy = {"name": "fedavg", "local_lr": 0.5}
    return Experiment.model_validate(
        {"scenario": {"problem": problem, "budget": {"updates": updates}}, "strategy": strategy}
    )


def test_it_runs_and_comes_to_its_optimum() -> None:
    """Gradient descent: near it, each of 120 rounds leaves 1 − ½ · mean sech²(2 − i) = 0.8 of the gap."""
    record = run(experiment())
    assert record.curve[0]["gap"] == 2
    assert record.curve[-1]["gap"] < 1e-9
    assert record.clients["size"] == [1] * 5
    at_two = np.log(np.cosh(2.0 - np.arange(5)))
    assert record.curve[-1]["fp/loss"] == pytest.approx(at_two.mean())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_run_whose_ranking_metric_is_not_finite_has_diverged(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be done, and its seed missing in every mean."""

    def evaluate(world: CoshWorld, model: Tensor) -> Evaluation:
        gap = abs(float(model) - 2)
        return Evaluation({"gap": gap if gap > 0.5 else value}, np.ones(5))

    monkeypatch.setattr(CoshWorld, "evaluate", evaluate)
    record = run(experiment())
    assert record.status == "diverged" and re.fullmatch(r"gap of version \d+ is not finite", record.reason)
    assert record.curve[0]["gap"] == 2


@pytest.mark.parametrize(
    ("metrics", "error", "line"),
    [
        ({"gap": "three"}, TypeError, "gap .*'three'"),
        ({"gap": np.ones(2)}, TypeError, "gap .* array"),
        ({"gab": 3.0}, KeyError, "gap, .* at version 0"),
    ],
)
def test_a_metric_is_a_number_and_the_one_that_ranks_is_there(
    metrics: dict[str, Any], error: type[Exception], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CoshWorld, "evaluate", lambda world, model: Evaluation(metrics, np.ones(5)))
    with pytest.raises(error, match=line):
        run(experiment(40))


def test_the_metric_that_ranks_is_there_at_every_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a curve would have gaps, and a target could be passed unseen."""

    def evaluate(world: CoshWorld, model: Tensor) -> Evaluation:
        gap = abs(float(model) - 2)
        return Evaluation({} if 0.1 < gap < 1 else {"gap": gap}, np.ones(5))

    monkeypatch.setattr(CoshWorld, "evaluate", evaluate)
    with pytest.raises(KeyError, match=r"gap, by which .* ranked, is not evaluated at version \d+: "):
        run(experiment())


def test_an_evaluation_leaves_the_model_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(world: CoshWorld, model: Tensor) -> Evaluation:
        return Evaluation({"gap": float(model.add_(1))}, np.ones(5))

    monkeypatch.setattr(CoshWorld, "evaluate", evaluate)
    with pytest.raises(RuntimeError, match="CoshWorld"):
        run(experiment())


def test_stacked_jobs_are_those_of_the_loop() -> None:
    plain, stacked = run(experiment(40)), run(experiment(40), execution=AllInFlight())
    assert [row["gap"] for row in plain.curve] == pytest.approx([row["gap"] for row in stacked.curve])


def test_the_defaults_are_of_one_data_point_a_client() -> None:
    world = Cosh(clients=3).world(0)
    assert (world.n, world.d, world.labels, world.fingerprint) == (3, 1, None, {})
    assert world.kind != Cosh(clients=3).world(0).kind  # nothing is known that could be shared
    assert torch.equal(world.full_gradient(torch.ones(1), 0), torch.ones(1).tanh())
    assert torch.equal(world.shuffled(0, 0, 2, 4), world.samples(0, 0, 2, 4))
