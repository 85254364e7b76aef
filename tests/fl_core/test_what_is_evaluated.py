"""Training losses at the marks of a run, or at its end alone (rules 13 and 14)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fl_core.experiment import Experiment
from fl_core.loop.simulation import Simulation
from fl_core.metrics import TRAINING
from fl_core.problems.data.client_data import Shares, StratifiedSample
from fl_core.problems.data.data import Data
from fl_core.problems.problem import Evaluation
from fl_core.problems.training.world import SupervisedWorld
from fl_core.recording import checkpoint
from fl_core.recording.evaluation import EvaluationSample, metrics
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


def test_a_sample_is_an_estimate_with_its_error(passes: list[Tensor]) -> None:
    """fp/loss and sp/loss lie within five standard errors of the exact values; the end is exact."""
    whole = run(experiment(updates=80))
    passes.clear()
    sampled = run(experiment(updates=80), evaluate=EvaluationSample(sample=300))
    assert len(passes) == 1  # of the end
    assert sampled.curve[-1] == whole.curve[-1] and sampled.clients == whole.clients
    for row, full in zip(sampled.curve[:-1], whole.curve[:-1], strict=True):
        assert row.keys() - full.keys() == {f"{name}_se" for name in TRAINING}
        for name in TRAINING:
            assert 0 < abs(row[name] - full[name]) < 5 * row[f"{name}_se"]
        assert 0.001 < row["fp/loss_se"] < 0.2
        assert {name: row[name] for name in row.keys() & full.keys() - TRAINING} == {
            name: value for name, value in full.items() if name not in TRAINING
        }


def test_a_sample_of_all_data_is_exact() -> None:
    whole, sampled = run(experiment()), run(experiment(), evaluate=EvaluationSample(sample=10**6))
    for row, full in zip(sampled.curve[:-1], whole.curve[:-1], strict=True):
        assert [row[name] for name in TRAINING] == pytest.approx([full[name] for name in TRAINING])
        assert row["fp/loss_se"] == row["sp/loss_se"] == row["fp/std_se"] == 0


def test_a_sample_is_stratified_and_its_errors_are_those_of_repeated_samples() -> None:
    """Over 400 seeds: the estimates' mean is the true mean, their spread the standard error."""
    sizes, random = [1, 4, 60, 600, 0], np.random.default_rng(0)
    parts = np.split(random.permutation(665), np.cumsum(sizes)[:-1])
    blank = torch.zeros(665, 1)
    data = Data(blank, torch.zeros(665, dtype=torch.int64), blank[:2], torch.zeros(2, dtype=torch.int64), 1)
    shares = Shares(data, parts, by_owner=False)
    values = random.exponential(size=665)
    found = []
    for seed in range(400):
        sample = StratifiedSample(shares, 67, seed)
        assert sample.drawn.tolist() == [1, 2, 6, 60, 0]
        assert all({*points} <= {*part} for points, part in zip(_by_client(sample), parts, strict=True))
        assert len({*sample.points}) == 69
        found.append(sample.estimate(values[sample.points]))
    means, errors = (np.array(column) for column in zip(*found, strict=True))
    truth = shares.on_training(values)
    assert (errors[:, [0, 4]] == 0).all() and (means[:, [0, 4]] == truth[[0, 4]]).all()
    for client in (1, 2, 3):
        spread = means[:, client].std(ddof=1)
        assert abs(means[:, client].mean() - truth[client]) < 4 * spread / 20
        assert np.sqrt((errors[:, client] ** 2).mean()) == pytest.approx(spread, rel=0.2)


def _by_client(sample: StratifiedSample) -> list[np.ndarray]:
    return np.split(sample.points, np.cumsum(sample.drawn)[:-1])


def test_standard_errors_by_hand() -> None:
    """Two clients of weights 3/4 and 1/4, losses 1 and 5, errors .4 and .8: mean 2, std √3."""
    found = Evaluation({}, np.array([1.0, 5.0]), client_error=np.array([0.4, 0.8]))
    row = metrics(found, np.array([0.75, 0.25]), np.array([0.5, 0.5]))
    assert row["fp/loss"] == 2 and row["fp/std"] == pytest.approx(3**0.5)
    assert row["fp/loss_se"] == pytest.approx((0.3**2 + 0.2**2) ** 0.5)
    # d std / d L_i = p_i (L_i − 2) / √3: −.75 / √3 and .75 / √3
    assert row["fp/std_se"] == pytest.approx(0.75 / 3**0.5 * (0.4**2 + 0.8**2) ** 0.5)
    assert row["sp/loss_se"] == pytest.approx(0.5 * (0.4**2 + 0.8**2) ** 0.5)


def test_a_checkpoint_of_a_run_that_evaluated_less_is_refused(tmp_path: Path) -> None:
    recorders = [Recorder(Simulation(experiment()), evaluate=what) for what in ("test", "clients")]
    recorders[0].start()
    checkpoint.save(recorders[0], tmp_path / "saved")
    with pytest.raises(ValueError, match="is evaluated on other data"):
        checkpoint.load(recorders[1], tmp_path / "saved")
