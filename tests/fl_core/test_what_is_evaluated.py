"""Training losses at the marks of a run, or at its end alone (rules 13 and 14)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation
from fl_core.metrics import TRAINING
from fl_core.problems.training.world import SupervisedWorld
from fl_core.recording import checkpoint
from fl_core.recording.recorder import Recorder, run

DIGITS: dict[str, Any] = {
    "name": "digits",
    "clients": 5,
    "partition": {"name": "client_dirichlet", "alpha": 0.3},
}
LINEAR: dict[str, Any] = {"name": "linear_regression", "clients": 3}
QUADRATIC: dict[str, Any] = {"name": "quadratic", "centres": [[0.0], [4.0]]}


def experiment(problem: dict[str, Any] = DIGITS, updates: int = 40, **strategy: Any) -> Experiment:
    scenario = {"problem": problem, "budget": {"updates": updates}, "evaluations": 4}
    described = {"name": "asgd", "local_lr": 0.05, **strategy}
    return Experiment.model_validate({"scenario": scenario, "strategy": described})


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The models that were judged on the training data."""
    judged: list[Tensor] = []
    plain = SupervisedWorld._on_training

    def counted(self: SupervisedWorld, model: Tensor) -> np.ndarray:
        judged.append(model)
        return plain(self, model)

    monkeypatch.setattr(SupervisedWorld, "_on_training", counted)
    return judged


@pytest.mark.parametrize("strategy", [{}, {"name": "fedavg"}, {"name": "fedbuff", "buffer": 3}])
def test_training_losses_are_absent_before_the_end_and_the_same_there(
    strategy: dict[str, Any], passes: list[Tensor]
) -> None:
    whole = run(experiment(**strategy))
    before = len(passes)
    tested = run(experiment(**strategy), evaluate="test")
    assert len(passes) - before == 1
    assert len(tested.curve) == len(whole.curve) >= 4
    for row, full in zip(tested.curve, whole.curve, strict=True):
        assert full.keys() >= TRAINING
        assert row.items() <= full.items()
    ends = [row for row in tested.curve if row["iteration"] == tested.curve[-1]["iteration"]]
    assert all(row.keys().isdisjoint(TRAINING) for row in tested.curve[: -len(ends)])
    assert tested.curve[-1] == whole.curve[-1]
    assert tested.clients == whole.clients and tested.arrivals == whole.arrivals


@pytest.mark.parametrize("problem", [QUADRATIC, LINEAR], ids=["quadratic", "linear"])
def test_losses_that_cost_nothing_are_always_there(problem: dict[str, Any]) -> None:
    """Quadratics have them in closed form; the excess loss of a linear regression is made of them."""
    assert run(experiment(problem), evaluate="test").curve == run(experiment(problem)).curve


def test_a_strategy_that_asks_for_losses_gets_them(passes: list[Tensor]) -> None:
    """One pass for each round that is sent out, and none more at the marks or the end."""
    asks = experiment(name="fedavg", sampling={"name": "highest_loss", "sample": 2})
    whole = run(asks)
    passes.clear()
    tested = run(asks, evaluate="test")
    assert tested.arrivals == whole.arrivals
    assert len(passes) <= 1 + tested.curve[-1]["iteration"]
    assert tested.curve[1].keys().isdisjoint(TRAINING)
    assert tested.curve[-1] == whole.curve[-1]


def test_divergence_is_noticed_without_the_training_data(passes: list[Tensor]) -> None:
    """At the first mark, before the next update could show it."""
    diverging = experiment(server_lr=1e40, local={"name": "sgd", "steps": 1}, updates=4)
    whole = run(diverging)
    passes.clear()
    tested = run(diverging, evaluate="test")
    assert tested.status == whole.status == "diverged"
    assert tested.reason == whole.reason and "not finite" in tested.reason
    assert "arrival" not in tested.reason and len(tested.curve) == 2
    assert len(passes) == 1  # of the end
    assert not np.isfinite(tested.curve[-1]["fp/loss"])


def test_a_checkpoint_of_a_run_that_evaluated_less_is_refused(tmp_path: Path) -> None:
    recorders = [Recorder(Simulation(experiment()), evaluate=what) for what in ("test", "clients")]
    recorders[0].start()
    checkpoint.save(recorders[0], tmp_path / "saved")
    with pytest.raises(ValueError, match="evaluates other data at its marks"):
        checkpoint.load(recorders[1], tmp_path / "saved")
