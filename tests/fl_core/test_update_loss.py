"""An update carries the client's own training loss: the mean over its steps, each at the model before it."""

from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fl_core.execution.execution import Execution
from fl_core.execution.one_by_one import OneByOne
from fl_core.execution.stacked import AllInFlight
from fl_core.experiment import Experiment
from fl_core.lightning import pl
from fl_core.loop.simulation import Simulation, simulate
from fl_core.server.jobs import Update
from fl_core.server.server import Server
from fl_core.strategies.fedbuff import FedBuff


class Listening(FedBuff):
    """FedBuff that keeps what it receives, outside of the run's state."""

    reads_losses: ClassVar[bool] = True
    received: ClassVar[list[Update]] = []

    def receive(self, server: Server, update: Update) -> None:
        self.received.append(update)
        super().receive(server, update)


def updates(problem: dict[str, Any], execution: Execution) -> tuple[Simulation, list[Update]]:
    """Four jobs of one to four steps each."""
    strategy = Listening.model_validate(
        {"buffer": 2, "local_lr": 0.2, "local": {"name": "sgd", "steps": (1, 2, 3, 4), "batch": 8}}
    )
    Listening.received.clear()
    scenario = {"problem": {"clients": 4, **problem}, "budget": {"updates": 8}}
    simulation = Simulation(Experiment.model_validate({"scenario": scenario, "strategy": strategy}))
    for _ in simulate(simulation, execution):
        pass
    return simulation, list(Listening.received)


def by_autograd(world: Any, update: Update, index: int) -> float:
    """The steps of a job again, with PyTorch's cross-entropy."""
    y, losses = update.start, []
    for sample in world.samples(update.client, index, update.steps, 8):
        at = y.clone().requires_grad_()
        x, labels = world.batch(sample)
        outputs: Tensor = torch.func.functional_call(world.task, world.flat.views(at), (x,))
        loss = cross_entropy(outputs, labels)
        (slope,) = torch.autograd.grad(loss, at)
        y = y - update.lr * slope
        losses.append(loss.item())
    return sum(losses) / len(losses)


@pytest.mark.parametrize("execution", [OneByOne(), AllInFlight()], ids=["one_by_one", "stacked"])
@pytest.mark.parametrize("model", ["logistic", "resnet8"])
def test_it_is_the_mean_over_the_steps(model: str, execution: Execution) -> None:
    """Of gradients by hand and by autograd, one by one and stacked."""
    simulation, received = updates(
        {"name": "digits", "model": {"name": model}, "dtype": "float64"}, execution
    )
    assert {update.steps for update in received} > {1, 2}
    seen = [0] * 4
    for update in received:
        assert update.loss == pytest.approx(by_autograd(simulation.world, update, seen[update.client]))
        seen[update.client] += 1


@pytest.mark.parametrize("execution", [OneByOne(), AllInFlight()], ids=["one_by_one", "stacked"])
def test_where_gradients_come_without_a_loss_there_is_none(execution: Execution) -> None:
    _, received = updates({"name": "quadratic", "centres": [[0], [1], [2], [3]]}, execution)
    assert {update.loss for update in received} == {None}


class Reporting(pl.LightningModule):
    """A module whose step returns more than the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(3, 1)

    def training_step(self, batch: Any, index: int) -> dict[str, Any]:
        x, y = batch
        errors = self.line(x).squeeze(1) - y
        return {
            "loss": errors.square().mean(),
            "worst": errors.abs().max(),
            "points": len(y),
            "errors": errors,
        }

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


def line() -> tuple[Tensor, Tensor]:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    return x, x.sum(1)


@pytest.mark.parametrize("execution", [OneByOne(), AllInFlight()], ids=["one_by_one", "stacked"])
def test_what_else_a_module_reports_reaches_the_update(execution: Execution) -> None:
    """Means over the steps of numbers that its training step returns beside the loss, computed again here."""
    mine = {"module": "test_update_loss:Reporting", "data": "test_update_loss:line", "metric": "test/loss"}
    simulation, received = updates({"name": "own", "dtype": "float64", **mine}, execution)
    world: Any = simulation.world
    seen = [0] * 4
    for update in received:
        y, worst = update.start, []
        for sample in world.samples(update.client, seen[update.client], update.steps, 8):
            inputs, targets = world.batch(sample)
            errors = inputs @ y[:3] + y[3] - targets
            worst.append(errors.abs().max().item())
            y = y - update.lr * world.gradient(y, update.client, sample)
        seen[update.client] += 1
        assert update.reported.keys() == {"loss", "worst", "points"}
        assert update.reported["worst"] == pytest.approx(sum(worst) / len(worst), rel=1e-5)
        assert (update.reported["points"], update.loss) == (8, update.reported["loss"])
