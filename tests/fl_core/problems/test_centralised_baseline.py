"""The pooled baseline: ordinary Lightning training on a world's module and data, reproducible and silent."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fl_core.lightning import pl
from fl_core.problems.digits import Digits
from fl_core.problems.mnist import MNIST
from fl_core.problems.partitions import ClassDirichlet
from fl_core.problems.training.centralised_baseline import pooled_batches, train


@pytest.mark.slow
def test_digits_pooled_reach_what_logistic_regression_can() -> None:
    """scikit-learn's own solver on the same split is the measure; one point of 359 images is 0.28 %."""
    from sklearn.linear_model import LogisticRegression

    data = Digits().load()
    x_train, x_test = (x.flatten(1).numpy() / 16 for x in (data.x_train, data.x_test))
    fitted = LogisticRegression(max_iter=1000).fit(x_train, data.y_train.numpy())
    reference = fitted.score(x_test, data.y_test.numpy())
    metrics = Digits().pooled(0)
    assert metrics.keys() == {"test/accuracy", "test/loss"}
    assert abs(metrics["test/accuracy"] - reference) < 0.015


def test_pooled_training_is_named_randomness_only() -> None:
    world = Digits(clients=7, partition=ClassDirichlet()).world(0)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = train(world, 0, steps=30)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    world.evaluate(first)  # whatever the world was used for
    assert torch.equal(train(world, 0, steps=30), first)
    assert not torch.equal(train(world, 1, steps=30), first)


def test_the_steps_are_those_of_lightnings_trainer() -> None:
    """Bit for bit, over the ends of epochs: 1,438 images are three mini-batches of 512."""
    world = Digits().world(0)
    trained = train(world, 0, steps=8, batch=512)
    task = world.at(world.initial())
    trainer = pl.Trainer(max_steps=8, max_epochs=-1, barebones=True, accelerator="cpu")
    trainer.fit(task, pooled_batches(world, 512, 0))
    assert torch.equal(world.flat.vector(task), trained)


def test_one_step_of_pooled_training_is_adams() -> None:
    """After one step every coordinate with a gradient moved by the learning rate against its sign."""
    world = Digits(dtype="float64").world(0)
    moved = train(world, 0, steps=1, batch=Digits.samples) - world.initial()
    g = sum(
        world.p[i] * world.full_gradient(world.initial(), i) * world.n * world.sizes[i] for i in range(10)
    )
    g = g / Digits.samples
    clear = g.abs() > 1e-5  # Adam's ε = 1e-8 is small beside it
    assert clear.sum() > 400
    expected = -world.task.lr * g.sign()
    torch.testing.assert_close(moved[clear], expected[clear], rtol=2e-3, atol=0)


@pytest.mark.slow
def test_pooled_training_says_and_writes_nothing(tmp_path: Path) -> None:
    program = (
        "from fl_core.problems.digits import Digits\n"
        "world = Digits().world(0)\n"
        "from fl_core.problems.training.centralised_baseline import train\n"
        "train(world, 0, steps=20)"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{program}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stays_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Digits().world(0)

    def interrupted(batch: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(world.task, "loss", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            train(world, 0, steps=5)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.data("MNIST/raw")
def test_mnist_pooled_reaches_what_logistic_regression_can() -> None:
    """LeCun et al. (1998) report 8.4 % to 7.6 % test errors for linear classifiers."""
    assert 0.92 < MNIST().pooled(0)["test/accuracy"] < 0.93
