"""The tasks: cross-entropy of classes and of the next symbol, squared error, and multi-label."""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from fl_core.lightning import torchmetrics
from fl_core.problems.training.task import Batch, Task


class Classifier(Task):
    """Cross-entropy of a network's logits [B, classes]; targets are labels [B]."""

    def loss(self, batch: Batch) -> Tensor:
        inputs, labels, *keys = batch
        return cross_entropy(self(inputs, *keys), labels)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        # As one image of B pixels: softmax then runs along the data points, in a seventh of the time.
        return cross_entropy(outputs.t()[None], targets[None], reduction="none")[0]

    def scores(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        return {"test/accuracy": outputs.argmax(1) == targets}


class NextSymbol(Classifier):
    """Cross-entropy of the next symbol; also the perplexity, e to the mean loss."""

    def wholes(self) -> dict[str, torchmetrics.Metric]:
        return {"test/perplexity": torchmetrics.text.Perplexity()}

    def shown(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
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

    def shown(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
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

    def shown(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sigmoid(outputs), targets.long()
