"""Tasks: a network with loss and metrics, as an ordinary LightningModule.

A task serves federated learning, where clients update the parameters, and `Trainer.fit`, where Lightning
does.

Fixed: losses, and names of metrics, which are recorded. The optimiser only affects centralised baselines.
"""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from fl_core.lightning import pl, torchmetrics
from fl_core.problems.problem import InvalidProblemError, Report
from fl_core.problems.training.dropout import KeyedMasks, drops
from fl_core.problems.training.network_check import hidden_state

# Inputs [B, ...], targets [B, ...]; keys [B] where the network is random. The batches of a user's module may
# have any other structure.
Batch = Any


class Task(pl.LightningModule):
    """A network with a loss for each data point, and metrics: means over data points, and others."""

    # Set by the problem
    architecture: Hashable = None  # with the class, determines the loss of parameters and batch
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
        self.outputs = outputs  # number of outputs of the network, for metrics

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
        """Return values of each data point [B] by metric; the metric is the mean.

        Suites rank by these names, and runs are recorded under them. They are declared as
        `Metric` beside each problem.
        """
        return {}

    def wholes(self) -> dict[str, torchmetrics.Metric]:
        """Return fresh metrics by name that are no means over data points, such as R²."""
        return {}

    def for_torchmetrics(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs and targets for torchmetrics."""
        return outputs, targets

    def loss(self, batch: Batch) -> Tensor:
        """Return the mean loss of a batch, a pure function of the parameters and the batch.

        Some tasks compute the mean in one call of torch. Its last digits differ from `losses(...).mean()`, so
        stored results depend on which form a task has.
        """
        inputs, targets, *keys = batch
        return self.losses(self(inputs, *keys), targets).mean()

    def report(self, batch: Batch, key: Tensor | None = None) -> Report:
        """Return numbers of a batch by name, including the "loss"; `key` is for modules of users."""
        return {"loss": self.loss(batch)}

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


class TaskReport(nn.Module):
    """The report of a task as the forward pass for `torch.func.functional_call`."""

    PREFIX = "task."  # of the names of the task's parameters in this module

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task

    def forward(self, *arguments: Any) -> Report:
        return self.task.report(*arguments)


class Classifier(Task):
    """Cross-entropy of a network's logits [B, classes]; targets are labels [B]."""

    def loss(self, batch: Batch) -> Tensor:
        inputs, labels, *keys = batch
        return cross_entropy(self(inputs, *keys), labels)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        # Shaped as an image of B pixels: softmax runs along the data points, in a seventh of the time.
        return cross_entropy(outputs.t()[None], targets[None], reduction="none")[0]

    def scores(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        return {"test/accuracy": outputs.argmax(1) == targets}


class NextSymbol(Classifier):
    """Cross-entropy of the next symbol; also the perplexity, e to the mean loss."""

    def wholes(self) -> dict[str, torchmetrics.Metric]:
        return {"test/perplexity": torchmetrics.text.Perplexity()}

    def for_torchmetrics(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return outputs[:, None], targets[:, None]  # texts of length 1


class NextByte(Task):
    """Cross-entropy of the byte after each place of a text, in nats a byte; targets are bytes [B, T]."""

    def loss(self, batch: Batch) -> Tensor:
        inputs, targets, *keys = batch
        return cross_entropy(self(inputs, *keys).flatten(0, 1), targets.flatten())

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(outputs.transpose(1, 2), targets, reduction="none").mean(1)


class Regressor(Task):
    """Squared error of a network's single output; targets are numbers [B]."""

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.squeeze(-1) - targets).square()

    def scores(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        return {"test/mae": (outputs.squeeze(-1) - targets).abs()}

    def wholes(self) -> dict[str, torchmetrics.Metric]:
        return {"test/r2": torchmetrics.R2Score()}

    def for_torchmetrics(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return outputs.squeeze(-1), targets


class MultiLabel(Task):
    """Binary cross-entropy of a logit for each label, a mean over labels; targets are 0 or 1 [B, labels]."""

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(outputs, targets, reduction="none").mean(1)

    def scores(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        right = (outputs > 0) == (targets > 0.5)
        return {"test/accuracy": right.to(outputs.dtype).mean(1), "test/exact_match": right.all(1)}

    def wholes(self) -> dict[str, torchmetrics.Metric]:
        return {"test/f1": torchmetrics.classification.MultilabelF1Score(self.outputs)}

    def for_torchmetrics(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sigmoid(outputs), targets.long()
