"""The task interface: a network with loss and metrics, as an ordinary LightningModule.

It serves federated learning, where clients update the parameters, and `Trainer.fit`, where Lightning does.
"""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor, nn

from fl_core.lightning import pl, torchmetrics
from fl_core.problems.hidden_state import hidden_state
from fl_core.problems.problem import InvalidProblemError
from fl_core.problems.training.dropout import KeyedMasks, drops

# Inputs [B, ...], targets [B, ...]; keys [B] where the network is random. The batches of a user's module may
# have any other structure.
Batch = Any


class Task(pl.LightningModule):
    """A network with a loss for each data point, and metrics: means over data points, and others."""

    # What the problem says of it
    architecture: Hashable = None  # what determines the loss of parameters and batch, besides the class
    channels_last = False  # whether images are laid out so on a CPU (`Model.channels_last`)
    augments = False  # whether images are cropped and flipped at random in training
    seeds_itself = False  # whether making the network sets the seed of torch's generator
    takes_keys = False  # whether the network is random in training, by keys [B] besides the inputs

    def __init__(self, network: nn.Module, lr: float, outputs: int = 0) -> None:
        super().__init__()
        if reason := hidden_state(network):
            raise InvalidProblemError(reason)
        self.network = network
        self.drops = drops(network)  # by torch's layers
        self.lr = lr  # of pooled training; strategies have their own rates
        self.outputs = outputs  # of the network, where the metrics need to know

    @property
    def keyed(self) -> bool:
        """True if training is random beyond the choice of mini-batches."""
        return self.augments or self.takes_keys or self.drops

    def forward(self, inputs: Tensor, *keys: Tensor) -> Tensor:
        if not self.drops:
            return self.network(inputs, *keys)
        with KeyedMasks(keys[0][0] if keys else None):
            return self.network(inputs)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each data point [B]."""
        raise NotImplementedError

    def scores(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return values of each data point [B] by metric; the metric is the mean."""
        return {}

    def wholes(self) -> dict[str, torchmetrics.Metric]:
        """Return fresh metrics other than means over data points, R² for example, by name; fed by `shown`."""
        return {}

    def shown(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs and targets for torchmetrics."""
        return outputs, targets

    def loss(self, batch: Batch) -> Tensor:
        """Return the mean loss of a batch, a pure function of the parameters and the batch."""
        inputs, targets, *keys = batch
        return self.losses(self(inputs, *keys), targets).mean()

    def training_step(self, batch: Batch, index: int) -> Tensor:
        loss = self.loss(batch)
        self.log("train/loss", loss)
        return loss

    def adam(self, steps: int) -> tuple[torch.optim.Adam, torch.optim.lr_scheduler.CosineAnnealingLR]:
        """Return the optimiser of the parameters, and the decay of the learning rate over the given steps."""
        optimizer = torch.optim.Adam(self.parameters(), self.lr)
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def configure_optimizers(self) -> Any:
        optimizer, decay = self.adam(int(self.trainer.estimated_stepping_batches))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": decay, "interval": "step"}}


class Loss(nn.Module):
    """The loss of a task as the forward pass for `torch.func.functional_call`."""

    PREFIX = "task."  # of the names of the task's parameters in here

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task

    def forward(self, *arguments: Any) -> Any:
        return self.task.loss(*arguments)
